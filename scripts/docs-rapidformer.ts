// npm run docs:rapidformer: writes the page of Rapidformer's flags, which is made of src/rapidformer/flags.ts.
import { writeFileSync } from "node:fs";
import { rapidformerPage } from "./rapidformer-page.ts";

writeFileSync(new URL("../docs/reference/rapidformer.md", import.meta.url), rapidformerPage());
