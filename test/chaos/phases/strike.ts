// Loaded first into every thread of a run that is struck (`--import`): has one actor come to grief in the middle of one phase.
import { writeFileSync } from "node:fs";
import { syncBuiltinESMExports } from "node:module";
import threads, { isMainThread, parentPort, threadName, Worker } from "node:worker_threads";
import { deeds, standStill, thrown } from "../../fixtures/deeds.ts";
import { type FaultName, type PhaseName, type Strike, strikeVariable } from "./matrix.ts";

/** Enough for an actor's modules, and little enough to be full at once. */
const HEAP_MB = 96;
const BLOCK_SECONDS = 0.3;
const END_ME = "end this thread";

const strike = JSON.parse(process.env[strikeVariable] ?? "null") as Strike | null;
let numVisits = 0;

/** Called at the beginning of a phase: strikes if it is the one. */
export function reach(phase: PhaseName): void {
  if (strike?.phase !== phase || strike.actor !== threadName) return;
  numVisits += 1;
  if (numVisits === strike.visit && isFirst(strike.doneFile)) strikes[strike.fault]();
}

const strikes: Readonly<Record<FaultName, () => void>> = {
  refuse: () => thrown("thrown in a handler"),
  throw: deeds.throw,
  reject: deeds.reject,
  exit: deeds.exit,
  fill: fillHeap,
  end() {
    parentPort?.postMessage(END_ME);
    standStill();
  },
  block: () => deeds.block(BLOCK_SECONDS),
  hang: deeds.hang,
  SIGKILL: () => signal("SIGKILL"),
  SIGSEGV: () => signal("SIGSEGV"),
  SIGABRT: () => signal("SIGABRT"),
  SIGSTOP: () => signal("SIGSTOP"),
};

/** The methods of the product at which phases without a job's code begin. */
const interposed: Partial<Record<PhaseName, () => Promise<[prototype: object, method: PropertyKey]>>> = {
  gather: async () => [(await import("../../../src/actors/shard/shard.ts")).Shard.prototype, "gather"],
  backward: async () => [
    (await import("../../../src/compute/parallel/rank/gradient-buckets.ts")).GradientBuckets.prototype,
    "contribute",
  ],
  reduce: async () => [
    (await import("../../../src/compute/parallel/owned/shard-store.ts")).ShardStore.prototype,
    "reduce",
  ],
  update: async () => [
    (await import("../../../src/actors/shard/store/state-store.ts")).MemoryStateStore.prototype,
    "update",
  ],
  snapshot: async () => [
    (await import("../../../src/actors/shard/store/block-copy.ts")).BlockCopy.prototype,
    "finish",
  ],
  write: async () => [
    (await import("../../../src/library/checkpoint/saving/checkpoint-draft.ts")).CheckpointDraft.prototype,
    "write",
  ],
  commit: async () => [
    (await import("../../../src/library/checkpoint/saving/checkpoint-draft.ts")).CheckpointDraft.prototype,
    "commit",
  ],
  shutdown: async () => [
    (await import("../../../src/actors/engine/rank/rank-model.ts")).RankModel.prototype,
    Symbol.dispose,
  ],
};

if (isMainThread) attend();
else if (strike?.actor === threadName) await interpose(strike.phase);

/** Serves the threads of a process: terminates one that asks for it, and keeps heaps small if one is to be filled. */
function attend(): void {
  process.on("worker", (worker) => {
    worker.on("message", (message) => {
      if (message === END_ME) void worker.terminate();
    });
  });
  if (strike?.fault !== "fill") return;
  class SmallWorker extends Worker {
    constructor(...[file, options]: ConstructorParameters<typeof Worker>) {
      super(file, { resourceLimits: { maxOldGenerationSizeMb: HEAP_MB }, ...options });
    }
  }
  Object.assign(threads, { Worker: SmallWorker });
  syncBuiltinESMExports();
}

async function interpose(phase: PhaseName): Promise<void> {
  const place = await interposed[phase]?.();
  if (place === undefined) return;
  const [prototype, method] = place;
  const original: unknown = Reflect.get(prototype, method);
  if (typeof original !== "function")
    throw new Error(`expected a method ${String(method)}: there is none any more`);
  Reflect.set(prototype, method, function reaching(this: unknown, ...args: unknown[]): unknown {
    reach(phase);
    return Reflect.apply(original, this, args);
  });
}

function isFirst(file: string): boolean {
  try {
    writeFileSync(file, "", { flag: "wx" });
    return true;
  } catch {
    return false;
  }
}

function fillHeap(): never {
  const hoard: object[][] = [];
  for (;;) hoard.push(Array.from({ length: 1_000 }, (_, index) => ({ index })));
}

function signal(name: NodeJS.Signals): void {
  process.kill(process.pid, name);
  standStill();
}
