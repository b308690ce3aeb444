// Prints the engine's translation units, one path a line: binding.gyp and scripts/build-native share this list.
// Unit tests (native/**/*_test.cc) are programs of their own and not part of the engine.
import { readdirSync } from "node:fs";
import { dirname, join, relative } from "node:path";
import { fileURLToPath } from "node:url";

const root = join(dirname(fileURLToPath(import.meta.url)), "..");
const files = readdirSync(join(root, "native"), { recursive: true, withFileTypes: true })
	.filter((f) => f.isFile() && f.name.endsWith(".cc") && !f.name.endsWith("_test.cc"))
	.map((f) => relative(root, join(f.parentPath ?? f.path, f.name)))
	.sort();
console.log(files.join("\n"));
