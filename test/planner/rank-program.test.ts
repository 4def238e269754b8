import { describe, expect, it } from "vitest";
import { wrapForward } from "../../src/compute/nn/index.ts";
import { BlockEngine, Mesh, planBlocks, type ShardPort } from "../../src/compute/parallel/index.ts";
import { scope, type Tensor, zeros } from "../../src/compute/tensor/index.ts";
import { GPT2LMHeadModel } from "../../src/library/models/index.ts";
import {
  factsOf,
  languageModel,
  type Operation,
  rankProgram,
  type StageShare,
  shareOfStages,
} from "../../src/tools/planner/index.ts";
import { forwardBackward } from "../fixtures/forward-backward.ts";
import { PLAIN_LAYOUT } from "../fixtures/plain-layout.ts";

const numSteps = 3;

function modelOf(): GPT2LMHeadModel {
  return new GPT2LMHeadModel({
    vocab_size: 11,
    n_layer: 5,
    n_head: 2,
    n_embd: 8,
    n_positions: 4,
    embd_pdrop: 0,
    attn_pdrop: 0,
    resid_pdrop: 0,
  });
}

/** The actions of the block engine in a few steps of two micro-batches, seen at its port and in the blocks' forwards. */
function engineSteps(zero: 2 | 3, prefetchBytes: number): string[][] {
  const reported: string[] = [];
  const model = modelOf();
  const plan = planBlocks(model, { zero, mesh: new Mesh({}), rank: 0 });
  const port: ShardPort<number> = {
    start: (block) => {
      reported.push(`gather ${block}`);
      return block;
    },
    wait: (block) => void reported.push(`await ${block}`),
    release: (block) => void reported.push(`release ${block}`),
    reduce: (block, gradient) => {
      reported.push(`reduce ${block}`);
      gradient.dispose();
    },
  };
  plan.units.forEach(({ module }, block) => {
    if (module === undefined) return;
    wrapForward(module, (forward, inputs) => {
      reported.push(`forward ${block}`);
      return forward(...inputs) as never;
    });
  });
  const engine = new BlockEngine(plan, port, { dtype: "float32", randomness: undefined, prefetchBytes });
  engine.bind(plan.layouts.map(({ numel }) => zeros([numel])));
  const inputIds = zeros([1, 4], { dtype: "int64" });
  const loss = (): Tensor => model.forward(inputIds, { targets: inputIds }).loss;
  const steps = Array.from({ length: numSteps }, () => {
    scope(() => {
      engine.begin("step");
      forwardBackward(engine, loss, false);
      forwardBackward(engine, loss);
    });
    return reported.splice(0);
  });
  engine.dispose();
  inputIds.dispose();
  return steps;
}

/** The simulated program in the same words; the engine does not report a backward, nor what no block computes. */
function describeProgram(program: readonly (readonly Operation[])[]): string[][] {
  return program.map((operations) =>
    operations.flatMap((operation) => {
      if (!("block" in operation)) return [];
      if (operation.kind !== "compute") return [`${operation.kind} ${operation.block}`];
      return operation.part === "layer" && operation.pass === "forward" ? [`forward ${operation.block}`] : [];
    }),
  );
}

describe("rankProgram", () => {
  it.each<[2 | 3, number]>([
    [2, 0],
    [3, 0],
    [3, 1],
    [3, 5000],
    [3, Number.POSITIVE_INFINITY],
  ])(
    "is what the block engine does at ZeRO %i with a window of %d bytes, to the last operation",
    (zero, prefetchBytes) => {
      const layout = { ...PLAIN_LAYOUT, zero, batchSize: 2, accumulation: 2 };
      const share = shareOfStages(factsOf(languageModel(modelOf, 4)), layout)[0] as StageShare;
      const gatheredBytes = share.layouts.map(({ numel }) => 4 * numel);
      const program = rankProgram({ layout, share, gatheredBytes, prefetchBytes, numSteps });
      expect(describeProgram(program)).toEqual(engineSteps(zero, prefetchBytes));
    },
  );
});
