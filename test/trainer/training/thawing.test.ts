// Parameters that are frozen and unfrozen while a run goes on.
import { existsSync } from "node:fs";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { stepFolder } from "../../../src/entries/checkpoint.ts";
import {
  AdamW,
  noGrad,
  type OptimizerSpec,
  type RuntimeOptions,
  scope,
  type TroupeEvent,
} from "../../../src/entries/index.ts";
import { dematerialize, materialize } from "../../../src/entries/nn.ts";
import { Adafactor, LAMB, type LocalState, releaseState, stepLocal } from "../../../src/entries/optim.ts";
import { backward } from "../../../src/entries/tensor.ts";
import { readTensors } from "../../fixtures/read-tensors.ts";
import { runTiny, Workspace } from "../../fixtures/run-tiny.ts";
import { isFrozen, Ladder, pointsAt } from "../../fixtures/thawing.ts";

const job = new URL("../../fixtures/jobs/thawing.ts", import.meta.url);
const loop = new URL("../../fixtures/jobs/thawing-loop.ts", import.meta.url);
const within = new URL("thawing-within.ts", import.meta.url);
const steps = 8;
const seed = 7;
const batch = 8;
/** A bias, half a block and a bias of the root are declared frozen; a weight, a complete block and the embedding follow. */
const frozen = [
  "rungs.0.up.bias:0-4",
  "rungs.1.down:0-3",
  "head.bias:0-8",
  "rungs.1.up.weight:2-5",
  "rungs.2:3-6",
  "embed:5-7",
].join(" ");

/** By name, as a checkpoint has it; the optimizer's as `<kind>.<name>`. */
type State = ReadonlyMap<string, Float32Array>;

interface Run {
  readonly losses: readonly number[];
  readonly folder: string;
  readonly last: State;
  readonly events: readonly TroupeEvent[];
}

async function stateAfter(folder: string, step: number): Promise<State> {
  const files = ["model.safetensors", "optimizer.safetensors"];
  const read = await Promise.all(files.map((file) => readTensors(join(folder, stepFolder(step), file))));
  return new Map(read.flatMap((tensors) => [...tensors]));
}

/**
 * The same by plain autograd in float64, with one rule a tensor: what is frozen has no gradient, and the rule is not asked, as
 * torch's optimizers skip what has `grad` None. Each parameter counts its own updates.
 */
function plainly(
  makeSpec: (model: Ladder) => OptimizerSpec,
  clipNorm: number,
): ReadonlyMap<string, Float64Array> {
  const model = new Ladder(frozen);
  materialize(model, { seed });
  const parameters = model.namedParameters();
  for (const parameter of parameters.values()) {
    const wide = noGrad(() => parameter.memory.to("float64"));
    parameter.unbind()?.dispose();
    parameter.bind(wide.requiresGrad_());
  }
  const spec = makeSpec(model);
  const state: LocalState = new Map();
  const numUpdates = new Map<string, number>();
  for (let step = 0; step < steps; step++) {
    scope(() => {
      model.freezeFor(step);
      const { points, wanted } = pointsAt(step * batch, batch);
      const loss = model.forward(points.to("float64")).sub(wanted.to("float64")).square().mean();
      backward([loss]);
      const trained = [...parameters].filter(([, { trainable }]) => trainable);
      const squares = trained.map(([, { memory }]) => memory.grad?.square().sum().item() ?? 0);
      const norm = Math.sqrt(squares.reduce((sum, square) => sum + square, 0));
      for (const [name, parameter] of trained) {
        const { grad } = parameter.memory;
        if (grad !== null) noGrad(() => grad.mul_(Math.min(1, clipNorm / (norm + 1e-6))));
        const update = (numUpdates.get(name) ?? 0) + 1;
        numUpdates.set(name, update);
        stepLocal(new Map([[name, parameter]]), spec, state, update);
      }
    });
  }
  const values = [...parameters].map(([name, { memory }]): [string, Float64Array] => [
    name,
    memory.detach().toTypedArray() as Float64Array,
  ]);
  const kept = [...state].flatMap(([name, kinds]) =>
    Object.entries(kinds).map(([kind, tensor]): [string, Float64Array] => [
      `${kind}.${name}`,
      tensor.toTypedArray() as Float64Array,
    ]),
  );
  releaseState(state);
  dematerialize(model);
  return new Map([...values, ...kept]);
}

