// npm run docs:rapidformer: writes the page of Rapidformer's flags, which is made of src/job/rapidformer/flags.ts.
import { writeFileSync } from "node:fs";
import { readArguments } from "./arguments.mjs";
import { rapidformerPage } from "./rapidformer-page.ts";

readArguments("usage: npm run docs:rapidformer\n\nWrites docs/reference/rapidformer.md", {});
writeFileSync(new URL("../docs/reference/rapidformer.md", import.meta.url), rapidformerPage());
