import { existsSync, globSync, readFileSync } from "node:fs";
import { dirname, join } from "node:path";
import { fileURLToPath } from "node:url";
import { describe, expect, it } from "vitest";

const root = fileURLToPath(new URL("..", import.meta.url));
const pages = globSync(["*.md", "docs/**/*.md"], { cwd: root }).sort();

/** In backticks, a path of the repository without a placeholder: `src/actors/rank.ts`. */
const named = /`((?:src|native|test|examples|bench|scripts|docs|bin)\/[\w./-]*)`/g;
/** A link to a page beside this one: [tour](docs/internals/tour.md). */
const linked = /\]\((?!https?:|#)([^)#]+)/g;

describe("documentation", () => {
  it.each(pages)("names only files that are there: %s", (page) => {
    const text = readFileSync(join(root, page), "utf8");
    const paths = [
      ...[...text.matchAll(named)].map(([, path = ""]) => path),
      ...[...text.matchAll(linked)].map(([, path = ""]) => join(dirname(page), path)),
    ];
    expect(paths.filter((path) => !existsSync(join(root, path)))).toEqual([]);
  });
});
