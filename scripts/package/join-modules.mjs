import { globSync } from "node:fs";
import { join } from "node:path";
import { rolldown } from "rolldown";

/** Modules that do something when they are imported. They stay apart, and so does the page, which no Node runs. */
const programs =
  /-(entry|worker)\.ts$|\/actors\/preload\/(?!index)[^/]*\.ts$|\/relative-imports\.ts$|\/page\//;
/** Modules that no actor's thread imports. */
const options = /\/src\/(job\/options|tools\/cli)\//;
/** Modules that the main thread of a process for actors loads, which starts threads and carries bytes. */
const ofProcesses = [
  "runtime/actor/preload",
  "runtime/hosting/orphan",
  "runtime/hosting/process-host",
  "actors/preload/several-hosts",
];
/** Modules that threads load which never see a user's module. */
const ofActors = [
  "runtime/hosting/thread-entry",
  "runtime/actor/actor-host",
  "runtime/module-texts",
  "actors/preload/one-host",
  "actors/shard",
  "actors/offload",
  "actors/checkpointer",
  "actors/slice-writer",
];
/** Modules that the other threads load, and those that a user's module imports. */
const ofJobs = ["entries/index", "entries/actors", "actors/feeder", "actors/rank"];
/** A module's own address where it is read, not where a text speaks of it. */
const ownUrl = /(?<=[(,=]\s*)import\.meta\.url/g;
/** The ending of the module of a thread or a process, named by where it stands. */
const ending = /(?<=new URL\("\.{1,2}\/[^"]+\.)ts(?=", import\.meta\.url\))/g;

/**
 * Writes five modules of everything in `src/`, and for each file of `src/` one of its name with that file's exports: all
 * importers share the same classes and state. Node's loader spends 0.3 ms on each of some hundred modules, and a run of two
 * ranks has seven threads: more than half of a small run's processor time. The five are what a process for actors loads before
 * it starts threads, what every thread loads too, what those with a user's module load, the rest, and the options: each imports
 * those before it, and none a later one.
 * @param {object} of
 * @param {string} of.sources - path of `src/`
 * @param {string} of.folder - made if it does not exist
 * @param {(module: string, isApart: boolean) => string} of.url - what a module reads as its own address, as an expression
 * @param {"ts" | "js"} of.named - how modules that are named by URL end
 * @param {RegExp} [of.packages] - of others, to be joined too
 * @param {boolean} [of.sourcemap]
 */
export async function joinModules({ sources, folder, url, named, packages, sourcemap = false }) {
  /** @type {Set<string>} */
  let processes = new Set();
  /** @type {Set<string>} */
  let common = new Set();
  /** @type {Set<string>} */
  let jobs = new Set();
  /** @param {readonly string[]} names */
  const paths = (names) => names.map((name) => join(sources, `${name}.ts`));
  const files = globSync("**/*.ts", { cwd: sources, exclude: ["**/*.d.ts"] });
  await using bundle = await rolldown({
    input: Object.fromEntries(files.map((file) => [file.slice(0, -".ts".length), join(sources, file)])),
    platform: "node",
    preserveEntrySignatures: "allow-extension",
    // Dynamic imports are for runs of the unjoined sources.
    checks: { ineffectiveDynamicImport: false },
    external: (id) => /^[@a-z]/.test(id) && !packages?.test(id),
    plugins: [
      {
        name: "parts",
        buildEnd() {
          /** @param {string} id */
          const importsOf = (id) => this.getModuleInfo(id)?.importedIds ?? [];
          processes = reached(paths(ofProcesses), importsOf);
          common = reached(paths(ofActors), importsOf);
          jobs = reached(paths(ofJobs), importsOf);
          // Entries that only name what is there already: a job imports them beside the first.
          const entries = files
            .filter((file) => file.startsWith("entries/"))
            .map((file) => join(sources, file));
          for (const id of entries) if (importsOf(id).every((each) => jobs.has(each))) jobs.add(id);
        },
      },
      {
        name: "own-urls",
        transform: (code, id) => {
          const renamed = code.replaceAll(ending, named).replaceAll(ownUrl, () => url(id, programs.test(id)));
          // Lines stay where they were.
          return renamed === code ? null : { code: renamed, map: null };
        },
        generateBundle(_, files) {
          for (const file of Object.values(files)) if (file.type === "chunk") file.code = inAscii(file.code);
        },
      },
    ],
  });
  await bundle.write({
    dir: folder,
    format: "esm",
    sourcemap,
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
        { name: "processes", test: (id) => !programs.test(id) && processes.has(id) },
        { name: "common", test: (id) => !programs.test(id) && common.has(id) },
        { name: "jobs", test: (id) => !programs.test(id) && jobs.has(id) },
        { name: "product", test: (id) => !programs.test(id) },
      ],
    },
  });
}

/**
 * Writes characters beyond ASCII as escapes: V8 keeps a source that has one with two bytes a character, and each thread takes
 * twice as long to read it.
 * @param {string} code
 */
function inAscii(code) {
  const raw = /String\.raw`[^`]*[\u0080-\uffff][^`]*`/.exec(code);
  if (raw !== null) throw new Error(`[join] expected String.raw of ASCII alone, got ${raw[0]}`);
  return code.replaceAll(
    /[\u0080-\uffff]/g,
    (unit) => `\\u${unit.charCodeAt(0).toString(16).padStart(4, "0")}`,
  );
}

/**
 * Returns some modules and all that they import, directly or not, other than dynamically.
 * @param {readonly string[]} ids
 * @param {(id: string) => readonly string[]} importsOf
 */
function reached(ids, importsOf) {
  const all = new Set(ids);
  for (const id of all) for (const imported of importsOf(id)) all.add(imported);
  return all;
}
