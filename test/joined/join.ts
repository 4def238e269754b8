// node test/joined/join.ts FOLDER [SOURCES]: joins the product's modules, or another checkout's, for test/joined/preload.mjs.
import { globSync } from "node:fs";
import { join } from "node:path";
import { fileURLToPath, pathToFileURL } from "node:url";
import { rolldown } from "rolldown";

/** Modules that do something when they are imported. They stay apart, and so does the page, which no Node runs. */
const programs = /-(entry|worker)\.ts$|\/actors\/preload[^/]*\.ts$|\/page\//;
/** What no actor's thread imports. */
const options = /\/src\/(config|cli)\//;
/** Packages that every thread imports: 30 modules. */
const everywhere = /^(rxjs|msgpackr|eventemitter3|@huggingface\/tokenizers)\b/;
/** A module's own address where it is read, not where a text speaks of it. */
const ownUrl = /(?<=[(,=] ?)import\.meta\.url/g;

/**
 * Writes two modules, of the options and of everything else in `src/`, and for each file of `src/` one of its name that gives
 * what that file exports: whoever imports any of them has the same classes and the same state.
 * @param folder - made if it is not there
 * @param sources - path of `src/`
 */
async function joinProduct(folder: string, sources: string): Promise<void> {
  const files = globSync("**/*.ts", { cwd: sources, exclude: ["**/*.d.ts"] });
  await using bundle = await rolldown({
    input: Object.fromEntries(files.map((file) => [file.slice(0, -".ts".length), join(sources, file)])),
    platform: "node",
    preserveEntrySignatures: "allow-extension",
    // What is imported late is so for those who run the sources as they are written.
    checks: { ineffectiveDynamicImport: false },
    external: (id) => /^[@a-z]/.test(id) && !everywhere.test(id),
    plugins: [
      {
        name: "own-urls",
        transform: (code, id) => code.replaceAll(ownUrl, JSON.stringify(pathToFileURL(id).href)),
      },
    ],
  });
  await bundle.write({
    dir: folder,
    format: "esm",
    // Errors tell functions by their names, of which some stand in two files.
    keepNames: true,
    // With them a thread reads twice as much.
    comments: false,
    entryFileNames: "[name].js",
    chunkFileNames: "joined-[name].js",
    codeSplitting: {
      includeDependenciesRecursively: false,
      groups: [
        { name: "options", test: options },
        { name: "product", test: (id) => !programs.test(id) },
      ],
    },
  });
}

const [folder = "", sources = fileURLToPath(new URL("../../src/", import.meta.url))] = process.argv.slice(2);
await joinProduct(folder, sources);
