// node scripts/build-dist.mjs: makes dist/, what the package is made of; `npm pack` does it too.
import { readArguments } from "./arguments.mjs";
import { buildDist } from "./package/build-dist.mjs";
import { ensureNpmPackages } from "./setup/npm-packages.mjs";
import { main } from "./setup/say.mjs";

readArguments("usage: npm run build\n\nMakes dist/ (JavaScript, declarations, source maps) of src/", {});
await main(async () => {
  await ensureNpmPackages();
  await buildDist();
});
