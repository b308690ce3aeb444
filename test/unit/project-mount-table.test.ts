import { describe, expect, it } from "vitest";
import { isWithin, mountOf, parseMountInfo, turnfsMounts } from "../../src/project/mount-table.js";
import { findUnprotectedMounts } from "../../src/project/sub-mounts.js";

const text = [
	"22 1 8:1 / / rw,relatime shared:1 - ext4 /dev/sda1 rw",
	"30 22 0:40 / /srv/my\\040app rw,nosuid - fuse.turnfs /srv/my\\040app rw,user_id=0",
	"31 30 0:41 / /srv/my\\040app/data rw - tmpfs tmpfs rw",
	"32 22 0:42 / /tmp rw master:3 propagate_from:2 - tmpfs tmpfs rw",
	"33 22 0:43 / /srv/b\\134n\\303\\244me rw - ext4 /dev/sdb rw",
	"not a line",
	"",
].join("\n");

describe("the mount table", () => {
	const mounts = parseMountInfo(text);

	it("reads every line and its escapes", () => {
		expect(mounts.map((mount) => mount.at)).toEqual(["/", "/srv/my app", "/srv/my app/data", "/tmp", "/srv/b\\näme"]);
		expect(mounts[1]).toEqual({
			id: 30,
			parent: 22,
			at: "/srv/my app",
			type: "fuse.turnfs",
			source: "/srv/my app",
			device: "0:40",
		});
	});

	it("finds the mount that a path is on", () => {
		expect(mountOf("/srv/my app/src/a.ts", mounts)?.type).toBe("fuse.turnfs");
		expect(mountOf("/srv/my app/data/x", mounts)?.type).toBe("tmpfs");
		expect(mountOf("/srv/my apples", mounts)?.at).toBe("/");
		expect(mountOf("/srv/my app/src", mounts, true)?.at).toBe("/");
	});

	it("takes the newest of several mounts at one place", () => {
		const twice = parseMountInfo(`${text}\n40 22 0:50 / /tmp rw - ext4 /dev/sdc rw`);
		expect(mountOf("/tmp/x", twice)?.id).toBe(40);
	});

	it("lists turnfs mounts only", () => {
		expect(turnfsMounts(mounts).map((mount) => mount.id)).toEqual([30]);
	});

	it("tells what was mounted inside a turnfs mount from what lies under it", () => {
		expect(findUnprotectedMounts("/srv/my app", mounts).map((mount) => mount.at)).toEqual(["/srv/my app/data"]);
		expect(findUnprotectedMounts("/srv/other", mounts)).toEqual([]);
		const under = parseMountInfo(text.replace("31 30 0:41", "31 22 0:41"));
		expect(findUnprotectedMounts("/srv/my app", under)).toEqual([]);
	});

	it("compares whole names", () => {
		expect(isWithin("/a/b", "/a")).toBe(true);
		expect(isWithin("/a", "/a")).toBe(true);
		expect(isWithin("/ab", "/a")).toBe(false);
		expect(isWithin("/a", "/")).toBe(true);
	});
});
