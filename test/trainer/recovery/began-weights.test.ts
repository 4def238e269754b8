import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { expect, it, onTestFinished } from "vitest";
import { LastGood } from "../../../src/actors/trainer/recovery/last-good.ts";
import { startFromSeed } from "../../../src/actors/trainer/resume/start.ts";

it("refuses to begin again from a folder of weights of which a file has changed, by the file's name", async () => {
  const folder = join(mkdtempSync(join(tmpdir(), "troupe-test-")), "weights");
  onTestFinished(() => rmSync(join(folder, ".."), { recursive: true }));
  mkdirSync(folder);
  const file = join(folder, "model.safetensors");
  writeFileSync(file, "weights");
  const initial = { kind: "weights", step: 0, folder, seed: 1, entries: {} } as const;
  const lastGood = new LastGood({
    start: { ...startFromSeed(1), initial },
    runId: undefined,
    resume: undefined,
    checkpointer: undefined,
    deadlineMs: 1_000,
    emit: () => {},
  });
  expect(await lastGood.newest()).toEqual(initial);
  writeFileSync(file, "other weights");
  await expect(lastGood.newest()).rejects.toMatchObject({
    code: "DATA_CHANGED",
    message: expect.stringContaining(`[pretrained] expected ${file} to stay as it was`),
  });
});
