/**
 * Paths and commands for a terminal. What another program chose as a file name must not be able to move the cursor or change
 * colours: control characters are written as escapes.
 */
const CONTROL = /[\p{Cc}\p{Zl}\p{Zp}\p{Bidi_Control}]/gu;

/** A name or path on one line, control characters as `\x1b`. */
export function printable(text: string): string {
	return text.replace(CONTROL, (c) => {
		const code = c.charCodeAt(0);
		if (c === "\n") return "\\n";
		if (c === "\t") return "\\t";
		return code < 0x100 ? `\\x${code.toString(16).padStart(2, "0")}` : `\\u${code.toString(16).padStart(4, "0")}`;
	});
}

/** A command line cut to a width, on one line. */
export function shortCommand(command: string | string[], width = 60): string {
	const line = printable(typeof command === "string" ? command : command.map(quoteArgument).join(" "));
	const chars = [...line];
	return chars.length <= width ? line : `${chars.slice(0, width - 1).join("")}…`;
}

/** An argument as a shell would need it. */
export function quoteArgument(argument: string): string {
	return /^[A-Za-z0-9_@%+=:,./-]+$/.test(argument) ? argument : `'${argument.replaceAll("'", "'\\''")}'`;
}
