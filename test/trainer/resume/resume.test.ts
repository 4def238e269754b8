import { readFileSync, rmSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { stepFolder } from "../../../src/entries/checkpoint.ts";
import type { RuntimeOptions } from "../../../src/entries/index.ts";
import { lineLength } from "../../fixtures/jobs/counted.ts";
import { lossesOf, runTiny, Workspace } from "../../fixtures/run-tiny.ts";

const steps = 12;

describe("resuming", () => {
  const workspace = new Workspace();
  const dir = workspace.path("run");
  let straight: readonly number[] = [];

  beforeAll(async () => {
    straight = await lossesOf(workspace, { ranks: 2, zero: 3, steps, checkpoint: { dir, everySteps: 3 } });
  });
  afterAll(() => workspace[Symbol.dispose]());

  it("continues the straight run bit for bit", async () => {
    const outcome = await runTiny(workspace, { ranks: 2, zero: 3, steps, resume: join(dir, stepFolder(6)) });
    expect(outcome.error).toBeUndefined();
    expect(outcome.losses.slice(6)).toEqual(straight.slice(6));
    expect(outcome.losses.filter((loss) => loss !== undefined)).toHaveLength(6);
  });

  it("needs the weights no more that the run began with", async () => {
    const options = { ranks: 2, zero: 3, steps: 7, resume: join(dir, stepFolder(6)) };
    const outcome = await runTiny(workspace, options, { pretrained: workspace.path("gone") });
    expect(outcome.losses.slice(6)).toEqual(straight.slice(6, 7));
  });

  it("a run resumed twice equals one resumed once", async () => {
    const again = workspace.path("again");
    await runTiny(workspace, {
      ranks: 2,
      zero: 3,
      steps: 7,
      resume: join(dir, "step-000003"),
      checkpoint: { dir: again },
    });
    const outcome = await runTiny(workspace, { ranks: 2, zero: 3, steps, resume: again });
    expect(outcome.losses.slice(7)).toEqual(straight.slice(7));
  });

  it("takes the seed of the checkpoint and refuses another", async () => {
    const outcome = await runTiny(workspace, { ranks: 2, seed: 5, steps, resume: dir });
    expect(outcome.error?.message).toMatch(/expected seed to be 1337, .*, got 5/);
  });

  it("refuses another batch size, with which a step would be another step", async () => {
    const outcome = await runTiny(workspace, { ranks: 2, steps: 20, resume: dir }, { batch: 8 });
    expect(outcome.error?.message).toContain("batchSize was 4, is 8");
  });

  it("refuses a model of another shape, naming the tensor", async () => {
    const outcome = await runTiny(workspace, { ranks: 2, steps: 20, resume: dir }, { width: 64 });
    expect(outcome.error).toMatchObject({ code: "RESUME_MISMATCH" });
    expect(outcome.error?.message).toMatch(/wte\.weight .*\[256,32\].*\[256,64\].*width was 32, is 64/);
  });

  it("skips a damaged checkpoint for the newest undamaged one", async () => {
    const path = join(dir, "step-000012", "model.safetensors");
    const bytes = readFileSync(path);
    bytes[bytes.length - 5] = (bytes[bytes.length - 5] ?? 0) ^ 1;
    writeFileSync(path, bytes);
    const outcome = await runTiny(workspace, { ranks: 2, zero: 3, steps, resume: dir });
    expect(outcome.losses.slice(9)).toEqual(straight.slice(9));
    expect(outcome.losses.filter((loss) => loss !== undefined)).toHaveLength(3);
    expect(outcome.events.filter(({ kind }) => kind === "checkpoint.rejected")).toMatchObject([
      { path: join(dir, stepFolder(12)), error: { code: "CHECKPOINT_DAMAGED" } },
    ]);
  });

  it("skips a checkpoint whose damage is found only while shards read it", async () => {
    // Large enough for what is flipped to be in no chunk that opening reads.
    const large = { vocab: 5000, width: 64 };
    const run = workspace.path("large");
    const options = { ranks: 2, zero: 3, steps: 3 } as const;
    const whole = await lossesOf(workspace, { ...options, checkpoint: { dir: run, everySteps: 1 } }, large);
    const path = join(run, stepFolder(2), "model.safetensors");
    const bytes = readFileSync(path);
    bytes[bytes.length - 5] = (bytes[bytes.length - 5] ?? 0) ^ 1;
    writeFileSync(path, bytes);
    rmSync(join(run, stepFolder(3)), { recursive: true });
    const outcome = await runTiny(workspace, { ...options, resume: run }, large);
    expect(outcome.losses.slice(1)).toEqual(whole.slice(1));
    const words = outcome.events.flatMap((event) =>
      event.kind === "checkpoint.rejected" || event.kind === "run.restored" ? [event] : [],
    );
    expect(words).toMatchObject([
      { kind: "checkpoint.rejected", path: join(run, stepFolder(2)), error: { code: "CHECKPOINT_DAMAGED" } },
      { kind: "run.restored", from: "checkpoint", step: 1 },
    ]);
  });

  it("ends with an error that names the damage if no older checkpoint is undamaged", async () => {
    const alone = join(dir, stepFolder(12));
    const outcome = await runTiny(workspace, { ranks: 2, zero: 3, steps: 20, resume: alone });
    expect(outcome.error).toMatchObject({ code: "CHECKPOINT_DAMAGED" });
    expect(outcome.error?.message).toContain(join(alone, "model.safetensors"));
  });
});

describe("a run that is interrupted after any step", () => {
  const workspace = new Workspace();
  const dir = workspace.path("every");
  const last = 7;
  let straight: readonly number[] = [];

  beforeAll(async () => {
    const checkpoint = { dir, everySteps: 1 };
    straight = await lossesOf(workspace, { ranks: 2, zero: 3, steps: last, checkpoint });
  });
  afterAll(() => workspace[Symbol.dispose]());

  // Layouts that promise the same bits, a different one for each step.
  const same: readonly [RuntimeOptions, Readonly<Record<string, unknown>>][] = [
    [{ ranks: 2, zero: 0 }, {}],
    [{ ranks: 1, zero: 2 }, { accumulation: 2 }],
    [{ ranks: 2, zero: 3, placement: "process" }, {}],
    [{ ranks: 2, zero: 1, offload: { optimizer: "host", ratio: 0.5 } }, {}],
    [{ ranks: 1, zero: 3, offload: { optimizer: "nvme", dir: workspace.folder } }, { accumulation: 2 }],
    [{ ranks: 2, zero: 2, recompute: true }, {}],
  ];

  const stateIn = (folder: string) =>
    ["model", "optimizer"].map((name) =>
      readFileSync(join(folder, stepFolder(last), `${name}.safetensors`)).toString("base64"),
    );

  it.each(same.map(([options, config], index) => [index + 1, options, config] as const))(
    "a run resumed from step %i as %j has the same bits",
    async (step, options, config) => {
      const resume = join(dir, stepFolder(step));
      const checkpoint = { dir: workspace.path(`from-${step}`) };
      const outcome = await runTiny(workspace, { ...options, steps: last, resume, checkpoint }, config);
      expect(outcome.error).toBeUndefined();
      expect(outcome.losses.slice(step)).toEqual(straight.slice(step));
      expect(outcome.losses.filter((loss) => loss !== undefined)).toHaveLength(last - step);
      // The state after the last update too: equal states have equal files.
      expect(stateIn(checkpoint.dir)).toEqual(stateIn(dir));
    },
  );

  // The order of sums differs, some 1e-7 a step; bfloat16 rounds each of them to 8 bits.
  const near: readonly [RuntimeOptions, number][] = [
    [{ ranks: 4, tp: 2 }, 1e-4],
    [{ ranks: 2, pp: 2, accumulation: 2 }, 1e-4],
    [{ ranks: 4, zero: 1 }, 1e-4],
    [{ ranks: 2, precision: "bf16" }, 0.1],
  ];

  it.each(near)("a run resumed as %j has the same losses within %d nats", async (options, toleranceNats) => {
    const outcome = await runTiny(workspace, { ...options, steps: last, resume: join(dir, stepFolder(3)) });
    expect(outcome.error).toBeUndefined();
    for (const [index, loss] of outcome.losses.entries()) {
      if (index >= 3) expect(Math.abs(loss - (straight[index] ?? Number.NaN))).toBeLessThan(toleranceNats);
    }
  });

  it("a run that moves from split layers and stages to one rank and back has the bits of one that stays", async () => {
    const split = { ranks: 4, tp: 2, pp: 2, accumulation: 2, zero: 1, steps: 6 } as const;
    const there = workspace.path("split");
    const stayed = await lossesOf(workspace, { ...split, checkpoint: { dir: there, everySteps: 2 } });
    const on = workspace.path("one");
    const one = await runTiny(workspace, {
      ranks: 1,
      accumulation: 4,
      steps: 4,
      resume: join(there, stepFolder(2)),
      checkpoint: { dir: on, everySteps: 1 },
    });
    expect(one.error).toBeUndefined();
    const back = await runTiny(workspace, { ...split, resume: join(there, stepFolder(4)) });
    expect(back.losses.slice(4)).toEqual(stayed.slice(4));
    const crossed = await runTiny(workspace, { ...split, resume: join(on, stepFolder(4)) });
    for (const step of [4, 5])
      expect(Math.abs((crossed.losses[step] ?? Number.NaN) - (stayed[step] ?? Number.NaN))).toBeLessThan(
        1e-4,
      );
  });
});

describe("the samples of a run", () => {
  const workspace = new Workspace();
  const numbered = workspace.path("numbered.txt");
  const numLines = 23;
  const job = new URL("../../fixtures/jobs/counted.ts", import.meta.url);
  afterAll(() => workspace[Symbol.dispose]());

  it("each sample is read once an epoch, wherever the run was interrupted and on any number of ranks afterwards", async () => {
    const lines = Array.from({ length: numLines }, (_, line) => `${String(line).padStart(lineLength - 1)}\n`);
    writeFileSync(numbered, `${lines.join("")} `);
    const log = workspace.path("log");
    const dir = workspace.path("counted");
    const config = { data: numbered, log };
    const legs: readonly RuntimeOptions[] = [
      { ranks: 2, steps: 3 },
      { ranks: 1, accumulation: 2, steps: 4, resume: dir },
      { ranks: 4, zero: 1, steps: 8, resume: dir },
      { ranks: 2, zero: 0, steps: 12, resume: dir },
    ];
    for (const leg of legs) {
      const { error } = await runTiny(workspace, { ...leg, checkpoint: { dir } }, config, job);
      expect(error).toBeUndefined();
    }
    const read = readFileSync(log, "utf8").trim().split(/[,\n]/).map(Number);
    expect(read).toHaveLength(48);
    const all = Array.from({ length: numLines }, (_, line) => line);
    // Steps of 4 are mid-epoch at the ends of both epochs: ranks note the samples of one step in any order.
    const epochs = [read.slice(0, 20), read.slice(24, 44)];
    for (const [index, whole] of epochs.entries()) expect(new Set(whole).size, `epoch ${index}`).toBe(20);
    const times = all.map((line) => read.filter((other) => other === line).length);
    expect(times.every((count) => count === 2 || count === 3)).toBe(true);
    expect(times.filter((count) => count === 3)).toHaveLength(2);
  });
});

describe("a disk that fails", () => {
  const workspace = new Workspace();
  afterAll(() => workspace[Symbol.dispose]());

  it("a failing disk costs the saves that it fails, and not the run", async () => {
    const dir = workspace.path("run");
    const undisturbed = await lossesOf(workspace, { ranks: 2, steps: 6 });
    const options = { ranks: 2, steps: 6, checkpoint: { dir, everySteps: 2 } };
    const outcome = await runTiny(workspace, options, {}, undefined, (event) => {
      if (event.kind !== "checkpoint.saved" || event.step !== 2) return;
      rmSync(dir, { recursive: true });
      writeFileSync(dir, "in the way");
    });
    expect(outcome.error).toBeUndefined();
    expect(outcome.losses).toEqual(undisturbed);
    const words = outcome.events.flatMap((event) =>
      /^checkpoint\.(saved|failed)$/.test(event.kind) ? [event] : [],
    );
    expect(words).toMatchObject([
      { kind: "checkpoint.saved", step: 2 },
      { kind: "checkpoint.failed", step: 4, error: { code: "CHECKPOINT_SAVE_FAILED" } },
      { kind: "checkpoint.failed", step: 6, error: { code: "CHECKPOINT_SAVE_FAILED" } },
    ]);
  });
});
