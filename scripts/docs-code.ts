// npm run docs:code: writes the code in the pages again, from the files that they name.
import { globSync, readFileSync, writeFileSync } from "node:fs";
import { readArguments } from "./arguments.mjs";
import { withCode } from "./page-code.ts";

readArguments(
  "usage: npm run docs:code\n\nWrites the code of docs/ and README.md from the files that they name",
  {},
);
const root = new URL("../", import.meta.url);
for (const page of globSync(["README.md", "docs/**/*.md"], { cwd: root })) {
  const path = new URL(page, root);
  const text = readFileSync(path, "utf8");
  const filled = withCode(text);
  if (filled !== text) writeFileSync(path, filled);
}
