import { readFile } from "node:fs/promises";
import { join } from "node:path";
import { afterAll, describe, expect, it } from "vitest";
import { SafetensorsFile } from "../../../src/entries/checkpoint.ts";
import { Runtime } from "../../../src/entries/index.ts";
import { lossesOf, runTiny, tinyJob, Workspace } from "../../fixtures/run-tiny.ts";

const steps = 8;
const kinds = ["BMTrain's Adam", "SGD", "Lion", "LAMB", "Adafactor", "several"];

describe("a job's optimizer", () => {
  const workspace = new Workspace();
  afterAll(() => workspace[Symbol.dispose]());

  it.each(kinds)(
    "%s trains to the same bits at level 0 and 3, and resumes at another layout",
    async (optimizer) => {
      const dir = workspace.path(optimizer);
      const checkpoint = { dir, everySteps: 4 };
      const straight = await lossesOf(workspace, { ranks: 2, zero: 3, steps, checkpoint }, { optimizer });
      expect(straight.at(-1)).toBeLessThan(straight[0] ?? 0);
      expect(await lossesOf(workspace, { ranks: 2, zero: 0, steps }, { optimizer })).toEqual(straight);
      const resume = join(dir, "step-000004");
      const other = { optimizer, accumulation: 2 };
      const resumed = await lossesOf(workspace, { ranks: 1, zero: 2, steps, resume }, other);
      expect(resumed.slice(4)).toEqual(straight.slice(4));
    },
  );

  it("keeps in a checkpoint what each of several optimizers keeps of its own parameters", async () => {
    const dir = workspace.path("several-kept");
    await lossesOf(
      workspace,
      { ranks: 2, steps: 1, checkpoint: { dir, everySteps: 1 } },
      { optimizer: "several" },
    );
    const file = join(dir, "step-000001", "optimizer.safetensors");
    await using optimizer = await SafetensorsFile.open(file);
    const names = [...optimizer.tensors.keys()];
    const kindsOf = (parameter: string) =>
      names
        .filter((name) => name.endsWith(`.${parameter}`))
        .map((name) => name.slice(0, -parameter.length - 1));
    expect(kindsOf("transformer.wte.weight").sort()).toEqual(["exp_avg_sq_col", "exp_avg_sq_row"]);
    expect(kindsOf("transformer.h.0.ln_1.weight")).toEqual(["exp_avg"]);
    expect(kindsOf("transformer.h.0.ln_1.bias")).toEqual(["exp_avg", "exp_avg_sq"]);
    expect(optimizer.entry("exp_avg_sq_row.transformer.wte.weight").shape).toEqual([256]);
    expect(optimizer.entry("exp_avg_sq_col.transformer.wte.weight").shape).toEqual([32]);
  });

  // BMTrain's optim_state builds the optimizer with other betas, epsilon, decay and schedule before it loads.
  it("goes on from the state that another's hyper-parameters have left, by those that it is built with", async () => {
    const dir = workspace.path("hyper-parameters");
    const resume = join(dir, "step-000004");
    const asBuilt = { ranks: 2, zero: 3, steps: 5 } as const;
    await lossesOf(workspace, { ...asBuilt, checkpoint: { dir, everySteps: 1 } });
    const otherwise = { ranks: 1, zero: 1, steps: 5, resume } as const;
    const config = { optimizer: "AdamW built otherwise", accumulation: 2 };
    const refused = await runTiny(workspace, otherwise, config);
    expect(refused.error).toMatchObject({ code: "RESUME_MISMATCH" });
    expect(refused.error?.message).toContain("optimizer.betas was [0.9,0.999], is [0.5,0.75]");
    const again = workspace.path("hyper-parameters again");
    const change = ["optimizer", "schedule"];
    await lossesOf(workspace, { ...otherwise, change, checkpoint: { dir: again } }, config);
    const [before, plain, other] = await Promise.all(
      [resume, join(dir, "step-000005"), join(again, "step-000005")].map(stateOf),
    );
    for (const [name, parameter] of other?.parameters ?? []) {
      const at = (state: State | undefined, kind: keyof State, index: number) =>
        state?.[kind].get(name)?.[index] ?? Number.NaN;
      for (const index of parameter.keys()) {
        const gradient = (at(plain, "means", index) - 0.9 * at(before, "means", index)) / 0.1;
        const mean = 0.5 * at(before, "means", index) + 0.5 * gradient;
        const square = 0.75 * at(before, "squares", index) + 0.25 * gradient ** 2;
        // The gradient is a difference of moments in float32, ten times as large.
        expect(Math.abs(at(other, "means", index) - mean)).toBeLessThan(1e-6);
        expect(Math.abs(at(other, "squares", index) - square)).toBeLessThan(1e-6);
        const corrected = { mean: mean / (1 - 0.5 ** 5), square: square / (1 - 0.75 ** 5) };
        // Cosine's last step of warm-up, in which it has its full rate; no decay.
        const moved = (1e-3 * corrected.mean) / (Math.sqrt(corrected.square) + 1e-3);
        expect(
          Math.abs(at(before, "parameters", index) - moved - at(other, "parameters", index)),
        ).toBeLessThan(1e-6);
      }
    }
  });

  // BMTrain's optim_state, which fails there (Appendix A 1): ten steps, saved, ten more; built again, loaded, ten more.
  it("saves and loads the state of several optimizers and of the scale, whatever layout and scale it is built with", async () => {
    const dir = workspace.path("state");
    const config = { optimizer: "several" };
    const scaled = {
      precision: "bf16",
      lossScale: { kind: "torch", scale: 2 ** 10, growthInterval: 4 },
    } as const;
    await lossesOf(
      workspace,
      { ranks: 2, zero: 3, steps: 20, ...scaled, checkpoint: { dir, everySteps: 10 } },
      config,
    );
    const again = workspace.path("state again");
    const resume = join(dir, "step-000010");
    const built = { ...scaled, lossScale: { kind: "torch", scale: 10_485_760, growthInterval: 4 } } as const;
    await lossesOf(
      workspace,
      { ranks: 1, zero: 1, steps: 20, ...built, resume, checkpoint: { dir: again } },
      { ...config, accumulation: 2 },
    );
    for (const file of ["model.safetensors", "optimizer.safetensors"]) {
      const [first, second] = await Promise.all(
        [dir, again].map((path) => readFile(join(path, "step-000020", file))),
      );
      expect(second?.equals(first as Buffer), file).toBe(true);
    }
    const records = await Promise.all(
      [dir, again].map(async (path) =>
        JSON.parse(await readFile(join(path, "step-000020", "manifest.json"), "utf8")),
      ),
    );
    expect(records[0].optimizer).toEqual({
      numUpdates: 20,
      lossScale: { scale: 2 ** 15, goodSteps: 0, hysteresis: 0 },
    });
    expect(records[1].optimizer).toEqual(records[0].optimizer);
  });

  it("refuses optimizers that share a parameter or leave one out", async () => {
    const job = new URL("../../fixtures/jobs/optimizers.ts", import.meta.url);
    for (const [only, message] of [
      ["shared", /one for p, got sgd and lion/],
      ["left out", /one for q, got none/],
    ] as const) {
      await using runtime = await Runtime.spawn();
      await expect(runtime.run(job, { only })).rejects.toThrow(message);
    }
  });
});

