// node scripts/count-lines.mjs [TREE]: the lines of src that people write, by wing and room; of this checkout, or of another.
import { readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { readArguments } from "./arguments.mjs";

const usage =
  "usage: npm run lines -- [TREE]\n\nCounts the lines of src that no script writes, by wing and room";
const { positionals } = readArguments(usage, {}, 1);
const source = join(positionals[0] ?? join(import.meta.dirname, ".."), "src");
const counts = new Map();
for (const file of readdirSync(source, { recursive: true, encoding: "utf8" })) {
  if (!/\.(ts|js|css|html)$/.test(file) || file.includes(".generated.")) continue;
  const numLines = readFileSync(join(source, file), "utf8").split("\n").length - 1;
  const folders = file.split("/").slice(0, -1);
  for (const name of new Set(["src", ...folders.slice(0, 1), folders.slice(0, 2).join("/") || "src"]))
    counts.set(name, (counts.get(name) ?? 0) + numLines);
}
for (const [name, numLines] of [...counts].sort(([one], [other]) => (one < other ? -1 : 1)))
  console.log(`${String(numLines).padStart(7)}  ${name.includes("/") ? "  " : ""}${name}`);
