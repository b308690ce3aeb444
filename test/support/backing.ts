/**
 * The filesystems that test projects lie on. One of each kind per test file, made when first asked for, on a tmpfs of the test
 * file's own: fast, the same everywhere, and gone when the file ends. Needs root.
 */
import {
	chmodSync,
	existsSync,
	mkdirSync,
	mkdtempSync,
	readdirSync,
	readFileSync,
	readlinkSync,
	rmdirSync,
} from "node:fs";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { type CommandResult, runCommand } from "./commands.js";
import { mountsBelow } from "./mounts.js";
import { Watchdog } from "./watchdog.js";

export type BackingKind = "ext4" | "overlayfs" | "tmpfs" | "xfs" | "btrfs";

/** A fresh folder on a backing, seen twice. */
export interface BackingFolder {
	/** Where the test works. */
	path: string;
	/** The same folder as it is behind any turnfs mount. */
	behind: string;
}

export interface Backing {
	kind: BackingKind;
	/**
	 * Makes a folder on this filesystem.
	 * @param seed fills it before it is first seen; on overlayfs that is the lower layer, so that changes copy up
	 */
	makeFolder(name: string, seed?: (dir: string) => Promise<void>): Promise<BackingFolder>;
}

interface TestPlace {
	base: string;
	watchdog: Watchdog;
	backings: Map<BackingKind, Promise<Backing>>;
}

let place: Promise<TestPlace> | null = null;

/** The place of this test file: a private tmpfs. */
export function testPlace(): Promise<TestPlace> {
	place ??= makePlace();
	return place;
}

export async function getBacking(kind: BackingKind): Promise<Backing> {
	const { base, backings } = await testPlace();
	let backing = backings.get(kind);
	if (!backing) {
		backing = makeBacking(kind, join(base, kind));
		backings.set(kind, backing);
	}
	return backing;
}

/** Unmounts everything. @throws when something keeps a filesystem busy, which is a leak of the test or of the product */
export async function destroyBackings(): Promise<void> {
	if (!place) return;
	const { base, watchdog } = await place;
	place = null;
	const busy: string[] = [];
	for (const mount of mountsBelow(base)) {
		// The images on it are let go of a little later, by the kernel.
		const done = await unmountPatiently(mount.mountpoint, mount.mountpoint === base ? ["-l"] : []);
		if (done.status !== 0) busy.push(`${done.stderr.trim()} Held by: ${holdersOf(mount.mountpoint).join("; ") || "?"}`);
	}
	await watchdog.close();
	if (busy.length > 0) throw new Error(`still in use after the last test:\n  ${busy.join("\n  ")}`);
}

/** Processes with a descriptor, a working directory or a root below `dir`, and loop devices with an image there. */
function holdersOf(dir: string): string[] {
	const holders: string[] = [];
	const isBelow = (path: string) => path === dir || path.startsWith(`${dir}/`);
	for (const pid of readdirSync("/proc").filter((name) => /^\d+$/.test(name))) {
		try {
			const links = ["cwd", "root", "exe", ...readdirSync(`/proc/${pid}/fd`).map((fd) => `fd/${fd}`)];
			const held = links.filter((link) => isBelow(readlinkSync(`/proc/${pid}/${link}`)));
			const command = readFileSync(`/proc/${pid}/cmdline`, "latin1").replaceAll("\0", " ").slice(0, 120);
			if (held.length > 0) holders.push(`process ${pid} (${command}) ${held.slice(0, 3).join(", ")}`);
		} catch {
			// It has ended, or is a kernel thread.
		}
	}
	for (const device of readdirSync("/sys/block").filter((name) => name.startsWith("loop"))) {
		const file = `/sys/block/${device}/loop/backing_file`;
		if (existsSync(file) && isBelow(readFileSync(file, "utf8").trim())) holders.push(device);
	}
	return holders;
}

/** A process that has just ended can still be closing its descriptors. */
async function unmountPatiently(mountpoint: string, flags: string[]): Promise<CommandResult> {
	const deadline = Date.now() + 15_000;
	for (;;) {
		const done = await runCommand(["umount", ...flags, "--", mountpoint], { expectStatus: null });
		if (done.status === 0 || Date.now() > deadline) return done;
		await sleep(50);
	}
}

async function makePlace(): Promise<TestPlace> {
	if (process.getuid?.() !== 0) throw new Error("the tests mount filesystems: run them as root");
	const base = mkdtempSync("/tmp/turnfs-test-");
	chmodSync(base, 0o755);
	await runCommand(["mount", "-t", "tmpfs", "-o", "size=20g,mode=755", "turnfs-test", base]);
	// Else a FUSE mount on a project would propagate to the second mount of the same filesystem.
	await runCommand(["mount", "--make-private", base]);
	process.once("exit", () => {
		try {
			rmdirSync(base);
		} catch {
			// The watchdog removes it when it could not go yet.
		}
	});
	return { base, watchdog: new Watchdog(base), backings: new Map() };
}

async function makeBacking(kind: BackingKind, dir: string): Promise<Backing> {
	mkdirSync(dir);
	if (kind === "overlayfs") return makeOverlays(dir);
	const top = join(dir, "fs");
	const behind = join(dir, "behind");
	mkdirSync(top);
	if (kind === "tmpfs") await runCommand(["mount", "-t", "tmpfs", "-o", "size=8g,mode=755", "turnfs-test", top]);
	else await mountImage(kind, join(dir, "image"), top);
	await bindMount(top, behind);
	return {
		kind,
		async makeFolder(name, seed) {
			const folder = { path: join(top, name), behind: join(behind, name) };
			mkdirSync(folder.path);
			await seed?.(folder.path);
			return folder;
		},
	};
}

async function bindMount(from: string, to: string): Promise<void> {
	mkdirSync(to);
	await runCommand(["mount", "--bind", from, to]);
	await runCommand(["mount", "--make-private", to]);
}

async function mountImage(kind: "ext4" | "xfs" | "btrfs", image: string, path: string): Promise<void> {
	await runCommand(["truncate", "-s", "6G", image]);
	const make = {
		// Big enough inodes for nanoseconds and ACLs, a small journal: the image lies in memory.
		ext4: ["mkfs.ext4", "-q", "-F", "-I", "256", "-J", "size=32", "-E", "nodiscard", image],
		xfs: ["mkfs.xfs", "-q", "-f", "-K", image],
		btrfs: ["mkfs.btrfs", "-q", "-f", "-K", image],
	}[kind];
	await runCommand(make);
	await runCommand(["mount", "-t", kind, "-o", "loop", image, path]);
}

/** One overlay per folder, lower and upper layer on one ext4 image, as a container's root filesystem has them. */
async function makeOverlays(dir: string): Promise<Backing> {
	const layers = join(dir, "layers");
	mkdirSync(layers);
	mkdirSync(join(dir, "fs"));
	mkdirSync(join(dir, "behind"));
	await mountImage("ext4", join(dir, "image"), layers);
	return {
		kind: "overlayfs",
		async makeFolder(name, seed) {
			const [lower, upper, work] = ["lower", "upper", "work"].map((part) => join(layers, name, part));
			for (const layer of [lower, upper, work]) mkdirSync(String(layer), { recursive: true });
			await seed?.(String(lower));
			const folder = { path: join(dir, "fs", name), behind: join(dir, "behind", name) };
			mkdirSync(folder.path);
			const options = `lowerdir=${lower},upperdir=${upper},workdir=${work}`;
			await runCommand(["mount", "-t", "overlay", "-o", options, "overlay", folder.path]);
			await bindMount(folder.path, folder.behind);
			return folder;
		},
	};
}
