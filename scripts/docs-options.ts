// npm run docs:options: writes what is made of the one schema of src/job/options/schema.ts.
import { writeFileSync } from "node:fs";
import { readArguments } from "./arguments.mjs";
import { optionsPage } from "./options-page.ts";
import { optionTypes } from "./options-types.ts";

readArguments(
  "usage: npm run docs:options\n\nWrites src/job/options/options.generated.ts and docs/reference/options.md",
  {},
);
const written = {
  "src/job/options/options.generated.ts": optionTypes(),
  "docs/reference/options.md": optionsPage(),
};
for (const [path, text] of Object.entries(written)) {
  writeFileSync(new URL(`../${path}`, import.meta.url), text);
}
