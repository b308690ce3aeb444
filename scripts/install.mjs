// The npm install step: builds the native engine with node-gyp. Elsewhere than Linux the install passes and the
// command line says what it needs.
import { spawnSync } from "node:child_process";
import { dirname, join } from "node:path";
import { fileURLToPath } from "node:url";

if (process.platform !== "linux") {
	console.log("turnfs: the engine runs on Linux only; nothing was built here.");
	process.exit(0);
}
const root = join(dirname(fileURLToPath(import.meta.url)), "..");
// `configure` + `build` rather than `rebuild`: object files of an earlier build are used again.
for (const step of ["configure", "build"]) {
	const done = spawnSync("node-gyp", [step, "--jobs=max"], { cwd: root, stdio: "inherit", shell: false });
	if (done.error) {
		console.error(`turnfs: node-gyp could not be started (${done.error.message}); run this through npm.`);
		process.exit(1);
	}
	if (done.status !== 0) {
		console.error(
			"turnfs: the engine was not built. It needs a C++20 compiler (g++ 10 or clang 12), make and python3.",
		);
		process.exit(done.status ?? 1);
	}
}