describe("parameters that a run freezes and unfreezes", () => {
  const workspace = new Workspace();
  afterAll(() => workspace[Symbol.dispose]());
  let numRuns = 0;
  let alone: Run;

  async function train(
    options: RuntimeOptions,
    config: Record<string, unknown> = {},
    url = job,
    everySteps = 1,
  ): Promise<Run> {
    const folder = workspace.path(`run-${numRuns++}`);
    const checkpoint = { dir: folder, everySteps };
    const outcome = await runTiny(
      workspace,
      { steps, seed, checkpoint, ...options },
      { frozen, declaredAt: 0, ...config },
      url,
    );
    if (outcome.error !== undefined) throw outcome.error;
    const { losses, events } = outcome;
    return { losses, events, folder, last: await stateAfter(folder, steps) };
  }

  /** All that was kept of a parameter stays to the bit over every step that it is frozen in, and changes in all others. */
  async function expectHeld({ folder }: Run): Promise<void> {
    const states = await Promise.all(
      Array.from({ length: steps }, (_, index) => stateAfter(folder, index + 1)),
    );
    for (let step = 1; step < steps; step++) {
      const [before, after] = [states[step - 1] as State, states[step] as State];
      for (const [entry, values] of before) {
        const name = entry.replace(/^(exp_avg|exp_avg_sq)[.]/, "");
        if (isFrozen(frozen, name, step))
          expect(after.get(entry), `${entry} in step ${step}`).toEqual(values);
        else expect(after.get(entry), `${entry} in step ${step}`).not.toEqual(values);
      }
    }
  }

  /** Values of a float32 run against float64: some eight steps' rounding, of numbers around 1. */
  function expectNear(state: State, plain: ReadonlyMap<string, Float64Array>): void {
    for (const [name, expected] of plain) {
      const values = state.get(name) ?? new Float32Array();
      expect(values.length, name).toBe(expected.length);
      const worst = Math.max(...values.map((value, at) => Math.abs(value - (expected[at] ?? Number.NaN))));
      expect(worst, name).toBeLessThan(2e-5);
    }
  }

  const adamw = (model: Ladder) => new AdamW(model.namedParameters(), { lr: 0.05, weightDecay: 0.1 });

  beforeAll(async () => {
    alone = await train({ ranks: 1, zero: 0, accumulation: 2 });
  });

  it("stay to the bit while they are frozen, with their moments, and go on as under plain autograd", async () => {
    await expectHeld(alone);
    expectNear(alone.last, plainly(adamw, 0.5));
  });

  it("have no state before they are first trained, and begin with a step count of their own", async () => {
    const [early, late] = [await stateAfter(alone.folder, 3), await stateAfter(alone.folder, 4)];
    expect(early.has("exp_avg.rungs.1.down.weight")).toBe(false);
    expect(late.has("exp_avg.rungs.1.down.weight")).toBe(true);
    expect(alone.last.get("exp_avg.head.bias")?.some((value) => value !== 0) ?? false).toBe(false);
  });

  it.each([
    { ranks: 2, zero: 0 },
    { ranks: 2, zero: 1, offload: { optimizer: "host" } },
    { ranks: 2, zero: 3, recompute: true },
    { ranks: 2, zero: 2, recompute: ["up"] },
    { ranks: 2, pp: 2, accumulation: 2 },
  ] as const satisfies RuntimeOptions[])("have the same bits under %o", async (options) => {
    const { losses, last } = await train(options);
    expect(losses).toEqual(alone.losses);
    expect(last).toEqual(alone.last);
  });

  it("have the same bits in a loop of one's own, killed while some are frozen, and taken up there", async () => {
    const faultOnce = workspace.path("died");
    const options = { ranks: 2, zero: 3 } as const;
    const struck = await train(options, { faultAt: 4, faultOnce }, loop, 3);
    expect(existsSync(faultOnce)).toBe(true);
    expect(struck.events.some(({ kind }) => kind === "actor.restarted")).toBe(true);
    const taken = await train({ ...options, resume: join(alone.folder, stepFolder(4)) });
    for (const { losses, last } of [struck, taken]) {
      expect(losses.slice(4)).toEqual(alone.losses.slice(4));
      expect(last).toEqual(alone.last);
    }
  });

  it("have the same bits where a resumed run declares other parameters frozen: state is kept, or begins", async () => {
    // A norm adds blocks up in their order, which is what the declaration changes.
    const config = { clipNorm: 0 };
    const whole = await train({ ranks: 2, zero: 3 }, config);
    const resume = join(whole.folder, stepFolder(4));
    for (const [declaredAt, zero] of [
      [-1, 3],
      [4, 2],
    ] as const) {
      const taken = await train({ ranks: 2, zero, resume }, { ...config, declaredAt });
      expect(taken.losses.slice(4)).toEqual(whole.losses.slice(4));
      // A parameter that is never trained has state only if it is declared trainable.
      for (const [entry, values] of whole.last) expect(taken.last.get(entry), entry).toEqual(values);
    }
  });

  it("keep masters and stochastic rounding to the bit in bfloat16, wherever the state rests", async () => {
    const options = { ranks: 2, precision: "bf16", rounding: "stochastic" } as const;
    const offloaded = await train({
      ...options,
      zero: 3,
      offload: { optimizer: "nvme", dir: workspace.folder },
    });
    await expectHeld(offloaded);
    const here = await train({ ...options, zero: 1 });
    expect(here.losses).toEqual(offloaded.losses);
    expect(here.last).toEqual(offloaded.last);
    const resumed = await train({ ...options, zero: 2, resume: join(here.folder, stepFolder(5)) });
    expect(resumed.losses.slice(5)).toEqual(here.losses.slice(5));
    expect(resumed.last).toEqual(here.last);
  });

  it("keep their bits in bfloat16 rounded to nearest, where their block comes to memory for its update alone", async () => {
    const options = { ranks: 2, zero: 3, precision: "bf16", prefetchBytes: 0 } as const;
    const config = { frozen: "rungs.1.up.bias:2-5" };
    const resident = await train(options, config, within);
    const offload = { parameters: "nvme", dir: workspace.folder } as const;
    const paged = await train({ ...options, offload }, config, within);
    expect(paged.losses).toEqual(resident.losses);
    expect(paged.last).toEqual(resident.last);
  });

  const options = { lr: 0.05, weightDecay: 0.1 };
  const wholeParameter: readonly (readonly [string, (model: Ladder) => OptimizerSpec])[] = [
    ["lamb", (model) => new LAMB(model.namedParameters(), options)],
    ["adafactor", (model) => new Adafactor(model.namedParameters(), { ...options, beta1: 0.9 })],
  ];

  it.each(wholeParameter)(
    "have norms and means of their own under %s, over split parameters too",
    async (optimizer, spec) => {
      const plain = await train({ ranks: 1, zero: 0, accumulation: 2 }, { optimizer });
      expectNear(plain.last, plainly(spec, 0.5));
      const split = await train({ ranks: 2, zero: 3 }, { optimizer });
      expect(split.losses).toEqual(plain.losses);
      expect(split.last).toEqual(plain.last);
    },
  );

  // Where a layer is split, rank 0 has something to exchange for the gradient of what rank 1 does not train.
  it.each([
    ["a job's replicas", { zero: 3 }, job, "embed.weight"],
    ["a job's tensor-parallel neighbours", { tp: 2 }, job, "embed|rungs.0"],
    ["a loop's tensor-parallel neighbours", { tp: 2 }, loop, "embed|rungs.0"],
    ["a job's stages", { pp: 2 }, job, "embed|rungs.0"],
  ])(
    "are refused with one sentence where %s do not agree, naming the parameter and the ranks",
    async (_, layout, which, frozenApart) => {
      const { error } = await runTiny(
        workspace,
        { ranks: 2, steps, seed, ...layout },
        { frozen: "", apart: 1, frozenApart },
        which,
      );
      expect(error).toMatchObject({ code: "PARAMETER_TRAINABLE" });
      expect(error?.message).toContain(
        "[step 2] expected embed.weight to be trained by all ranks or by none, got it frozen on rank 1, trained on rank 0",
      );
    },
  );
});