describe("clipping", () => {
  const workspace = new Workspace();
  afterAll(() => workspace[Symbol.dispose]());

  it.each(["inf", "value"])(
    "by %s gives the same bits at every level, for ranks and for accumulation",
    async (by) => {
      const config = { clipBy: by, clipNorm: 1e-2 };
      const plain = await lossesOf(workspace, { ranks: 2, zero: 0, steps: 6 }, config);
      for (const zero of [2, 3]) {
        expect(await lossesOf(workspace, { ranks: 2, zero, steps: 6 }, config)).toEqual(plain);
      }
      const one = { ...config, accumulation: 2 };
      expect(await lossesOf(workspace, { ranks: 1, zero: 3, steps: 6 }, one)).toEqual(plain);
      expect(await lossesOf(workspace, { ranks: 2, zero: 3, steps: 6 })).not.toEqual(plain);
    },
  );

  // Appendix A 8: BMTrain's inf norm crashes where a rank's slice is empty.
  it("by the inf norm takes a rank whose slice of a block is empty", async () => {
    const tiny = { clipBy: "inf", clipNorm: 1e-2, width: 8, heads: 2, layers: 1, batch: 8 };
    const eight = await lossesOf(workspace, { ranks: 8, zero: 3, steps: 3 }, tiny);
    const one = await lossesOf(workspace, { ranks: 1, zero: 3, steps: 3 }, { ...tiny, accumulation: 8 });
    expect(one).toEqual(eight);
  });

  it.each([
    ["inf", 1e-3],
    ["value", 1e-3],
    ["l2", 1e-2],
  ] as const)(
    "by %s bounds the averaged gradient: with SGD, by how far the parameters move",
    async (by, max) => {
      const dir = workspace.path(by);
      const config = { clipBy: by, clipNorm: max, optimizer: "plain SGD" };
      const options = {
        ranks: 2,
        zero: 3,
        steps: 6,
        checkpoint: { dir, everySteps: 1 },
        precision: "fp32",
      } as const;
      const { events, error } = await runTiny(workspace, options, config);
      expect(error).toBeUndefined();
      const reported = events.flatMap((event) => (event.kind === "step.finished" ? [event] : []));
      const rate = reported[5]?.learningRate ?? 0;
      const moved = await difference(join(dir, "step-000005"), join(dir, "step-000006"));
      const norm = by === "l2" ? Math.hypot(...moved) : Math.max(...moved.map(Math.abs));
      // Parameters near 1 hold a step of 1e-3 to some 1e-4 of it.
      expect(norm / (rate * max)).toBeCloseTo(1, 3);
    },
  );

  it("bounds the gradient of one optimizer's parameters by themselves, and of the rest by the job's rule", async () => {
    const dir = workspace.path("alone");
    const config = { optimizer: "clipped alone", clipNorm: 0.5 };
    const options = { ranks: 2, steps: 6 } as const;
    const checkpoint = { dir, everySteps: 1 };
    const { events, error, losses } = await runTiny(workspace, { ...options, zero: 3, checkpoint }, config);
    expect(error).toBeUndefined();
    const rate =
      events.flatMap((event) => (event.kind === "step.finished" ? [event.learningRate] : []))[5] ?? 0;
    const moved = (of: RegExp) => difference(join(dir, "step-000005"), join(dir, "step-000006"), of);
    expect(Math.hypot(...(await moved(/wte|wpe/))) / (rate * 1e-2)).toBeCloseTo(1, 3);
    // The rest of the job's 0.5 without the embeddings' share of the norm.
    const rest = Math.hypot(...(await moved(/^(?!.*(wte|wpe))/))) / rate;
    expect(rest).toBeGreaterThan(0.02);
    expect(rest).toBeLessThan(0.5);
    expect(await lossesOf(workspace, { ...options, zero: 0 }, config)).toEqual(losses);
    const one = { ...config, accumulation: 2 };
    expect(await lossesOf(workspace, { ranks: 1, steps: 6, zero: 2 }, one)).toEqual(losses);
  });

  it.each([
    [
      "a norm of nobody",
      { clipNorm: 0.5, clipBy: "taxicab" },
      /clipNorm to be a number > 0, or \{ by, max \} with by l2, inf or value/,
    ],
  ])("refuses %s", async (_, config, message) => {
    await using runtime = await Runtime.spawn();
    const rejected = runtime.run(tinyJob, {
      data: workspace.text,
      cache: workspace.path("cache"),
      ...config,
    });
    await expect(rejected).rejects.toThrow(message);
  });
});

