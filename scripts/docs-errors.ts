// npm run docs:errors: writes docs/reference/errors.md from the one table of src/errors.ts.
import { writeFileSync } from "node:fs";
import { errorsPage } from "./errors-page.ts";

writeFileSync(new URL("../docs/reference/errors.md", import.meta.url), errorsPage());
