import { tmpdir } from "node:os";
import { join } from "node:path";
import { defineConfig } from "vitest/config";

export default defineConfig({
  test: {
    include: ["test/**/*.test.ts"],
    globalSetup: "test/fixtures/suite-folder.ts",
    // A process for each file: the addon's threads and allocator belong to a process, and a crash fails one file only.
    pool: "forks",
    maxWorkers: 2,
    execArgv: [
      // For tests that ask whether garbage was collected.
      "--expose-gc",
      // What a thread imports is no garbage: in V8's first megabyte it would be scavenged over and over, a tenth of its start.
      "--min-semi-space-size=16",
    ],
    env: {
      // Idle OpenMP threads sleep instead of spinning: two test processes share the cores.
      OMP_WAIT_POLICY: "passive",
      // Programs that tests start find compiled what they have in common.
      NODE_COMPILE_CACHE: join(tmpdir(), "node-compile-cache"),
    },
    // A machine that has much else to do takes ten times as long.
    testTimeout: 120_000,
    hookTimeout: 120_000,
    teardownTimeout: 10_000,
  },
});
