import { existsSync, readFileSync } from "node:fs";
import { delimiter, join, resolve } from "node:path";
import { layout } from "./layout.mjs";
import { whyUnsafe } from "./ownership.mjs";
import { pythons } from "./pythons.mjs";

/**
 * A libtorch on this machine.
 * @typedef {object} Libtorch
 * @property {string} source - what led to it: a variable's name, a Python, a folder
 * @property {string} configFolder - the folder of TorchConfig.cmake, absolute: cmake's Torch_DIR
 * @property {string} version - e.g. "2.13.0"
 * @property {boolean} cuda - built with CUDA
 * @property {string} [cudaVersion] - such as "13.0", where it says so
 * @property {string} libraries - the folder of its libraries
 * @property {boolean} headers - it can be built against
 */

/**
 * A place that was looked at.
 * @typedef {object} Look
 * @property {string} source
 * @property {string} [path] - the folder that the source names; absent when it names none
 * @property {Libtorch} [libtorch] - what is there
 * @property {string} [refused] - why it cannot be used
 */

/** @typedef {Record<string, string | undefined>} Environment */

/** The oldest libtorch that the addon builds against. */
export const oldestVersion = "1.13.0";

/** The variable that names the libtorch to use; when it is set, no other is looked for. */
export const ownVariable = "TROUPE_LIBTORCH";

/**
 * Looks for libtorch, one place at a time and best first, so that a caller can stop the search at the first that fits: the own
 * variable, the usual variables, what set-up installed, each Python's torch, system folders. Each hit really exists.
 * @param {Environment} [env]
 * @returns {Generator<Look>}
 */
export function* lookForLibtorch(env = process.env) {
  if (env[ownVariable]) {
    yield lookAt(ownVariable, env[ownVariable]);
    return;
  }
  for (const { source, path } of [
    ...foldersOfVariables(env),
    { source: ".libtorch", path: layout.ownLibtorch },
    { source: "cache", path: layout.libtorch },
    ...pythons(env),
  ]) {
    yield path === undefined ? { source, refused: "has no torch" } : lookAt(source, path);
  }
  for (const path of systemFolders()) yield lookAt("system", path);
}

/**
 * The libtorch in a folder: the folder of TorchConfig.cmake itself, a libtorch's root, or a Python's site-packages.
 * @param {string} source
 * @param {string} path
 * @returns {Look}
 */
export function lookAt(source, path) {
  const folder = resolve(path);
  const configFolder = ["", "share/cmake/Torch", "lib/cmake/Torch", "Torch", "torch/share/cmake/Torch"]
    .map((below) => join(folder, below))
    .find((candidate) => existsSync(join(candidate, "TorchConfig.cmake")));
  if (configFolder === undefined) return { source, path: folder, refused: "no TorchConfig.cmake there" };
  const version = versionIn(configFolder);
  if (version === undefined)
    return { source, path: folder, refused: "no version in TorchConfigVersion.cmake" };
  if (olderThan(version, oldestVersion)) {
    return { source, path: folder, refused: `torch ${version} is older than ${oldestVersion}` };
  }
  const libraries = libraryFolders(configFolder).find((each) => hasLibrary(each, "torch"));
  if (libraries === undefined) {
    return { source, path: folder, refused: "its libtorch library is missing" };
  }
  const loaded = ["torch", "torch_cpu", "c10"].flatMap((name) =>
    namesOf(name).map((file) => join(libraries, file)),
  );
  const reason = [join(configFolder, "TorchConfig.cmake"), ...loaded.filter((file) => existsSync(file))]
    .map(whyUnsafe)
    .find((each) => each !== undefined);
  if (reason !== undefined) return { source, path: folder, refused: reason };
  const cuda = hasLibrary(libraries, "torch_cuda");
  const cudaVersion = cudaVersionIn(libraries);
  const headers = ["../../../include", "../../../../include"].some((below) =>
    existsSync(resolve(configFolder, below, "ATen")),
  );
  const libtorch = { source, configFolder, version, cuda, libraries, headers };
  return {
    source,
    path: folder,
    libtorch: cudaVersion === undefined ? libtorch : { ...libtorch, cudaVersion },
  };
}

/**
 * The version of CUDA that a wheel's libtorch was built with.
 * @param {string} libraries
 */
function cudaVersionIn(libraries) {
  const file = resolve(libraries, "..", "version.py");
  if (!existsSync(file)) return undefined;
  return /^cuda\b.*= '([\d.]+)'/m.exec(readFileSync(file, "utf8"))?.[1];
}

/**
 * The version that a folder of TorchConfig.cmake states; undefined when it is gone or states none.
 * @param {string} configFolder
 */
export function versionIn(configFolder) {
  const file = join(configFolder, "TorchConfigVersion.cmake");
  if (!existsSync(file)) return undefined;
  return /PACKAGE_VERSION "?([\d.]+)/.exec(readFileSync(file, "utf8"))?.[1];
}

/** @param {Environment} env */
function foldersOfVariables(env) {
  const single = ["LIBTORCH", "Torch_DIR"].map((source) => ({ source, path: env[source] ?? "" }));
  const prefixes = (env.CMAKE_PREFIX_PATH ?? "").split(new RegExp(`[;${delimiter}]`));
  const listed = prefixes.map((path) => ({ source: "CMAKE_PREFIX_PATH", path }));
  return [...single, ...listed].filter(({ path }) => path !== "");
}

/** Where Debian puts its own libtorch. */
export function debianFolder() {
  return `/usr/lib/${process.arch === "arm64" ? "aarch64" : "x86_64"}-linux-gnu/cmake/Torch`;
}

function systemFolders() {
  const libraries = ["/usr/lib", "/usr/lib64", "/usr/local/lib", "/usr/local/lib64"];
  return [
    debianFolder(),
    ...libraries.map((library) => `${library}/cmake/Torch`),
    "/usr/local/libtorch",
    "/opt/libtorch",
    "/opt/homebrew",
  ];
}

/**
 * A wheel keeps share/cmake/Torch beside lib; Debian keeps lib/<multiarch>/cmake/Torch in it.
 * @param {string} configFolder
 */
function libraryFolders(configFolder) {
  return [resolve(configFolder, "../../../lib"), resolve(configFolder, "../..")];
}

/**
 * @param {string} folder
 * @param {string} name
 */
function hasLibrary(folder, name) {
  return namesOf(name).some((file) => existsSync(join(folder, file)));
}

/** @param {string} name */
function namesOf(name) {
  return [`lib${name}.so`, `lib${name}.dylib`];
}

/**
 * @param {string} version
 * @param {string} floor
 */
function olderThan(version, floor) {
  return version.localeCompare(floor, "en", { numeric: true }) < 0;
}
