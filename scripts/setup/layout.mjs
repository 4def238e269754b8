import { existsSync } from "node:fs";
import { createRequire } from "node:module";
import { dirname, join } from "node:path";
import { fileURLToPath } from "node:url";
import { userCache } from "./ownership.mjs";

/** The root folder of the clone, or of the package where it is installed, absolute. */
export const root = fileURLToPath(new URL("../..", import.meta.url));

/** Whether this is a clone: the package has no lock file, its npm packages are its user's. */
export const isClone = existsSync(join(root, "package-lock.json"));

const cache = userCache();

/**
 * Absolute paths of the files that set-up makes, which git ignores, and of their sources. The libtorch and the addons of
 * set-up stay in the user's cache: a package's folder is replaced by each new installation, and clones share them.
 */
export const layout = {
  packages: join(root, "node_modules"),
  lockFile: join(root, "package-lock.json"),
  native: join(root, "native"),
  build: join(root, "build"),
  lock: join(root, "build", "lock"),
  cache,
  libtorch: join(cache, "libtorch"),
  ownLibtorch: join(root, ".libtorch"),
  node: join(root, "node_modules", ".bin", "node"),
};

/** Whether the product's sources are here: by this file `import "troupe"` finds them too (src/entries/index.js). */
const hasSources = existsSync(join(root, "src", "entries", "package.json"));

/**
 * The URL of a module of the product: of its source where that is here, else of what was built of it.
 * @param {string} name - below src/, without its ending
 */
export function productModule(name) {
  return new URL(hasSources ? `../../src/${name}.ts` : `../../dist/${name}.js`, import.meta.url).href;
}

/** Major version of Node that the product needs. */
export const nodeFloor = 24;

/**
 * The Node that runs the product: the one npm brought, else the present one where it is new enough.
 * @throws {Error} when neither is there, which set-up rules out
 */
export function productNode() {
  if (existsSync(layout.node)) return layout.node;
  if (Number.parseInt(process.versions.node, 10) >= nodeFloor) return process.execPath;
  throw new Error(
    `[set-up] expected Node ${nodeFloor} or newer, got ${process.version}, and no ${layout.node} (npm ci)`,
  );
}

/** Whether the npm packages are there that Troupe needs; not so in a clone until set-up or `npm ci` has run. */
export function hasPackages() {
  try {
    return packageFolder("node-api-headers") !== "";
  } catch {
    return false;
  }
}

/**
 * The folder of an npm package that the addon is built with, wherever npm has put it.
 * @param {string} name
 */
export function packageFolder(name) {
  return dirname(createRequire(import.meta.url).resolve(`${name}/package.json`));
}
