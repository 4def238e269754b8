import { readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { lossesOf, runTiny, Workspace } from "../fixtures/run-tiny.ts";

const steps = 12;

describe("resuming", () => {
  const workspace = new Workspace();
  const dir = workspace.path("run");
  let straight: readonly number[] = [];

  beforeAll(async () => {
    straight = await lossesOf(workspace, { ranks: 2, zero: 3, steps });
    await lossesOf(workspace, { ranks: 2, zero: 3, steps, checkpoint: { dir, everySteps: 3 } });
  });
  afterAll(() => workspace[Symbol.dispose]());

  it.each([3, 6, 9])("continues the straight run bit for bit from step %i", async (step) => {
    const resume = join(dir, `step-${String(step).padStart(6, "0")}`);
    const told = await runTiny(workspace, { ranks: 2, zero: 3, steps, resume });
    expect(told.error).toBeUndefined();
    expect(told.losses.slice(step)).toEqual(straight.slice(step));
    expect(told.losses.filter((loss) => loss !== undefined)).toHaveLength(steps - step);
  });

  it("continues under another ZeRO level and with accumulation in place of ranks", async () => {
    const resume = join(dir, "step-000006");
    const level0 = await runTiny(workspace, { ranks: 2, zero: 0, steps, resume });
    expect(level0.losses.slice(6)).toEqual(straight.slice(6));
    const oneRank = await runTiny(workspace, { ranks: 1, zero: 3, steps, resume }, { accumulation: 2 });
    expect(oneRank.losses.slice(6)).toEqual(straight.slice(6));
  });

  it("continues a continued run: twice in a row is as good as once", async () => {
    const again = workspace.path("again");
    await runTiny(workspace, {
      ranks: 2,
      zero: 3,
      steps: 7,
      resume: join(dir, "step-000003"),
      checkpoint: { dir: again },
    });
    const told = await runTiny(workspace, { ranks: 2, zero: 3, steps, resume: again });
    expect(told.losses.slice(7)).toEqual(straight.slice(7));
  });

  it("takes the seed of the checkpoint and refuses another", async () => {
    const told = await runTiny(workspace, { ranks: 2, seed: 5, steps, resume: dir });
    expect(told.error?.message).toMatch(/expected seed to be 1337, .*: got 5/);
  });

  it("refuses another batch size, with which a step would be another step", async () => {
    const told = await runTiny(workspace, { ranks: 2, steps: 20, resume: dir }, { batch: 8 });
    expect(told.error?.message).toMatch(/expected a batch of 4 samples, that of the checkpoint: got 8/);
  });

  it("refuses a model of another shape, naming the tensor", async () => {
    const told = await runTiny(workspace, { ranks: 2, steps: 20, resume: dir }, { width: 64 });
    expect(told.error).toMatchObject({ code: "CHECKPOINT_SHAPE" });
    expect(told.error?.message).toMatch(/wte\.weight .*\[256,64\].*\[256,32\]/);
  });

  it("passes a damaged checkpoint over for the newest whole one", async () => {
    const path = join(dir, "step-000012", "model.safetensors");
    const bytes = readFileSync(path);
    bytes[bytes.length - 5] = (bytes[bytes.length - 5] ?? 0) ^ 1;
    writeFileSync(path, bytes);
    const told = await runTiny(workspace, { ranks: 2, zero: 3, steps, resume: dir });
    expect(told.losses.slice(9)).toEqual(straight.slice(9));
    expect(told.losses.filter((loss) => loss !== undefined)).toHaveLength(3);
  });
});
