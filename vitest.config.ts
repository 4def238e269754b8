import { spawnSync } from "node:child_process";
import { defineConfig } from "vitest/config";
import { BaseSequencer, type TestSpecification } from "vitest/node";
import { compileCache } from "./scripts/setup/ownership.mjs";

/** What takes more than half of all the time and fails least: `npm test` leaves it to `npm run test:slow`; `.ci/run` runs both. */
const slow = [
  // Somebody is killed, power fails or a loss goes wrong, in the middle of something; inputs are drawn at random.
  "test/chaos/**/*.test.ts",
  "test/checkpoint/faults.test.ts",
  "test/trainer/live/frozen.test.ts",
  "test/trainer/live/layouts.test.ts",
  "test/trainer/live/replies.test.ts",
  "test/trainer/live/load.test.ts",
  "test/trainer/live/invariant.test.ts",
  "test/trainer/live/recovery.test.ts",
  "test/trainer/live/rollouts.test.ts",
  "test/examples/post-training.test.ts",
  "test/trainer/recovery/began.test.ts",
  "test/trainer/recovery/restart.test.ts",
  "test/trainer/recovery/last-good.test.ts",
  "test/trainer/recovery/anomalies.test.ts",
  "test/trainer/recovery/warm-standby.test.ts",
  // Every byte between processes that share no memory.
  "test/trainer/layouts/gloo.test.ts",
  "test/collectives/gloo.test.ts",
  "test/collectives/nccl.test.ts",
  "test/trainer/layouts/nccl.test.ts",
  // What the actors of threads promise, by those of processes and of hosts.
  "test/runtime/process.test.ts",
  "test/runtime/last-words.test.ts",
  "test/runtime/processes.test.ts",
  "test/runtime/hosts.test.ts",
  "test/runtime/own-actors.test.ts",
  "test/trainer/layouts/process.test.ts",
  // A program for each host, a browser, or a program for each sentence that one may end with.
  "test/launch/launch.test.ts",
  "test/launch/namespaces.test.ts",
  "test/launch/script.test.ts",
  "test/launch/torchrun.test.ts",
  "test/dashboard/page.test.ts",
  "test/site.test.ts",
  "test/sinks/outage.test.ts",
  // A copy of the tree, compiled and run.
  "test/recipes.test.ts",
  "test/cli/own-lines.test.ts",
  "test/cli/stuck.test.ts",
  "test/trainer/signals.test.ts",
  // Many runs of one program.
  "test/trainer/repeated-runs.test.ts",
  // The complete program, four times, beside a user who would harm it.
  "test/access/hostile-user.test.ts",
  // Models of all families, in llama.cpp and in a browser.
  "test/export/gguf*.test.ts",
  "test/export/judged.test.ts",
  "test/export/transformers-js.test.ts",
  // What is packed, installed and compiled by its user.
  "test/package/**/*.test.ts",
  // Whole runs of what is proved in its parts: models alone, kernels, stores, optimizers, deltas, devices, templates.
  "test/golden/runtime.test.ts",
  "test/devices/sim-training.test.ts",
  "test/trainer/layouts/device.test.ts",
  "test/trainer/training/optimizers.test.ts",
  "test/trainer/training/deltas.test.ts",
  "test/trainer/offload/*.test.ts",
  "test/trainer/layouts/expert-parallel.test.ts",
  "test/trainer/training/own-pieces.test.ts",
  "test/trainer/training/fast.test.ts",
  "test/trainer/training/precision.test.ts",
  "test/trainer/training/thawing.test.ts",
  "test/models/clip.test.ts",
  "test/acceptance/bmtrain/training.test.ts",
  "test/cli/rapidformer-runs.test.ts",
  "test/cli/model-folders.test.ts",
  "test/cli/scale-page.test.ts",
  "test/docs-commands.test.ts",
  "test/bench/rapidformer.test.ts",
  "test/examples/**/*.test.ts",
  // Compilers at work on the code for CUDA.
  "test/setup/cuda.test.ts",
  // Pairs of switches, which `npm run matrix` makes all of.
  "test/matrix/**/*.test.ts",
];

/**
 * Rooms whose tests compute on a thread of their own or read files, and ask nothing of the process: many files in one, which
 * loads libtorch and the product once. A process of its own costs a file 0.95 s of processor time.
 */
const together = [
  "*",
  "{nn,parallel,kernels,models,optim,data,convert,golden}/**/*",
  "{anomalies,deltas,engine,inspect,job,metrics,objectives,options}/**/*",
  // The others of these rooms measure their process, change it or start a run.
  "acceptance/{registers,bmtrain/{blocks,parameters}}",
  "dashboard/{follow-file,history-table,run-view}",
  "events/{bounded-queue,bounded-writer,event,event-kinds,record-file,select-events}",
  "planner/{bmtrain-table,estimate,gpu-peaks,rank-program,rapidformer,simulate,state-memory}",
  "service/{bounds,slice}",
  "tasks/splits",
  "tensor/{autograd,buckets,create,errors,generated,map-file,operators,placeholder,scratch-file}",
  "tensor/{show-tensor,statistics}",
].map((files) => `test/${files}.test.ts`);

function alone(mode: string) {
  if (mode === "slow") return { include: slow };
  if (mode === "gpu") return { include: ["test/gpu/**/*.test.ts"] };
  return { include: ["test/**/*.test.ts"], exclude: mode === "quick" ? [...slow, ...together] : together };
}

function shared(mode: string) {
  if (mode === "slow" || mode === "gpu") return { include: [] };
  return { include: together, exclude: mode === "quick" ? slow : [] };
}

/** Where the slow suite is ended at a limit, each commit begins with another file, so that none is left out for ever. */
class FromAnother extends BaseSequencer {
  override async sort(files: TestSpecification[]): Promise<TestSpecification[]> {
    const { stdout } = spawnSync("git", ["rev-parse", "--short=8", "HEAD"], { encoding: "utf8" });
    const start = (Number.parseInt(stdout, 16) || 0) % files.length;
    const sorted = files.toSorted((a, b) => (a.moduleId < b.moduleId ? -1 : 1));
    return [...sorted.slice(start), ...sorted.slice(0, start)];
  }
}

const cache = compileCache();

export default defineConfig(({ mode }) => ({
  test: {
    ...(mode === "slow" && { sequence: { sequencer: FromAnother } }),
    globalSetup: "test/fixtures/suite-folder.ts",
    // A process for each file of the other rooms: the addon's threads and allocator belong to a process.
    pool: "forks",
    projects: [
      { extends: true, test: { name: "alone", ...alone(mode) } },
      { extends: true, test: { name: "together", ...shared(mode), isolate: false } },
    ],
    maxWorkers: 2,
    // Node imports the product, from where test/joined has it, and what the product imports for a test to compare with; vitest
    // would transform each file of it for each test file.
    server: {
      deps: { external: process.env.JOINED_SOURCES === "" ? [] : [/\/(src|test\/runtime\/actors)\/.*\.ts$/] },
    },
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
      ...(cache === undefined ? {} : { NODE_COMPILE_CACHE: cache }),
    },
    // For what hangs alone: a machine that has much else to do takes fifty times as long.
    testTimeout: 600_000,
    hookTimeout: 600_000,
    teardownTimeout: 10_000,
  },
}));
