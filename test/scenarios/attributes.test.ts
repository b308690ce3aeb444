import { describe, expect, test } from "vitest";
import { roundTrip, Story } from "./story.js";

describe("modes, owners, times, extended attributes and ACLs", () => {
	test("chmod, chown, touch, setfattr and setfacl are undone, on files, folders, symlinks and the project folder", async () => {
		const story = await Story.start({
			prepare: `
				mkdir -p d/sub; echo 1 > f; echo 2 > d/g; ln -s f l; : > exe; chmod 4755 exe; chmod 2775 d
				setfattr -n user.one -v 1 f; setfattr -n user.gone -v 1 f; setfattr -n user.d -v d d; setfattr -n trusted.t -v t d/g
				setfacl -m u:1000:rw f; setfacl -d -m g:100:rx d; setfacl -m u:1000:rwx d
				touch -d '2015-05-05 05:05:05.000000005' f d d/sub; touch -h -d '2014-04-04' l
				setfattr -n user.root -v here .; touch -d '2013-03-03' .
			`,
		});
		await roundTrip(story, [
			"chmod 000 f; chmod 700 d; chmod 0755 exe; chown 1:2 f d; chown -h 3:4 l; chmod 711 .",
			"touch f d/g; touch -h l; touch -d '2030-01-01 00:00:00.999999999' d; touch .",
			`setfattr -n user.one -v other f; setfattr -x user.gone f; setfattr -n user.new -v n f; setfattr -x trusted.t d/g
			 setfattr -x user.root .; setfattr -n user.fresh -v 1 .`,
			"setfacl -b f; setfacl -k d; setfacl -m u:12:x d; setfacl -m d:u:99:rwx d/sub; echo child > d/sub/child",
		]);
	});

	test("a large extended attribute with every byte in it comes back", async () => {
		const story = await Story.start({
			prepare: `python3 -c 'import os; open("f", "w"); os.setxattr("f", "user.big", bytes(range(256)) * 8)'`,
		});
		await roundTrip(story, ["setfattr -n user.big -v small f", "setfattr -x user.big f", "rm f; echo new > f"]);
	});

	test("times are kept to the nanosecond, also from before 1970", async () => {
		const story = await Story.start({
			prepare: `
				echo f > f; mkdir d; echo g > d/g
				python3 -c 'import os; [os.utime(p, ns=(t, t)) for p, t in (("f", -1), ("d", 1), ("d/g", 1234567890123456789), (".", 999999999))]'
			`,
		});
		await roundTrip(story, ["echo more >> f; touch d/new; rm d/g", "touch f d; mv d e; touch new"]);
	});

	test("names with spaces, newlines, quotes and bytes that are no UTF-8 are names like others", async () => {
		const story = await Story.start({
			prepare: `
				python3 - <<'PY'
import os
for name in [b"with space", b"new\\nline", b"tab\\t", b"quote'\\"", b"back\\\\slash", b"latin-\\xe4\\xff", "grüße".encode(), b"-dash", b"*", b"%41", b"a" * 255, b"..."]:
    open(name, "wb").write(name)
os.mkdir(b"dir\\xfe"); open(b"dir\\xfe/in\\xfd", "w").write("x")
PY
			`,
		});
		await roundTrip(story, [
			'for f in *; do [ -f "./$f" ] && echo more >> "./$f"; done; true',
			"rm -rf -- *; mkdir '*'; touch 'with space'",
		]);
		const shown = await story.json("show", "1");
		const odd = shown.changes.find((c: { pathBytes?: string }) => c.pathBytes !== undefined);
		expect(Buffer.from(odd.pathBytes, "base64").toString("latin1")).toMatch(/^(latin-\xe4\xff|dir\xfe\/in\xfd)$/);
	});
});
