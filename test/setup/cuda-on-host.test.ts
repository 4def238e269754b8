// The kernels for CUDA, compiled for the host and compared with the CPU's: what can be proved of their numbers without a GPU.
import { execFile } from "node:child_process";
import { existsSync } from "node:fs";
import { fileURLToPath } from "node:url";
import { promisify } from "node:util";
import { expect, it } from "vitest";
import { nativeInfo } from "../../src/tensor/index.ts";

const run = promisify(execFile);
const script = fileURLToPath(new URL("../../scripts/test-cuda-on-host.mjs", import.meta.url));

// An addon with CUDA has the kernels themselves; one that is named, or came built, has nothing here to build it anew from.
const work = fileURLToPath(new URL("../../build/native/CMakeCache.txt", import.meta.url));
const hasBuild = existsSync(work) && process.env.TROUPE_ADDON === undefined;
const canBuild = hasBuild && !nativeInfo().cuda;
// Loud: nobody is to take what was not tried for what holds.
if (!canBuild) {
  const why = hasBuild ? "the addon has CUDA: npm run test:gpu" : "the addon was not built in build/native";
  process.stderr.write(`test/setup/cuda-on-host: SKIPPED, no kernel was run by the host: ${why}\n`);
}

it.skipIf(!canBuild)("every kernel for CUDA, run by the host, computes what the CPU's does", async () => {
  const { stdout } = await run(process.execPath, [script, "test/gpu/kernels.test.ts"], {
    maxBuffer: 2 ** 26,
  });
  expect(stdout).toMatch(/Tests .*\d+ passed/);
  expect(stdout).not.toMatch(/\d+ (failed|skipped)/);
});
