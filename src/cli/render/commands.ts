import { quoteArgument } from "./names.js";

/** A turnfs command to suggest, with the `-C` that the caller needed too. */
export function suggest(words: string, folderOption: string | undefined): string {
	return folderOption === undefined ? `turnfs ${words}` : `turnfs -C ${quoteArgument(folderOption)} ${words}`;
}
