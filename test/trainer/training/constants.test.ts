// Constants of a model: buffers and parameters that keep their type.
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { SafetensorsFile, stepFolder } from "../../../src/entries/checkpoint.ts";
import { Linear, Parameter, type RuntimeOptions } from "../../../src/entries/index.ts";
import { dematerialize, init, ModuleBuffer, materialize } from "../../../src/entries/nn.ts";
import { runTiny, Workspace } from "../../fixtures/run-tiny.ts";

const job = new URL("../../fixtures/jobs/constants.ts", import.meta.url);
const steps = 4;

describe("constants", () => {
  const workspace = new Workspace();
  afterAll(() => workspace[Symbol.dispose]());
  let numRuns = 0;
  let plain: Awaited<ReturnType<typeof train>>;

  async function train(options: RuntimeOptions, config: Record<string, unknown> = {}) {
    const dir = workspace.path(`run-${numRuns++}`);
    const outcome = await runTiny(
      workspace,
      { steps, precision: "bf16", checkpoint: { dir, everySteps: 2 }, ...options },
      config,
      job,
    );
    if (outcome.error !== undefined) throw outcome.error;
    return { losses: outcome.losses, dir, saved: await savedIn(join(dir, stepFolder(steps))) };
  }

  async function savedIn(folder: string): Promise<Map<string, string>> {
    await using file = await SafetensorsFile.open(join(folder, "model.safetensors"));
    const saved = new Map<string, string>();
    for (const [name, { dtype, shape }] of file.tensors)
      saved.set(name, `${dtype} [${shape}] ${(await file.read(name)).join()}`);
    return saved;
  }

  beforeAll(async () => {
    plain = await train({ ranks: 1, zero: 0, accumulation: 2 });
  });

  it("keep their type where the model computes in bfloat16, and are saved in it but where they are not persistent", () => {
    const of = (name: string) => plain.saved.get(`layers.1.${name}`);
    expect(of("mask")).toBe("BOOL [5] 1,0,1,1,0");
    expect(of("places")).toBe("I32 [4] 3,0,0,0,1,0,0,0,0,0,0,0,2,0,0,0");
    expect(of("large")).toBe("I64 [2] 1,0,0,0,0,1,0,0,0,0,0,0,0,1,0,0");
    expect(of("table")).toMatch(/^F32 \[8\]/);
    expect([of("position_ids"), of("half")]).toEqual([undefined, undefined]);
    expect(new Set(plain.losses).size).toBe(steps);
  });

  it.each([
    { ranks: 2, zero: 3, recompute: true },
    { ranks: 2, zero: 2, placement: "process" },
    { ranks: 2, pp: 2, accumulation: 2 },
  ] as const satisfies RuntimeOptions[])("are the same under %o", async (options) => {
    const { losses, saved } = await train(options);
    expect(losses).toEqual(plain.losses);
    expect(saved).toEqual(plain.saved);
  });

  it("come from the checkpoint where a run goes on, whatever they began with", async () => {
    const resume = join(plain.dir, stepFolder(2));
    const { losses, saved } = await train({ ranks: 2, zero: 1, resume }, { shift: 1 });
    expect(losses.slice(2)).toEqual(plain.losses.slice(2));
    expect(saved).toEqual(plain.saved);
  });

  it("are refused as trained, written or drawn, in one sentence", () => {
    const ids = new ModuleBuffer([2], init.constant(0), { dtype: "int64" });
    expect(() => (ids.trainable = true)).toThrow(
      "[Parameter] expected trainable to be set on a parameter of floats",
    );
    expect(() => (new Parameter([2], init.constant(0), "int64").trainable = true)).toThrow(
      "it set on a int64 tensor",
    );
    expect(() => new Parameter([2], init.normal(0, 1), "int32")).toThrow("got normal, which draws floats");
    const linear = Object.assign(new Linear(2, 2), { ids });
    materialize(linear, { seed: 1, dtype: "float64" });
    expect([ids.tensor.dtype, linear.weight.tensor.dtype]).toEqual(["int64", "float64"]);
    expect(() => ids.write(ids.tensor)).toThrow(
      "[ModuleBuffer.write] expected a float32 buffer that is persistent",
    );
    dematerialize(linear);
    expect(new ModuleBuffer([], init.constant(1), { persistent: false }).isConstant).toBe(true);
  });
});
