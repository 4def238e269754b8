import { existsSync, globSync, readFileSync } from "node:fs";
import { dirname, join } from "node:path";
import { fileURLToPath } from "node:url";
import { describe, expect, it } from "vitest";
import { withCode } from "../scripts/page-code.ts";

const root = fileURLToPath(new URL("..", import.meta.url));
const pages = globSync(["*.md", "docs/**/*.md", "bench/notes/*.md", "examples/*/README.md"], {
  cwd: root,
}).sort();
const read = (path: string) => readFileSync(join(root, path), "utf8");

/** In backticks, a path of the repository without a placeholder: `src/actors/rank.ts`. */
const named = /`((?:src|native|test|examples|bench|scripts|docs|bin)\/[\w./-]*)`/g;
/** A link to a page beside this one, or to a heading: [tour](docs/internals/tour.md#step-12). */
const linked = /\]\((?!https?:)([^)#]*)(?:#([^)]+))?\)/g;

/** Whether a path is one that a recipe adds, which does not exist yet. */
const isAdded = (page: string, path: string) =>
  page.startsWith("docs/extend/") &&
  read(page).includes(`\`${path}\``) &&
  read(page).includes("<!-- new -->");

/** The headings of a page, as GitHub makes links to them. */
function anchorsIn(path: string): string[] {
  const text = read(path).replaceAll(/^```[\s\S]*?^```/gm, "");
  return [...text.matchAll(/^#+ (.*)$/gm)].map(([, heading = ""]) =>
    heading
      .toLowerCase()
      .replaceAll(/[^\p{L}\p{N}_\- ]/gu, "")
      .replaceAll(" ", "-"),
  );
}

/** The numbers of words in the sentences of a page; tables, headings and code are none. */
function sentencesIn(text: string): number[] {
  const prose = text.replaceAll(/^ *```[\s\S]*?^ *```/gm, "\n\n").replaceAll(/<!--.*-->/g, "");
  const items = prose
    .split(/\n\s*\n|\n(?=\s*(?:[-*]|\d+\.) )/)
    .map((item) =>
      item
        .trim()
        .replaceAll(/`[^`]*`/g, "x")
        .replaceAll(/\]\([^)]*\)/g, ""),
    )
    // Lists of names are no sentences.
    .filter((item) => !/^[|#!]|^(x\s+){3}/.test(item));
  return items
    .flatMap((item) => item.replaceAll(/\s+/g, " ").split(/(?<=[.!?]) (?=[A-Z*x([])/))
    .map((sentence) => sentence.match(/[\p{L}\p{N}'’×-]+/gu)?.length ?? 0)
    .filter((numWords) => numWords > 1);
}

describe("documentation", () => {
  it.each(pages)("names only files and headings that exist: %s", (page) => {
    const text = read(page);
    const links = [...text.matchAll(linked)].map(([, path = "", anchor]) => ({
      path: path === "" ? page : join(dirname(page), path),
      anchor,
    }));
    const paths = [
      ...[...text.matchAll(named)].map(([, path = ""]) => path),
      ...links.map(({ path }) => path),
    ];
    expect(paths.filter((path) => !existsSync(join(root, path)) && !isAdded(page, path))).toEqual([]);
    const anchors = links.filter(({ path, anchor }) => anchor !== undefined && path.endsWith(".md"));
    expect(anchors.filter(({ path, anchor = "" }) => !anchorsIn(path).includes(anchor))).toEqual([]);
  });

  it.each(pages)("has the code of the files that it names (npm run docs:write): %s", (page) => {
    expect(withCode(read(page))).toBe(read(page));
  });

  it.each(pages)(
    "has no code in TypeScript that is not cut from a file, or followed as a recipe: %s",
    (page) => {
      const blocks = [...read(page).matchAll(/(.*)\n\n```ts\n(.*)/g)];
      expect(
        blocks.filter(([, above = ""]) => !/^<!-- (code|new|before|instead of)\b.* -->$/.test(above)),
      ).toEqual([]);
      expect(blocks).toHaveLength(read(page).split("```ts\n").length - 1);
    },
  );

  it.each(pages.filter((page) => /^(docs\/|README|CONTRIBUTING)/.test(page)))(
    "has sentences of 20 words in the mean: %s",
    (page) => {
      const numWords = sentencesIn(read(page));
      expect(numWords.reduce((sum, count) => sum + count, 0) / (numWords.length || 1)).toBeLessThanOrEqual(
        20,
      );
    },
  );

  it("lists every page on the front page, but for the pages of decisions", () => {
    const front = new Set(
      [...read("docs/index.md").matchAll(linked)].map(([, path = ""]) => join("docs", path)),
    );
    const below = pages.filter(
      (page) => page.startsWith("docs/") && !page.startsWith("docs/internals/decisions/"),
    );
    expect(below.filter((page) => page !== "docs/index.md" && !front.has(page))).toEqual([]);
  });
});
