import { join } from "node:path";
import { aptCommand, aptInstall, canApt } from "./apt.mjs";
import { build, configure, refusedByCmake } from "./build.mjs";
import { readBuildInfo, sourceHash } from "./build-info.mjs";
import { ensureGlooHeaders, glooHeadersFound } from "./gloo.mjs";
import { copyAddon, forgetOldest, keptFolder } from "./kept-addon.mjs";
import { layout } from "./layout.mjs";
import { lookAt, lookForLibtorch, ownVariable, versionIn } from "./libtorch-find.mjs";
import { installLibtorch } from "./libtorch-install.mjs";
import { withLock } from "./lock.mjs";
import { makeOwnFolder } from "./ownership.mjs";
import { isLinked, placePrebuilt } from "./prebuilt.mjs";
import { note, SetupError, step } from "./say.mjs";
import { missingTools } from "./tools.mjs";

/** @typedef {import("./libtorch-find.mjs").Libtorch} Libtorch */

/**
 * Makes sure that build/troupe.node is the addon of the present sources: takes one that a package has brought, with a libtorch that is
 * here or is fetched; else one that another clone or installation has built; else finds or installs libtorch, builds, tries, and
 * puts it in place. Does nothing, in a few milliseconds, while sources and libtorch are as they were.
 */
export async function ensureNative() {
  if (isCurrent(layout.build)) return;
  if (await placePrebuilt(layout.build)) return;
  const kept = keptFolder();
  // No addon is taken from a folder in which another user could have put one.
  if (makeOwnFolder(kept) !== undefined) return buildNative();
  await withLock(join(kept, "lock"), async () => {
    if (isCurrent(kept)) return copyAddon(kept, layout.build);
    await buildNative();
    copyAddon(layout.build, kept);
    forgetOldest();
  });
}

async function buildNative() {
  await ensureTools();
  const libtorch = await libtorchToBuildWith();
  await build(libtorch, layout.build);
}

/**
 * Whether the addon of a build folder is what a build would give now. A libtorch once built against stays the one
 * until it goes, changes its version, or the own variable names another.
 * @param {string} folder
 */
export function isCurrent(folder) {
  const info = readBuildInfo(folder);
  if (info === undefined) return false;
  const named = process.env[ownVariable];
  if (named && lookAt(ownVariable, named).libtorch?.configFolder !== info.torch.configFolder) return false;
  if (versionIn(info.torch.configFolder) !== info.torch.version) return false;
  if (info.package !== undefined)
    return isLinked(folder) && info.sourceHash === sourceHash({ headers: false });
  if (glooHeadersFound() && !info.glooHeaders) return false;
  return info.sourceHash === sourceHash();
}

/** A compiler, cmake and make: brought by apt where this can be done without asking. */
export async function ensureTools() {
  const missing = missingTools();
  if (missing.length === 0) return;
  const packages = missing.map(({ debian }) => debian);
  const names = missing.map(({ program }) => program).join(", ");
  if (!canApt())
    throw new SetupError({
      where: "tools",
      expected: names,
      got: "none, or too old a one",
      hint: aptCommand(packages),
    });
  const { ok, tail } = await step(names, "apt install, 1 min", () => aptInstall(packages));
  if (!ok)
    throw new SetupError(
      { where: "tools", expected: `apt to install ${packages.join(" ")}`, got: "a failure" },
      tail,
    );
}

/**
 * The best libtorch that cmake accepts, installed when there is none. A torch with CUDA, for one, is refused by cmake
 * where CUDA's own headers are missing.
 * @returns {Promise<Libtorch>} configured in the build folder
 */
async function libtorchToBuildWith() {
  for (const { source, path, libtorch, refused } of lookForLibtorch()) {
    if (source === ownVariable && refused !== undefined) {
      throw new SetupError({
        where: "libtorch",
        expected: `${ownVariable} to name a libtorch`,
        got: `${path}: ${refused}`,
        hint: "npx troupe doctor",
      });
    }
    if (libtorch === undefined || (!libtorch.headers && source !== ownVariable)) continue;
    await ensureGlooHeaders();
    const reason = await configure(libtorch, layout.build);
    if (reason === undefined) return libtorch;
    if (source === ownVariable) {
      throw refusedByCmake(`the torch ${libtorch.version} of ${path}`, reason);
    }
    note(
      `torch ${libtorch.version} of ${path} passed over: cmake refuses it (${join(layout.build, "build.log")})`,
    );
  }
  const installed = await installLibtorch();
  await ensureGlooHeaders();
  const reason = await configure(installed, layout.build);
  if (reason !== undefined) throw refusedByCmake("the installed libtorch", reason);
  return installed;
}
