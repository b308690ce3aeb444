import type { StatusResponse } from "../../daemon/api.js";
import type { Colors } from "../output.js";
import { describeCounts } from "./changes.js";
import { printable } from "./names.js";
import { count, formatSize } from "./quantities.js";

export function renderStatus(status: StatusResponse, colors: Colors): string {
	const lines = [`project  ${colors.bold(printable(status.project))}`];
	if (!status.mounted) lines.push(`mounted  ${colors.yellow("no")}: changes are not captured`);
	else {
		const where =
			status.mountpoint === status.project ? "over the project" : `at ${printable(status.mountpoint ?? "")}`;
		lines.push(`mounted  ${colors.green("yes")}, ${where} (${status.io ?? "cached"})`);
	}
	if (status.turn === null) lines.push("turn     none open");
	else {
		const changes = status.changes === null ? "" : describeCounts(status.changes);
		lines.push(`turn     ${colors.bold(String(status.turn))} is open, ${changes || "no changes"} so far`);
	}
	lines.push(
		`history  ${count(status.store.turns, "turn")}, ${formatSize(status.store.bytes)} in ${printable(status.store.path)}`,
	);
	const pids = (["keeper", "engine", "daemon"] as const)
		.filter((role) => status.pids[role] !== null)
		.map((role) => `${role} ${status.pids[role]}`);
	if (pids.length > 0) lines.push(`pids     ${pids.join(", ")}`);
	for (const p of status.holders) lines.push(`held by  ${printable(p.comm)} (pid ${p.pid})`);
	for (const p of status.behind)
		lines.push(
			colors.yellow(
				`behind   ${printable(p.comm)} (pid ${p.pid}): its changes are not captured; \`cd .\` there enters the mount`,
			),
		);
	for (const p of status.problems) lines.push(colors.red(`trouble  ${p.message} ${p.hint} (${p.code})`));
	return lines.join("\n");
}
