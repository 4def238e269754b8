import { existsSync, readFileSync, rmSync, symlinkSync } from "node:fs";
import { join } from "node:path";
import { capture } from "./child.mjs";
import { layout, nodeFloor, root } from "./layout.mjs";
import { SetupError, step } from "./say.mjs";

/**
 * @typedef {{ packages: Record<string, { version?: string, optional?: boolean }> }} LockFile
 */

/** Brings node_modules to what package-lock.json says, and makes sure that Node 24 stands in it. */
export async function ensureNpmPackages() {
  if (!packagesMatchLock()) {
    await step("npm packages", "npm ci, about 160 MB and 20 s", async () => {
      // NODE_ENV=production would leave out those that build and test, and each start would install all of them again.
      const args = ["ci", "--include=dev", "--loglevel=error"];
      const { ok, tail } = await capture("npm", args, { cwd: root });
      if (!ok)
        throw new SetupError(
          { where: "npm ci", expected: "every package of package-lock.json", got: "a failure of npm" },
          tail,
        );
    });
  }
  if (!nodeIsThere()) await bringNode();
}

/** Whether node_modules is what package-lock.json says, with Node 24 in it. */
export function packagesAreCurrent() {
  return packagesMatchLock() && nodeIsThere();
}

/** npm keeps the list of what it installed beside it; only optional packages (other platforms) may be missing. */
function packagesMatchLock() {
  const installedList = join(layout.packages, ".package-lock.json");
  if (!existsSync(installedList)) return false;
  const wanted = readLock(layout.lockFile);
  const installed = readLock(installedList);
  return Object.entries(wanted.packages).every(([path, { version, optional }]) => {
    if (path === "") return true;
    const found = installed.packages[path];
    return found === undefined ? optional === true : found.version === version;
  });
}

/**
 * npm 12 runs no install script of a package; the `node` package fetches its binary, from npm too, in one. npm makes no
 * link to a binary that does not exist yet either.
 */
async function bringNode() {
  await step("Node 24", "npm install, about 45 MB and 5 s", async () => {
    const cwd = join(layout.packages, "node");
    const { ok, tail } = await capture(process.execPath, ["installArchSpecificPackage.js"], { cwd });
    if (!ok) {
      throw new SetupError(
        {
          where: "node",
          expected: `Node ${nodeFloor} or newer of npm's \`node\` package`,
          got: "none",
          hint: "install it",
        },
        tail,
      );
    }
    rmSync(layout.node, { force: true });
    symlinkSync(join("..", "node", "bin", "node"), layout.node);
  });
}

function nodeIsThere() {
  return Number.parseInt(process.versions.node, 10) >= nodeFloor || existsSync(layout.node);
}

/**
 * @param {string} path
 * @returns {LockFile}
 */
function readLock(path) {
  return JSON.parse(readFileSync(path, "utf8"));
}
