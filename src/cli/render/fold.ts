/**
 * Long lists of paths, shorter for people: what lies in a folder that is listed itself is only counted there, and the inside
 * of a git directory, which nobody reads, is one line. JSON always has every path.
 */
export interface Fold<T> {
	/** The path to print, without a trailing slash. */
	path: string;
	/** What is listed at that path itself; null for a git directory of which only the inside changed. */
	item: T | null;
	/** What lies in it. */
	inside: T[];
}

const GIT_INSIDE = /^((?:.*\/)?\.git)\/./;

/**
 * @param takesInside whether `inside` may be folded into `top`, a listed path above it; for instance when both were deleted
 */
export function foldPaths<T extends { path: string }>(
	items: T[],
	takesInside: (top: T, inside: T) => boolean = () => true,
): Fold<T>[] {
	const folds = new Map<string, Fold<T>>();
	// Where a fold's first member stood: folds are listed in the order in which items came.
	const places = new Map<Fold<T>, number>();
	const foldAt = (path: string): Fold<T> => {
		const fold = folds.get(path) ?? { path, item: null, inside: [] };
		folds.set(path, fold);
		return fold;
	};
	// Folders before what is in them, whatever order they came in; the project folder itself ("") folds nothing.
	const numbered = items
		.map((item, place) => ({ item, place }))
		.sort((a, b) => a.item.path.length - b.item.path.length);
	for (const { item, place } of numbered) {
		const top = GIT_INSIDE.exec(item.path)?.[1] ?? findTop(item, folds, takesInside);
		const fold = foldAt(top ?? item.path);
		if (top === null) fold.item = item;
		else fold.inside.push(item);
		places.set(fold, Math.min(place, places.get(fold) ?? place));
	}
	return [...folds.values()].sort((a, b) => (places.get(a) ?? 0) - (places.get(b) ?? 0));
}

function findTop<T extends { path: string }>(
	item: T,
	folds: Map<string, Fold<T>>,
	takesInside: (top: T, inside: T) => boolean,
): string | null {
	for (let at = item.path.indexOf("/"); at !== -1; at = item.path.indexOf("/", at + 1)) {
		const path = item.path.slice(0, at);
		const top = folds.get(path)?.item;
		if (top != null && takesInside(top, item)) return path;
	}
	return null;
}
