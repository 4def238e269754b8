// node scripts/docs.mjs: the pages as a site with search, and the API of every entry by its doc comments, in build/site. A link
// that leads nowhere fails either.
import { cpSync, existsSync, readdirSync, readFileSync, rmSync } from "node:fs";
import { join } from "node:path";
import { readArguments, refuse } from "./arguments.mjs";
import { capture, handOver } from "./setup/child.mjs";
import { productNode, root } from "./setup/layout.mjs";
import { main, SetupError, step } from "./setup/say.mjs";

/** scripts/site, with its packages and the pages: outside of what tests and linters read. */
const tool = join(root, "build", "docs");
const programs = join(tool, "node_modules");
const pages = join(tool, "pages");

const usage = `usage: npm run docs [-- --only WHAT]

Makes build/site/index.html of docs/ and of the doc comments

  --only pages|api   one of the two`;
const { values } = readArguments(usage, { only: { type: "string" } });
if (!["pages", "api", undefined].includes(values.only))
  refuse(usage, "--only pages or api", String(values.only));

await main(async () => {
  const lock = "package-lock.json";
  const isCurrent =
    existsSync(programs) && read(join(tool, lock)) === read(join(root, "scripts", "site", lock));
  cpSync(join(root, "scripts", "site"), tool, { recursive: true });
  if (!isCurrent) {
    await step("VitePress and typedoc", "npm ci, 150 MB and 20 s", async () => {
      const { ok, tail } = await capture("npm", ["ci", "--loglevel=error"], { cwd: tool });
      if (!ok)
        throw new SetupError(
          { where: "npm ci", expected: "VitePress, typedoc and its compiler", got: "a failure of npm" },
          tail,
        );
    });
  }
  process.chdir(tool);
  if (values.only !== "api") {
    copyPages();
    process.exitCode = await handOver(productNode(), [
      join(programs, "vitepress", "bin", "vitepress.js"),
      "build",
    ]);
    if (process.exitCode !== 0) return;
  }
  if (values.only === "pages") return;
  const entries = join(root, "src", "entries");
  const files = readdirSync(entries).filter((file) => file.endsWith(".ts") && !file.endsWith(".d.ts"));
  const options = files.flatMap((file) => ["--entryPoints", join(entries, file)]);
  process.exitCode = await handOver(productNode(), [join(programs, "typedoc", "bin", "typedoc"), ...options]);
});

/** @param {string} path */
function read(path) {
  return readFileSync(path, "utf8");
}

/** VitePress reads one folder: a copy of docs/ and of the pages that it links to, at their paths. */
function copyPages() {
  rmSync(pages, { recursive: true, force: true });
  for (const path of ["docs", "CONTRIBUTING.md"])
    cpSync(join(root, path), join(pages, path), { recursive: true });
  for (const path of readdirSync(join(root, "examples"), { recursive: true, encoding: "utf8" }))
    if (/^[^/]+\/(README\.md|[^/]+\.svg)$/.test(path))
      cpSync(join(root, "examples", path), join(pages, "examples", path));
}
