import { mkdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { basename, join } from "node:path";
import { capture } from "../setup/child.mjs";
import { SetupError } from "../setup/say.mjs";

/**
 * @typedef {{ name: string, filename: string, size: number, unpackedSize: number }} Packed - filename: in the folder for archives;
 *   size, unpackedSize: in bytes
 */

/**
 * Packs a package as npm does.
 * @param {string} path - its folder
 * @param {string} folder - for the archive
 * @param {string[]} [options] - of npm
 * @returns {Promise<Packed>}
 * @throws {SetupError} with what npm says
 */
export async function npmPack(path, folder, options = ["--ignore-scripts"]) {
  const args = ["pack", "--json", "--pack-destination", folder, ...options];
  const { ok, stdout, tail } = await capture("npm", args, { cwd: path });
  if (!ok)
    throw new SetupError({ where: "release", expected: `npm to pack ${path}`, got: "a failure" }, tail);
  const [packed] = JSON.parse(stdout);
  return packed;
}

/**
 * Packs Troupe again with the packages of its addon among its dependencies, each of which is installed where it fits.
 * @param {string} archive - what `npm pack` makes of a clone
 * @param {string} folder - for the archive
 * @param {Record<string, string>} optionalDependencies
 * @returns {Promise<Packed>}
 */
export async function packWithAddons(archive, folder, optionalDependencies) {
  const path = join(folder, basename(archive, ".tgz"));
  rmSync(path, { recursive: true, force: true });
  mkdirSync(path, { recursive: true });
  const { ok, tail } = await capture("tar", ["xzf", archive, "--strip-components=1", "-C", path]);
  if (!ok)
    throw new SetupError({ where: "release", expected: `tar to unpack ${archive}`, got: "a failure" }, tail);
  const file = join(path, "package.json");
  const { scripts: _, devDependencies: __, ...manifest } = JSON.parse(readFileSync(file, "utf8"));
  writeFileSync(file, `${JSON.stringify({ ...manifest, optionalDependencies }, null, 2)}\n`);
  return npmPack(path, folder);
}
