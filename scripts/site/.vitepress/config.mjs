import { existsSync, readFileSync } from "node:fs";
import { dirname, join } from "node:path";

/** Where scripts/docs.mjs copies this folder, and the pages. */
const tool = join(import.meta.dirname, "..");
const pages = join(tool, "pages");

/** The ways of docs/index.md, with the pages that each names. */
function sidebar() {
  const groups = [];
  for (const line of readFileSync(join(pages, "docs", "index.md"), "utf8").split("\n")) {
    const [, heading] = /^## (.*)/.exec(line) ?? [];
    const [, group] = /^\*\*(.*)\*\*$/.exec(line) ?? [];
    if (heading !== undefined || group !== undefined) groups.push({ text: group ?? heading, items: [] });
    for (const [, text, page] of line.matchAll(/\[([^\]]+)\]\(([^)#]+)\.md\)/g))
      groups.at(-1)?.items.push({ text: `${text[0].toUpperCase()}${text.slice(1)}`, link: `/${page}` });
  }
  return groups.filter(({ items }) => items.length > 0).map((group) => ({ ...group, collapsed: false }));
}

/** As GitHub makes them, whose links the pages use. */
const slugify = (/** @type {string} */ heading) =>
  heading
    .toLowerCase()
    .replace(/[^\p{L}\p{N}_\- ]/gu, "")
    .replace(/ /g, "-");

/**
 * Angle brackets are text, as in `runs/<job>`; comments show nothing; a link to a file that is no page, such as an example,
 * becomes its text.
 */
function asOnGitHub(/** @type {import("markdown-it").default} */ markdown) {
  markdown.core.ruler.push("as-on-github", ({ tokens, env }) => {
    tokens.forEach((token, index) => {
      if (token.type !== "inline" || !/^<!--.*-->$/.test(token.content)) return;
      token.children = [];
      for (const each of [tokens[index - 1], tokens[index + 1]]) if (each !== undefined) each.hidden = true;
    });
    for (const { children } of tokens) {
      let isDropped = false;
      for (const token of children ?? []) {
        if (token.type === "link_open") {
          const [path = ""] = (token.attrGet("href") ?? "").split("#");
          isDropped =
            path.startsWith(".") &&
            !(path.endsWith(".md") && existsSync(join(dirname(env.realPath ?? env.path), path)));
          if (isDropped) Object.assign(token, { type: "text", tag: "", content: "", nesting: 0 });
        } else if (token.type === "link_close" && isDropped) {
          Object.assign(token, { type: "text", tag: "", content: "", nesting: 0 });
        }
      }
    }
  });
}

export default {
  title: "Troupe",
  description: "An actor-model training runtime for big models in TypeScript",
  srcDir: pages,
  // The index of the search is large.
  vite: { build: { chunkSizeWarningLimit: 4000 } },
  outDir: join(tool, "..", "site"),
  cacheDir: join(tool, "cache"),
  rewrites: { "docs/:path(.*)": ":path" },
  markdown: { anchor: { slugify }, config: asOnGitHub, html: false },
  metaChunk: true,
  themeConfig: {
    search: { provider: "local" },
    outline: [2, 3],
    nav: [
      { text: "Use", link: "/guide/first-run" },
      { text: "Understand", link: "/internals/tour" },
      { text: "Extend", link: "/extend/" },
      { text: "API", link: "/api/index.html", target: "_self" },
    ],
    sidebar: sidebar(),
  },
};
