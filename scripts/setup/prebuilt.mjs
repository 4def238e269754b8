import { cpSync, existsSync, mkdirSync, readFileSync, renameSync, rmSync, symlinkSync } from "node:fs";
import { createRequire } from "node:module";
import { dirname, join } from "node:path";
import { canApt } from "./apt.mjs";
import { tryAddon } from "./build.mjs";
import { addonIn, readBuildInfo, sourceHash, writeBuildInfo } from "./build-info.mjs";
import { placeForkServer } from "./kept-addon.mjs";
import { root } from "./layout.mjs";
import { lookForLibtorch, ownVariable } from "./libtorch-find.mjs";
import { fetchLibtorch, mending } from "./libtorch-install.mjs";
import { note, SetupError } from "./say.mjs";
import { missingTools } from "./tools.mjs";
import { wheelOfThisMachine } from "./wheels.mjs";

/** @typedef {import("./libtorch-find.mjs").Libtorch} Libtorch */
/** @typedef {import("./build-info.mjs").BuildInfo} BuildInfo */

/**
 * An addon that was built elsewhere, in a package of its own. It runs with every libtorch of its minor version.
 * @typedef {object} Prebuilt
 * @property {string} name - of its package
 * @property {string} folder
 * @property {BuildInfo} info
 */

/**
 * How this installation gets its addon, and why.
 * @typedef {object} Choice
 * @property {"prebuilt" | "fetch" | "compile"} way - `fetch`: prebuilt, with a libtorch that is to be fetched
 * @property {Prebuilt} [prebuilt]
 * @property {Libtorch} [libtorch]
 * @property {string} why
 */

/** The folder beside an addon that was built elsewhere, a link: there the addon looks for libtorch. */
const LINK = "libtorch";

/**
 * Chooses, looking at files alone.
 * @param {ReturnType<typeof prebuiltAddons>} [addons]
 * @param {Record<string, string | undefined>} [env]
 * @returns {Choice}
 */
export function chooseAddon({ fitting, others } = prebuiltAddons(), env = process.env) {
  if (fitting.length === 0) {
    const why = others.length === 0 ? "no prebuilt addon is installed" : others.join("; ");
    return { way: "compile", why };
  }
  const looks = [...lookForLibtorch(env)];
  const found = looks.flatMap(({ libtorch }) => (libtorch === undefined ? [] : [libtorch]));
  // Without a GPU, the one for the CPU: it loads nothing of CUDA.
  const wantsCuda = hasGpu();
  const bestFirst = fitting.toSorted(({ info: one }, { info: other }) => {
    if (one.torch.cuda === other.torch.cuda) return 0;
    return one.torch.cuda === wantsCuda ? -1 : 1;
  });
  for (const libtorch of found) {
    const prebuilt = bestFirst.find((each) => fits(each.info, libtorch));
    const why = `torch ${libtorch.version} of ${libtorch.source} is the first that an addon fits`;
    if (prebuilt !== undefined) return { way: "prebuilt", prebuilt, libtorch, why };
  }
  const versions = found.map(
    ({ version, cuda, source }) => `torch ${version}${cuda ? " with CUDA" : ""} of ${source}`,
  );
  const unfit =
    versions.length === 0 ? "no libtorch is here" : `no prebuilt addon for ${versions.join(", ")}`;
  if (env[ownVariable]) return { way: "compile", why: unfit };
  if (hasGpu() && found.some(({ cuda }) => cuda))
    return { way: "compile", why: `${unfit}, and here is a GPU` };
  const wheel = wheelOfThisMachine();
  const prebuilt = fitting.find(
    ({ info }) => wheel !== undefined && !info.torch.cuda && isOfMinor(info, wheel.version),
  );
  if (prebuilt !== undefined) return { way: "fetch", prebuilt, why: unfit };
  return { way: "compile", why: unfit };
}

/**
 * Places the chosen addon in a build folder, unless it is to be compiled.
 * @param {string} folder
 * @returns {Promise<boolean>} whether it is there
 */
