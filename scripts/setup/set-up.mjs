import { ensureNative } from "./native.mjs";
import { ensureNpmPackages } from "./npm-packages.mjs";

/**
 * Everything that a fresh clone needs before the product runs: npm packages with Node 24, libtorch, the addon.
 * Each part does nothing when its result is already there.
 */
export async function setUp() {
  await ensureNpmPackages();
  await ensureNative();
}
