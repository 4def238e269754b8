// npm run docs:errors: writes docs/reference/errors.md from the one table of src/errors/troupe-error.ts.
import { writeFileSync } from "node:fs";
import { readArguments } from "./arguments.mjs";
import { errorsPage } from "./errors-page.ts";

readArguments("usage: npm run docs:errors\n\nWrites docs/reference/errors.md", {});
writeFileSync(new URL("../docs/reference/errors.md", import.meta.url), errorsPage());