export async function placePrebuilt(folder) {
  const { prebuilt, libtorch: found, way } = chooseAddon();
  if (prebuilt === undefined) return false;
  const libtorch = way === "fetch" ? await fetchLibtorch("run") : found;
  if (typeof libtorch === "string" && missingTools().length > 0 && !canApt())
    throw new SetupError(
      {
        where: "libtorch",
        expected: "one here, or its wheel",
        got: "neither",
        hint: "one of these mends it",
      },
      `${libtorch}\n${mending()}`,
    );
  if (libtorch === undefined || typeof libtorch === "string") {
    note(`no wheel of torch for the CPU:\n${libtorch}`);
    return false;
  }
  mkdirSync(folder, { recursive: true });
  const link = join(folder, `${LINK}.${process.pid}`);
  symlinkSync(libtorch.libraries, link);
  renameSync(link, join(folder, LINK));
  const candidate = join(folder, `troupe.${process.pid}.node`);
  try {
    cpSync(addonIn(prebuilt.folder), candidate);
    const addon = await tryAddon(candidate);
    renameSync(candidate, addonIn(folder));
    placeForkServer(prebuilt.folder, folder);
    const { version, configFolder, source, cuda } = libtorch;
    writeBuildInfo(folder, {
      ...prebuilt.info,
      package: prebuilt.name,
      torch: { version, configFolder, source, cuda },
      addon,
    });
    return true;
  } catch (error) {
    note(`${prebuilt.name} passed over: ${/** @type {Error} */ (error).message}`);
    return false;
  } finally {
    rmSync(candidate, { force: true });
  }
}

/**
 * Whether the libtorch that an addon which was built elsewhere is linked to is still there.
 * @param {string} folder
 */
export function isLinked(folder) {
  return existsSync(join(folder, LINK));
}

/**
 * The installed packages with an addon for this machine, of these very sources, and why others are not taken.
 * @returns {{ fitting: Prebuilt[], others: string[] }}
 */
function prebuiltAddons() {
  const { optionalDependencies = {} } = JSON.parse(readFileSync(join(root, "package.json"), "utf8"));
  /** @type {Prebuilt[]} */
  const fitting = [];
  const others = [];
  const hash = sourceHash({ headers: false });
  for (const name of Object.keys(optionalDependencies)) {
    const folder = folderOf(name);
    const info = folder === undefined ? undefined : readBuildInfo(folder);
    if (folder === undefined || info === undefined) others.push(`${name} is not installed`);
    else if (info.platform !== `${process.platform}-${process.arch}`)
      others.push(`${name} is for ${info.platform}`);
    else if (info.sourceHash !== hash) others.push(`${name} is of other sources`);
    else fitting.push({ name, folder, info });
  }
  return { fitting, others };
}

/** @param {string} name */
function folderOf(name) {
  try {
    return dirname(createRequire(import.meta.url).resolve(`${name}/package.json`));
  } catch {
    return undefined;
  }
}

/**
 * @param {BuildInfo} info
 * @param {Libtorch} libtorch
 */
function fits(info, { version, cuda, cudaVersion = "" }) {
  if (!isOfMinor(info, version)) return false;
  if (info.torch.cuda) return cuda && majorOf(cudaVersion) === majorOf(info.torch.cudaVersion ?? "");
  return !cuda || !hasGpu();
}

/**
 * @param {BuildInfo} info
 * @param {string} version
 */
function isOfMinor(info, version) {
  return minorOf(info.torch.version) === minorOf(version);
}

/**
 * The first two numbers of a version: between libtorch's minors its binary interface changes.
 * @param {string} version
 */
export function minorOf(version) {
  return version.split(".").slice(0, 2).join(".");
}

/** @param {string} version */
function majorOf(version) {
  return version.split(".")[0];
}

/** Whether there is a driver of NVIDIA's, and with it a GPU. */
function hasGpu() {
  return existsSync("/proc/driver/nvidia/version");
}
