import { defineConfig } from "vitest/config";

export default defineConfig({
	test: {
		include: ["test/**/*.test.ts"],
		setupFiles: ["test/support/setup.ts"],
		// A file has a filesystem image and mounts of its own, so files can run side by side.
		pool: "forks",
		maxWorkers: 2,
		testTimeout: 60_000,
		hookTimeout: 60_000,
		// A failing test prints the folder with its logs; nothing else should be printed.
		silent: "passed-only",
	},
});
