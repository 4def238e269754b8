// npm run docs:write: writes again what is made of the source: pages of tables, the options' types, and the code in all pages.
import { globSync, readFileSync, writeFileSync } from "node:fs";
import { readArguments } from "./arguments.mjs";
import { errorsPage } from "./errors-page.ts";
import { eventsPage } from "./events-page.ts";
import { optionsPage } from "./options-page.ts";
import { optionTypes } from "./options-types.ts";
import { withCode } from "./page-code.ts";
import { rapidformerPage } from "./rapidformer-page.ts";

readArguments(
  "usage: npm run docs:write\n\nWrites what is made of the source: pages, code in pages, types",
  {},
);
const root = new URL("../", import.meta.url);
const made: Readonly<Record<string, string>> = {
  "docs/reference/errors.md": errorsPage(),
  "docs/reference/events.md": eventsPage(),
  "docs/reference/options.md": optionsPage(),
  "docs/reference/rapidformer.md": rapidformerPage(),
  "src/job/options/options.generated.ts": optionTypes(),
};
for (const [path, text] of Object.entries(made)) writeFileSync(new URL(path, root), text);
for (const page of globSync(["README.md", "docs/**/*.md"], { cwd: root })) {
  const path = new URL(page, root);
  const text = readFileSync(path, "utf8");
  const filled = withCode(text);
  if (filled !== text) writeFileSync(path, filled);
}
