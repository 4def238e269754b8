import { copyFileSync, mkdirSync, readFileSync, rmSync, symlinkSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { build, configure } from "../setup/build.mjs";
import { addonIn, readBuildInfo, sourceHash, writeBuildInfo } from "../setup/build-info.mjs";
import { ask } from "../setup/child.mjs";
import { root } from "../setup/layout.mjs";
import { minorOf } from "../setup/prebuilt.mjs";
import { SetupError } from "../setup/say.mjs";

/** @typedef {import("../setup/libtorch-find.mjs").Libtorch} Libtorch */

const olderGlibc = fileURLToPath(new URL("./older-glibc.h", import.meta.url));
/** The newest versions of the symbols that libtorch's wheels ask for, manylinux_2_28's. */
const newest = { GLIBC: "2.28", GLIBCXX: "3.4.25", CXXABI: "1.3.11" };

/**
 * Builds the addon for one minor version of libtorch, to run on other machines, and lays out its package.
 * @param {Libtorch} libtorch
 * @param {string} folder - for everything that is made
 * @param {string} version - of the package
 * @returns {Promise<{ name: string, path: string } | string>} the package's name and folder; else why it cannot be built
 */
export async function buildNativePackage(libtorch, folder, version) {
  const work = join(folder, `torch${minorOf(libtorch.version)}${libtorch.cuda ? "-cuda" : ""}`);
  mkdirSync(work, { recursive: true });
  rmSync(join(work, "libtorch"), { force: true });
  symlinkSync(libtorch.libraries, join(work, "libtorch"));
  const reason = await configure(libtorch, work, {
    CMAKE_CXX_FLAGS: `-include "${olderGlibc}"`,
    // The addon finds libtorch by the link beside it, and is refused at once where that is of another version.
    CMAKE_SKIP_RPATH: "ON",
    CMAKE_MODULE_LINKER_FLAGS: `-s -Wl,-z,now${searched(libtorch)
      .map((path) => `,-rpath,\\$ORIGIN/libtorch${path}`)
      .join("")}`,
  });
  if (reason !== undefined) return reason;
  await build(libtorch, work);
  checkSymbols(addonIn(work));
  const path = join(work, "package");
  return { name: layOut(path, version, work, libtorch), path };
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
export function layOut(path, version, built, { version: torch, cuda, cudaVersion }) {
  rmSync(path, { recursive: true, force: true });
  mkdirSync(path, { recursive: true });
  const info = readBuildInfo(built);
  if (info === undefined || !info.glooHeaders)
    throw new SetupError({ where: "release", expected: "an addon with Gloo", got: "one without" });
  copyFileSync(addonIn(built), addonIn(path));
  writeBuildInfo(path, {
    ...info,
    sourceHash: sourceHash({ headers: false }),
    torch: { version: torch, configFolder: "", source: "", cuda, ...(cudaVersion && { cudaVersion }) },
    platform: `${process.platform}-${process.arch}`,
  });
  const kind = cuda ? `-cuda${cudaVersion?.split(".")[0]}` : "";
  const { license } = JSON.parse(readFileSync(join(root, "package.json"), "utf8"));
  const manifest = {
    name: `@troupe/native-${process.platform}-${process.arch}-torch${minorOf(torch)}${kind}`,
    version,
    description: `Troupe's addon for libtorch ${minorOf(torch)}${cuda ? ` with CUDA ${cudaVersion}` : ""}`,
    license,
    os: [process.platform],
    cpu: [process.arch],
    libc: ["glibc"],
    files: ["troupe.node", "build-info.json"],
  };
  writeFileSync(join(path, "package.json"), `${JSON.stringify(manifest, null, 2)}\n`);
  copyFileSync(join(root, "LICENSE"), join(path, "LICENSE"));
  return manifest.name;
}

/**
 * @param {string} addon
 * @throws {SetupError} if it asks for more of the system than libtorch's wheels do
 */
function checkSymbols(addon) {
  const { ok, stdout, tail } = ask("objdump", ["-T", addon]);
  if (!ok) throw new SetupError({ where: "release", expected: "objdump to run", got: tail });
  const tooNew = [...stdout.matchAll(/\((GLIBC|GLIBCXX|CXXABI)_([\d.]+)\)\s+(\S+)/g)]
    .filter(([, kind, version]) => isNewer(version ?? "", newest[/** @type {keyof typeof newest} */ (kind)]))
    .map(([, kind, version, symbol]) => `${symbol} of ${kind} ${version}`);
  if (tooNew.length === 0) return;
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
