// node scripts/test-debian-libtorch.mjs: builds the addon against Debian's own libtorch, in a folder of its own, and runs
// the test suite with it. Proves that the fallback of set-up holds.
import { join } from "node:path";
import { build, configure, refusedByCmake } from "./setup/build.mjs";
import { addonIn } from "./setup/build-info.mjs";
import { handOver } from "./setup/child.mjs";
import { layout, productNode } from "./setup/layout.mjs";
import { debianLibtorch, installDebian } from "./setup/libtorch-install.mjs";
import { withLock } from "./setup/lock.mjs";
import { ensureTools } from "./setup/native.mjs";
import { ensureNpmPackages } from "./setup/npm-packages.mjs";
import { main, SetupError } from "./setup/say.mjs";

await main(async () => {
  const folder = join(layout.build, "debian");
  await withLock(layout.lock, async () => {
    await ensureNpmPackages();
    await ensureTools();
    const libtorch = debianLibtorch() ?? (await installDebian());
    if (typeof libtorch === "string")
      throw new SetupError({ where: "libtorch", expected: "Debian's libtorch-dev", got: libtorch });
    const reason = await configure(libtorch, folder);
    if (reason !== undefined) throw refusedByCmake("Debian's libtorch", reason);
    await build(libtorch, folder);
  });
  const vitest = join(layout.packages, "vitest", "vitest.mjs");
  const env = { ...process.env, TROUPE_ADDON: addonIn(folder) };
  process.exitCode = await handOver(productNode(), [vitest, "run", ...process.argv.slice(2)], env);
});
