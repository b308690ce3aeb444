// Compiles src/ to dist/ and makes the command executable.
import { spawnSync } from "node:child_process";
import { chmodSync, existsSync } from "node:fs";
import { dirname, join } from "node:path";
import { fileURLToPath } from "node:url";

const root = join(dirname(fileURLToPath(import.meta.url)), "..");
const tsc = join(root, "node_modules", "typescript", "bin", "tsc");
// A published package brings dist/ and no compiler.
if (!existsSync(tsc)) process.exit(existsSync(join(root, "dist")) ? 0 : 1);
const done = spawnSync(process.execPath, [tsc, "-p", "."], { cwd: root, stdio: "inherit" });
if (done.status !== 0) process.exit(done.status ?? 1);
chmodSync(join(root, "dist", "cli", "main.js"), 0o755);
