// node scripts/clean.mjs [--all]: removes what was built; with --all also libtorch and the npm packages.
import { rmSync } from "node:fs";
import { readArguments } from "./arguments.mjs";
import { layout } from "./setup/layout.mjs";

const { values } = readArguments(
  "usage: npm run clean [-- --all]\n\nRemoves what was built; --all: libtorch and the npm packages too",
  { all: { type: "boolean", default: false } },
);
const built = [layout.build];
const installed = [layout.libtorch, layout.ownLibtorch, layout.packages];
const folders = values.all ? [...built, ...installed] : built;
for (const folder of folders) rmSync(folder, { recursive: true, force: true });
