import { copyFileSync, mkdirSync, readFileSync, rmSync, symlinkSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { build, configure } from "../setup/build.mjs";
import { addonIn, forkServerIn, readBuildInfo, sourceHash, writeBuildInfo } from "../setup/build-info.mjs";
import { ask } from "../setup/child.mjs";
import { placeForkServer } from "../setup/kept-addon.mjs";
import { root } from "../setup/layout.mjs";
import { minorOf } from "../setup/prebuilt.mjs";
import { SetupError } from "../setup/say.mjs";

/** @typedef {import("../setup/libtorch-find.mjs").Libtorch} Libtorch */

const olderGlibc = fileURLToPath(new URL("./older-glibc.h", import.meta.url));
/** The newest versions of the symbols that libtorch's wheels ask for, manylinux_2_28's. */
const newest = { GLIBC: "2.28", GLIBCXX: "3.4.25", CXXABI: "1.3.11" };
/** The GPUs that CUDA's packages have code for, by compute capability; those between and after them run it too. */
const cudaArchitectures = "8.0;9.0;10.0";

/**
 * Builds the addon for one minor version of libtorch, to run on other machines, and lays out its package.
 * @param {Libtorch} libtorch - for the CPU if its `cuda` is false, even if it has CUDA
 * @param {string} folder - for everything that is made
 * @param {string} version - of the package
 * @returns {Promise<{ name: string, path: string, glibc: string } | string>} the package's name and folder, and the glibc that it
 *   needs; else why it cannot be built
 */
export async function buildNativePackage(libtorch, folder, version) {
  const work = join(folder, `torch${kindOf(libtorch)}`);
  mkdirSync(work, { recursive: true });
  rmSync(join(work, "libtorch"), { force: true });
  symlinkSync(libtorch.libraries, join(work, "libtorch"));
  const reason = await configure(libtorch, work, {
    TROUPE_CUDA: libtorch.cuda ? "ON" : "OFF",
    TORCH_CUDA_ARCH_LIST: process.env.TORCH_CUDA_ARCH_LIST ?? cudaArchitectures,
    CMAKE_C_FLAGS: `-include "${olderGlibc}"`,
    CMAKE_CXX_FLAGS: `-include "${olderGlibc}"`,
    // The addon finds libtorch by the link beside it, and is refused at once where that is of another version.
    CMAKE_SKIP_RPATH: "ON",
    CMAKE_MODULE_LINKER_FLAGS: `-s -Wl,-z,now${searched(libtorch)
      .map((path) => `,-rpath,\\$ORIGIN/libtorch${path}`)
      .join("")}`,
  });
  if (reason !== undefined) return reason;
  await build(libtorch, work);
  checkSymbols(forkServerIn(work));
  const glibc = checkSymbols(addonIn(work));
  const path = join(work, "package");
  return { name: layOut(path, version, work, libtorch), path, glibc };
}

/**
 * Names a libtorch by what an addon depends on, such as "2.14-cuda13".
 * @param {Pick<Libtorch, "version" | "cuda" | "cudaVersion">} libtorch
 */
export function kindOf({ version, cuda, cudaVersion = "" }) {
  return `${minorOf(version)}${cuda ? `-cuda${cudaVersion.split(".")[0]}` : ""}`;
}

/**
 * Below libtorch's folder: itself, and where wheels with CUDA keep its runtime.
 * @param {Libtorch} libtorch
 */
function searched({ cuda }) {
  return cuda ? ["", "/../../nvidia/cu13/lib"] : [""];
}

/**
 * Lays out a package with an addon in it.
 * @param {string} path - its folder
 * @param {string} version
 * @param {string} built - a build folder with an addon in it, which finds libtorch by the link beside it
 * @param {Pick<Libtorch, "version" | "cuda" | "cudaVersion">} libtorch - that it was built against
 * @returns {string} the package's name
 */
export function layOut(path, version, built, libtorch) {
  const { version: torch, cuda, cudaVersion } = libtorch;
  rmSync(path, { recursive: true, force: true });
  mkdirSync(path, { recursive: true });
  const info = readBuildInfo(built);
  if (info === undefined || !info.glooHeaders)
    throw new SetupError({ where: "release", expected: "an addon with Gloo", got: "one without" });
  copyFileSync(addonIn(built), addonIn(path));
  placeForkServer(built, path);
  writeBuildInfo(path, {
    ...info,
    sourceHash: sourceHash({ headers: false }),
    torch: { version: torch, configFolder: "", source: "", cuda, ...(cudaVersion && { cudaVersion }) },
    platform: `${process.platform}-${process.arch}`,
  });
  const { license } = JSON.parse(readFileSync(join(root, "package.json"), "utf8"));
  const manifest = {
    name: `@troupe/native-${process.platform}-${process.arch}-torch${kindOf(libtorch)}`,
    version,
    description: `Troupe's addon for libtorch ${minorOf(torch)}${cuda ? ` with CUDA ${cudaVersion}` : ""}`,
    license,
    os: [process.platform],
    cpu: [process.arch],
    libc: ["glibc"],
    files: ["troupe.node", "fork-server.so", "build-info.json"],
  };
  writeFileSync(join(path, "package.json"), `${JSON.stringify(manifest, null, 2)}\n`);
  copyFileSync(join(root, "LICENSE"), join(path, "LICENSE"));
  return manifest.name;
}

/**
 * Checks what an addon asks of the system's libraries.
 * @param {string} addon
 * @returns {string} the version of glibc that it needs
 * @throws {SetupError} if it asks for more than libtorch's wheels do
 */
export function checkSymbols(addon) {
  const { ok, stdout, tail } = ask("objdump", ["-T", addon]);
  if (!ok) throw new SetupError({ where: "release", expected: "objdump to run", got: tail });
  const needed = [...stdout.matchAll(/\((GLIBC|GLIBCXX|CXXABI)_([\d.]+)\)\s+(\S+)/g)].map(
    ([, kind = "", version = "", symbol]) => ({
      kind: /** @type {keyof typeof newest} */ (kind),
      version,
      symbol,
    }),
  );
  const tooNew = needed
    .filter(({ kind, version }) => isNewer(version, newest[kind]))
    .map(({ kind, version, symbol }) => `${symbol} of ${kind} ${version}`);
  const versions = needed.flatMap(({ kind, version }) => (kind === "GLIBC" ? [version] : []));
  if (tooNew.length === 0) return versions.reduce((one, other) => (isNewer(other, one) ? other : one), "0");
  throw new SetupError({
    where: "release",
    expected: `an addon for glibc ${newest.GLIBC}`,
    got: tooNew.join(", "),
    hint: "scripts/package/older-glibc.h",
  });
}

/**
 * @param {string} version
 * @param {string} floor
 */
function isNewer(version, floor) {
  return version.localeCompare(floor, "en", { numeric: true }) > 0;
}
