import { describe, expect, it } from "vitest";
import { MemoryStateStore } from "../../src/actors/shard/store/state-store.ts";
import { partsOf } from "../../src/actors/state/saving/save-plan.ts";
import type { ProcessGroup } from "../../src/compute/collectives/index.ts";
import { AdamW, updateRuleOf } from "../../src/compute/optim/index.ts";
import { BlockState, type FlatBlock, ownedRange, ShardStore } from "../../src/compute/parallel/index.ts";
import { type DType, memory, scope, zeros } from "../../src/compute/tensor/index.ts";
import { GPT2LMHeadModel } from "../../src/library/models/index.ts";
import { byteScheme, shareOfStages, snapshotBytes, stateBytes } from "../../src/tools/planner/index.ts";
import { PLAIN_LAYOUT } from "../fixtures/plain-layout.ts";
import { gptFacts } from "../fixtures/plan-gpt.ts";

const numRanks = 4;
const model = new GPT2LMHeadModel({ vocab_size: 100, n_layer: 3, n_head: 2, n_embd: 32, n_positions: 8 });
const kinds = ["parameters", "master", "optimizer", "gradients"] as const;

function layoutsAt(zero: number): readonly FlatBlock[] {
  const layout = { ...PLAIN_LAYOUT, ranks: numRanks, zero, batchSize: numRanks };
  return shareOfStages(gptFacts(model.config), layout)[0]?.layouts ?? [];
}

/** Sums what one rank gives: of a reduction, the memory is what counts. */
const alone: ProcessGroup = {
  rank: 0,
  size: numRanks,
  barrier: async () => {},
  gather: async () => {},
  allGather: async (_key, value) => [value],
  reduceScatter: async (_key, _input, _ranges, output) => void output(),
  allReduce: async (_key, _input, _ranges, output) => void output(),
};

/** Bytes by kind that a rank holds once every block is reduced, as the allocator counts them. */
function measure(layouts: readonly FlatBlock[], rank: number, dtype: DType): Record<string, number> {
  const before = memory().byTag;
  const store = new ShardStore(rank, dtype);
  const rules = [updateRuleOf(new AdamW(model.namedParameters(), { lr: 1e-3 }))];
  const states = layouts.map((layout) => {
    const full = store.allocateFull(layout);
    store.add(layout, full);
    const { begin, end } = ownedRange(layout, rank);
    return new BlockState(layout, rank, rules, full.narrow(0, begin, end - begin));
  });
  const stateStore = new MemoryStateStore(states, async () => []);
  scope(() => {
    for (const { index, numel } of layouts) {
      void store.reduce(index, "", zeros([numel], { dtype }), alone);
    }
  });
  const after = memory().byTag;
  stateStore.stop();
  store.dispose();
  return Object.fromEntries(kinds.map((kind) => [kind, (after[kind] ?? 0) - (before[kind] ?? 0)]));
}

describe("stateBytes", () => {
  it.each([0, 1, 2, 3])(
    "is what the store of every rank holds at ZeRO %i, to the byte and by kind",
    (zero) => {
      const layouts = layoutsAt(zero);
      for (const [dtype, precision] of [
        ["float32", "fp32"],
        ["bfloat16", "bf16"],
      ] as const) {
        for (let rank = 0; rank < numRanks; rank++) {
          const planned = stateBytes(layouts, byteScheme(precision), "process", rank);
          const measured = measure(layouts, rank, dtype);
          // Each store of this test makes a buffer of its own; in a run the first rank's serves all.
          const parameters = stateBytes(layouts, byteScheme(precision), "process", 0).parameters;
          expect(measured).toEqual({ ...planned, parameters });
        }
      }
    },
  );
});

describe("snapshotBytes", () => {
  it.each([0, 1, 2, 3])("is what every rank's shard copies for a save at ZeRO %i, to the byte", (zero) => {
    const layouts = layoutsAt(zero);
    const optimizer = new AdamW(model.namedParameters(), { lr: 1e-3 });
    for (let rank = 0; rank < numRanks; rank++) {
      const copied = partsOf(layouts, rank, [optimizer]).reduce((sum, { sizeBytes }) => sum + sizeBytes, 0);
      for (const precision of ["fp32", "bf16"] as const)
        expect(snapshotBytes(layouts, byteScheme(precision), rank)).toBe(copied);
      expect(copied > 0).toBe(zero > 0 || rank === 0);
    }
  });
});
