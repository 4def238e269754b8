import { afterAll, describe, expect, it } from "vitest";
import { cutBlocks } from "../../../src/compute/nn/index.ts";
import {
  cutParameters,
  cutStages,
  type FlatBlock,
  Mesh,
  type MeshShape,
  parseZeroLevel,
  planBlocks,
} from "../../../src/compute/parallel/index.ts";
import { type HeldMemory, Runtime, type RuntimeOptions } from "../../../src/entries/index.ts";
import { GPT2LMHeadModel } from "../../../src/library/models/index.ts";
import { byteScheme, stateBytes } from "../../../src/tools/planner/index.ts";
import { tinyJob, Workspace } from "../../fixtures/run-tiny.ts";

const size = { vocab: 257, layers: 3, heads: 2, width: 32, context: 16, batch: 8 };

/** The memory that each rank holds after a few steps. */
async function inspect(workspace: Workspace, options: RuntimeOptions): Promise<readonly HeldMemory[]> {
  await using runtime = await Runtime.spawn({ threadsPerRank: 1, warmStandby: false, steps: 3, ...options });
  let held: Promise<readonly HeldMemory[]> | undefined;
  runtime.events$.subscribe((event) => {
    if (event.kind === "run.started") held = runtime.inspectMemory();
  });
  await runtime.run(tinyJob, { data: workspace.text, cache: workspace.path("cache"), ...size });
  return (await held) ?? [];
}

/** The flat blocks of one rank, cut as a run cuts them. */
function layoutsOf(shape: Partial<MeshShape>, rank: number, zero: number): readonly FlatBlock[] {
  const mesh = new Mesh(shape);
  const model = new GPT2LMHeadModel({
    vocab_size: size.vocab,
    n_layer: size.layers,
    n_head: size.heads,
    n_embd: size.width,
    n_positions: size.context,
  });
  const blocks = cutBlocks(model).blocks.map(({ parameters }) => [...parameters.values()]);
  const { wte, wpe, ln_f } = model.transformer;
  const last = blocks.length;
  const use = {
    calls: blocks.map((_, position) => position),
    rootUse: new Map([
      [wte.weight, new Set([0, last])],
      [wpe.weight, new Set([0])],
      ...ln_f.parameters().map((parameter) => [parameter, new Set([last])] as const),
    ]),
  };
  const stages = cutStages(blocks, use, { numStages: mesh.shape.pp, numChunks: 1 });
  cutParameters(model, model.tensorPlan, { index: mesh.placeOf(rank).tp, count: mesh.shape.tp });
  return planBlocks(model, { zero: parseZeroLevel(zero), mesh, rank, stages }).layouts;
}

const state = ["parameters", "master", "optimizer"] as const;

describe("inspectMemory", () => {
  const workspace = new Workspace();
  afterAll(() => workspace[Symbol.dispose]());

  it.each<[Partial<MeshShape>, number, "fp32" | "bf16"]>([
    [{ dp: 2 }, 0, "fp32"],
    [{ dp: 2 }, 1, "bf16"],
    [{ dp: 2 }, 3, "bf16"],
    [{ tp: 2, pp: 2 }, 0, "fp32"],
    [{ tp: 2, pp: 2, dp: 2 }, 3, "bf16"],
  ])(
    "is the closed formula of every rank and kind, to the byte, on %o at ZeRO %i in %s",
    async (shape, zero, precision) => {
      const { tp = 1, pp = 1, dp = 1 } = shape;
      const held = await inspect(workspace, { ranks: tp * pp * dp, tp, pp, zero, precision });
      expect(held.map(({ rank }) => rank)).toEqual(new Mesh(shape).ranks);
      for (const { rank, byKind } of held) {
        const planned = stateBytes(layoutsOf(shape, rank, zero), byteScheme(precision), "process", rank);
        const live = Object.fromEntries(state.map((kind) => [kind, byKind[kind]?.liveBytes ?? 0]));
        expect(live).toEqual(Object.fromEntries(state.map((kind) => [kind, planned[kind]])));
        expect(byKind.gradients?.peakBytes).toBeGreaterThanOrEqual(planned.gradients);
        expect(byKind.activations?.peakBytes).toBeGreaterThan(0);
      }
    },
  );
});
