// node scripts/test-cuda-on-host.mjs: builds the addon with the kernels for CUDA run by the host (test/gpu/on-host), and tests
// each of them with it: what can be proved of them where there is no GPU.
import { join } from "node:path";
import { handOver } from "./setup/child.mjs";
import { layout, productNode } from "./setup/layout.mjs";
import { main, SetupError } from "./setup/say.mjs";
import { setUp } from "./setup/set-up.mjs";

await main(async () => {
  await setUp();
  const work = join(layout.build, "native");
  const built = await handOver(
    "cmake",
    ["--build", work, "--target", "troupe_on_host", "--parallel", "2"],
    process.env,
  );
  if (built !== 0)
    throw new SetupError("[addon] the kernels for CUDA compile for the host: they do not (see above)");
  const env = { ...process.env, TROUPE_ADDON: join(work, "troupe_on_host.node") };
  const vitest = join(layout.packages, "vitest", "vitest.mjs");
  process.exitCode = await handOver(
    productNode(),
    [vitest, "run", "--mode", "gpu", ...process.argv.slice(2)],
    env,
  );
});