/** The state of one AdamW in a checkpoint, by parameter. */
interface State {
  readonly parameters: ReadonlyMap<string, Float32Array>;
  readonly means: ReadonlyMap<string, Float32Array>;
  readonly squares: ReadonlyMap<string, Float32Array>;
}

async function stateOf(folder: string): Promise<State> {
  const read = async (name: string, prefix: string) => {
    await using file = await SafetensorsFile.open(join(folder, name));
    const entries = [...file.tensors.keys()].filter((entry) => entry.startsWith(prefix));
    return new Map(
      await Promise.all(
        entries.map(async (entry) => {
          const { buffer, byteOffset, byteLength } = await file.read(entry);
          return [entry.slice(prefix.length), new Float32Array(buffer, byteOffset, byteLength / 4)] as const;
        }),
      ),
    );
  };
  return {
    parameters: await read("model.safetensors", ""),
    means: await read("optimizer.safetensors", "exp_avg."),
    squares: await read("optimizer.safetensors", "exp_avg_sq."),
  };
}

/** Every parameter's change from one checkpoint to another, of those whose names match. */
async function difference(from: string, to: string, of = /./): Promise<number[]> {
  await using before = await SafetensorsFile.open(join(from, "model.safetensors"));
  await using after = await SafetensorsFile.open(join(to, "model.safetensors"));
  const changes: number[] = [];
  for (const name of before.tensors.keys()) {
    if (!of.test(name)) continue;
    const [a, b] = await Promise.all([before.read(name), after.read(name)]);
    const numbers = (bytes: Uint8Array) =>
      new Float32Array(bytes.buffer, bytes.byteOffset, bytes.byteLength / 4);
    const values = numbers(a);
    changes.push(...Array.from(numbers(b), (value, index) => value - (values[index] ?? 0)));
  }
  return changes;
}
