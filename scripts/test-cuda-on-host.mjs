// node scripts/test-cuda-on-host.mjs: builds the addon with the kernels for CUDA run by the host (test/gpu/on-host), and tests
// each of them with it: what can be proved of them where there is no GPU. An addon whose libtorch has CUDA has the kernels themselves:
// then it says so and does nothing.
import { existsSync } from "node:fs";
import { join } from "node:path";
import { configure, refusedByCmake } from "./setup/build.mjs";
import { readBuildInfo } from "./setup/build-info.mjs";
import { handOver } from "./setup/child.mjs";
import { layout, productNode } from "./setup/layout.mjs";
import { main, note, SetupError } from "./setup/say.mjs";
import { setUp } from "./setup/set-up.mjs";

await main(async () => {
  await setUp();
  const libtorch = readBuildInfo(layout.build)?.torch;
  if (libtorch === undefined || libtorch.cuda) {
    note("SKIPPED, no kernel for CUDA is run by the host: this addon has them for a GPU (npm run test:gpu)");
    return;
  }
  const work = join(layout.build, "native");
  if (!existsSync(join(work, "CMakeCache.txt"))) {
    const reason = await configure(libtorch, layout.build);
    if (reason !== undefined) throw refusedByCmake(`the libtorch of ${libtorch.configFolder}`, reason);
  }
  const built = await handOver(
    "cmake",
    ["--build", work, "--target", "troupe_on_host", "--parallel", "2"],
    process.env,
  );
  if (built !== 0)
    throw new SetupError({
      where: "addon",
      expected: "the kernels for CUDA to compile for the host",
      got: "what the compiler says above",
    });
  const env = { ...process.env, TROUPE_ADDON: join(work, "troupe_on_host.node") };
  const vitest = join(layout.packages, "vitest", "vitest.mjs");
  process.exitCode = await handOver(
    productNode(),
    [vitest, "run", "--mode", "gpu", ...process.argv.slice(2)],
    env,
  );
});
