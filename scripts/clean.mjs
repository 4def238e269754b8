// node scripts/clean.mjs [--all]: removes what was built; with --all also libtorch and the npm packages.
import { rmSync } from "node:fs";
import { layout } from "./setup/layout.mjs";

const built = [layout.build];
const installed = [layout.libtorch, layout.packages];
const folders = process.argv.includes("--all") ? [...built, ...installed] : built;
for (const folder of folders) rmSync(folder, { recursive: true, force: true });
