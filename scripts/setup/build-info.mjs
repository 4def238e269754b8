import { createHash } from "node:crypto";
import { existsSync, readdirSync, readFileSync, renameSync, writeFileSync } from "node:fs";
import { join, relative } from "node:path";
import { layout, packageFolder } from "./layout.mjs";

/**
 * The sources and libtorch that an addon was built from, kept beside it as build-info.json.
 * @typedef {object} BuildInfo
 * @property {string} sourceHash - of everything under native/, and of Node's headers where it was built here
 * @property {{ version: string, configFolder: string, source: string, cuda: boolean, cudaVersion?: string }} torch
 * @property {boolean} glooHeaders - they were there when it was built
 * @property {Record<string, unknown>} addon - what the addon says of itself: ABI, Gloo, instruction set
 * @property {string} compiler - e.g. "GNU 12.2.0"
 * @property {string} [platform] - such as "linux-x64", where it was built for others
 * @property {string} [package] - the package that brought it
 */

/**
 * The addon of a build folder.
 * @param {string} folder
 */
export function addonIn(folder) {
  return join(folder, "troupe.node");
}

/**
 * The library of a build folder that makes Node a server that forks; only on Linux.
 * @param {string} folder
 */
export function forkServerIn(folder) {
  return join(folder, "fork-server.so");
}

/**
 * Reads the build info of the addon in a build folder; undefined when there is none.
 * @param {string} folder
 * @returns {BuildInfo | undefined}
 */
export function readBuildInfo(folder) {
  const file = join(folder, "build-info.json");
  if (!existsSync(file) || !existsSync(addonIn(folder))) return undefined;
  return JSON.parse(readFileSync(file, "utf8"));
}

/**
 * @param {string} folder
 * @param {BuildInfo} info
 */
export function writeBuildInfo(folder, info) {
  const file = join(folder, "build-info.json");
  writeFileSync(`${file}.new`, `${JSON.stringify(info, null, 2)}\n`);
  renameSync(`${file}.new`, file);
}

/** The native sources, absolute and in order. */
export function nativeSources() {
  return readdirSync(layout.native, { recursive: true, encoding: "utf8" })
    .filter((file) => /(\.(c|cc|cu|h|cuh)|CMakeLists\.txt)$/.test(file))
    .map((file) => join(layout.native, file))
    .sort();
}

/**
 * Changes whenever a build would give another addon from the same libtorch; the same in a clone and where it is installed.
 * @param {{ headers?: boolean }} [options] - headers: of Node too, whose versions an installation chooses for itself
 */
export function sourceHash({ headers = true } = {}) {
  const hash = createHash("sha256");
  const sources = nativeSources().map((file) => ({ name: relative(layout.native, file), file }));
  const packages = ["node-api-headers", "node-addon-api"].map((name) => ({
    name: `../node_modules/${name}/package.json`,
    file: join(packageFolder(name), "package.json"),
  }));
  for (const { name, file } of headers ? [...sources, ...packages] : sources)
    hash.update(name).update("\0").update(readFileSync(file)).update("\0");
  return hash.digest("hex");
}
