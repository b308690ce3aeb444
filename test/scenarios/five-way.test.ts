/**
 * The comparison that most ways to undo an agent's turn fail: an uncommitted edit, an ignored file and an untracked one lie
 * beside what the agent changes by its shell.
 */
import { describe, expect, test } from "vitest";
import { roundTrip, Story } from "./story.js";

const repository = `
	git init -q -b main . && git config user.name You && git config user.email you@example.org
	mkdir -p src
	echo '<title>Shop</title><h1>Shop</h1>' > index.html
	echo 'body { color: black }' > styles.css
	echo 'console.log("shop")' > src/app.js
	echo '.env' > .gitignore
	git add . && git commit -qm 'The shop'
	sed -i 's/<title>Shop/<title>My little shop/' index.html
	echo 'SECRET=mine' > .env && chmod 600 .env
	echo 'call the supplier' > notes.md
`;
const agent = `
	cat > styles.css <<'CSS'
body { color: white; background: black }
CSS
	sed -i 's/<h1>Shop/<h1>SHOP/' index.html
	echo 'import "./theme.js"' > src/app.js
	sed -i s/mine/theirs/ .env
	echo ':root { --accent: red }' > theme.css
`;

describe("a shell turn over uncommitted, ignored and untracked work", () => {
	test("leaves nothing behind after a rewind, and comes back whole with redo, again and again", async () => {
		const story = await Story.start({ prepare: repository });
		await roundTrip(story, [agent]);
	});

	test("comes back the same way when it was made by `run`", async () => {
		const story = await Story.start({ prepare: repository, mount: false });
		const before = await story.tree();
		const run = await story.cli("run", "--label", "restyle", "--", "bash", "-ec", agent);
		expect(run).toMatchObject({ status: 0 });
		const after = await story.tree();
		expect(await story.read("notes.md")).toBe("call the supplier\n");
		expect(await story.read("theme.css")).toContain("accent");

		const log = await story.json("log");
		expect(log).toMatchObject([{ turn: 1, label: "restyle", state: "ended", skipped: 0 }]);
		const shown = await story.json("show", "last");
		const statusOf = new Map(shown.changes.map((c: { path: string; status: string }) => [c.path, c.status]));
		expect(Object.fromEntries(statusOf)).toMatchObject({
			".env": "M",
			"index.html": "M",
			"src/app.js": "M",
			"styles.css": "M",
			"theme.css": "A",
		});
		expect([...statusOf.keys()].filter((path) => String(path).startsWith("notes"))).toEqual([]);

		await story.rewind("last");
		await story.expectTree(before);
		await story.redo();
		await story.expectTree(after);
		await story.rewind("last");
		await story.expectTree(before);
	});
});
