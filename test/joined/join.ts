// node test/joined/join.ts FOLDER [SOURCES]: joins the product's modules, or another checkout's, for test/joined/preload.mjs.
import { fileURLToPath, pathToFileURL } from "node:url";
import { joinModules } from "../../scripts/package/join-modules.mjs";

const [folder = "", sources = fileURLToPath(new URL("../../src/", import.meta.url))] = process.argv.slice(2);
await joinModules({
  sources,
  folder,
  named: "ts",
  url: (module) => JSON.stringify(pathToFileURL(module).href),
  // Packages that every thread imports, and every program: 140 modules.
  packages: /^(rxjs|msgpackr|eventemitter3|zod|smol-toml|commander|@huggingface\/tokenizers)\b/,
});
