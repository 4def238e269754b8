import { copyFileSync, existsSync, mkdirSync, readFileSync, renameSync, rmSync } from "node:fs";
import { availableParallelism, freemem } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { addonIn, nativeSources, sourceHash, writeBuildInfo } from "./build-info.mjs";
import { capture } from "./child.mjs";
import { glooHeadersFound } from "./gloo.mjs";
import { placeForkServer } from "./kept-addon.mjs";
import { layout, packageFolder, productNode } from "./layout.mjs";
import { SetupError, step } from "./say.mjs";

/** @typedef {import("./libtorch-find.mjs").Libtorch} Libtorch */

/** Memory that compiling the files of a room takes at most, with libtorch's headers. */
const bytesPerJob = 1.4 * 2 ** 30;
/** One file on one core, on average, among the others of its room. */
const secondsPerFile = 2;

/**
 * Configures cmake against a libtorch.
 * @param {Pick<Libtorch, "configFolder">} libtorch
 * @param {string} folder - the build folder; cmake works in its subfolder native
 * @param {Record<string, string>} [others] - settings of cmake
 * @returns {Promise<string | undefined>} why this libtorch cannot be built against; undefined when it can
 */
export async function configure(libtorch, folder, others = {}) {
  const work = join(folder, "native");
  forgetOtherLibtorch(work, libtorch);
  mkdirSync(work, { recursive: true });
  const settings = {
    CMAKE_BUILD_TYPE: "Release",
    Torch_DIR: libtorch.configFolder,
    NODE_API_INCLUDE: join(packageFolder("node-api-headers"), "include"),
    NODE_ADDON_API_INCLUDE: packageFolder("node-addon-api"),
    ...others,
  };
  const defines = Object.entries(settings).map(([name, value]) => `-D${name}=${value}`);
  const { ok, tail } = await capture("cmake", ["-S", layout.native, "-B", work, ...defines], {
    log: logOf(folder),
  });
  return ok ? undefined : tail;
}

/**
 * The error for a required libtorch that {@link configure} refuses.
 * @param {string} name - of the libtorch
 * @param {string} reason - cmake's
 */
export function refusedByCmake(name, reason) {
  return new SetupError({ where: "libtorch", expected: `cmake to accept ${name}`, got: "a refusal" }, reason);
}

/**
 * Builds what was configured, tries it in a process of its own, and only then puts it in place.
 * @param {Libtorch} libtorch
 * @param {string} folder
 * @throws {SetupError} with the last lines of the compiler or of the trial
 */
export async function build(libtorch, folder) {
  const hash = sourceHash();
  const jobs = numJobs();
  const numFiles = nativeSources().filter((file) => file.endsWith(".cc")).length;
  const work = join(folder, "native");
  const minutes = Math.ceil((numFiles * secondsPerFile) / jobs / 60);
  await step(
    "addon",
    `${numFiles} C++ files, ${jobs} jobs, torch ${libtorch.version}, about ${minutes} min`,
    async () => {
      const args = ["--build", work, "--parallel", String(jobs)];
      const { ok, tail } = await capture("cmake", args, { log: logOf(folder), append: true });
      if (!ok)
        throw new SetupError(
          {
            where: "addon",
            expected: "native/ to compile",
            got: "errors",
            hint: `complete output: ${logOf(folder)}`,
          },
          tail,
        );
    },
  );
  const candidate = join(folder, `troupe.${process.pid}.node`);
  copyFileSync(join(work, "troupe.node"), candidate);
  try {
    const addon = await tryAddon(candidate);
    renameSync(candidate, addonIn(folder));
    placeForkServer(work, folder);
    const { version, configFolder, source, cuda } = libtorch;
    const torch = { version, configFolder, source, cuda };
    writeBuildInfo(folder, {
      sourceHash: hash,
      torch,
      glooHeaders: glooHeadersFound(),
      addon,
      compiler: compilerOf(folder),
    });
  } finally {
    rmSync(candidate, { force: true });
  }
}

/**
 * Loads an addon in a process of its own, where a crash harms nobody, and lets it multiply two matrices.
 * @param {string} addon
 * @returns {Promise<Record<string, unknown>>} what it says of itself
 */
export async function tryAddon(addon) {
  const script = fileURLToPath(new URL("./try-addon.mjs", import.meta.url));
  const { ok, stdout, tail } = await capture(productNode(), [script, addon]);
  if (!ok)
    throw new SetupError(
      { where: "addon", expected: "the new addon to load and multiply two matrices", got: "a failure" },
      tail,
    );
  return JSON.parse(stdout);
}

/** Cores, as far as the free memory feeds their compilers, at most eight. */
function numJobs() {
  const freeBytes = Math.min(freemem(), process.availableMemory?.() ?? Number.POSITIVE_INFINITY);
  return Math.max(1, Math.min(availableParallelism(), Math.floor(freeBytes / bytesPerJob), 8));
}

/**
 * cmake keeps the paths of the first libtorch it saw; with another one it starts afresh.
 * @param {string} work
 * @param {Pick<Libtorch, "configFolder">} libtorch
 */
function forgetOtherLibtorch(work, libtorch) {
  const cache = join(work, "CMakeCache.txt");
  if (!existsSync(cache)) return;
  const known = /^Torch_DIR:\w+=(.*)$/m.exec(readFileSync(cache, "utf8"))?.[1];
  if (known !== libtorch.configFolder) rmSync(work, { recursive: true, force: true });
}

/** @param {string} folder */
function logOf(folder) {
  return join(folder, "build.log");
}

/** @param {string} folder */
function compilerOf(folder) {
  return /^-- troupe: compiler (.*)$/m.exec(readFileSync(logOf(folder), "utf8"))?.[1] ?? "unknown";
}
