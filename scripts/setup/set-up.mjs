import { isClone, layout } from "./layout.mjs";
import { withLock } from "./lock.mjs";
import { ensureNative, isCurrent } from "./native.mjs";
import { ensureNpmPackages, packagesAreCurrent } from "./npm-packages.mjs";

/**
 * Everything that a fresh clone needs before the product runs: npm packages with Node 24, libtorch, the addon. Where the
 * package is installed, npm has brought the first.
 * Each part does nothing when its result is already there. Of several processes one works and the others wait for it.
 */
export async function setUp() {
  if ((!isClone || packagesAreCurrent()) && isCurrent(layout.build)) return;
  await withLock(layout.lock, async () => {
    if (isClone) await ensureNpmPackages();
    await ensureNative();
  });
}
