import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { expect, it, onTestFinished } from "vitest";
import type { CheckpointerProtocol } from "../../../src/actors/protocols/checkpointer.ts";
import { LastGood, type LastGoodOptions } from "../../../src/actors/trainer/recovery/last-good.ts";
import { startFromSeed } from "../../../src/actors/trainer/resume/start.ts";
import { writeCheckpoint } from "../../../src/library/checkpoint/index.ts";
import type { ActorRef } from "../../../src/runtime/index.ts";
import { contentOf } from "../../checkpoint/content.ts";
import { startS3, useS3 } from "../../fixtures/s3/s3-server.ts";

/** The states of a run that began from a seed. */
function lastGoodOf(options: Partial<LastGoodOptions>): LastGood {
  return new LastGood({
    start: startFromSeed(1),
    runId: undefined,
    resume: undefined,
    checkpointer: undefined,
    deadlineMs: 1_000,
    emit: () => {},
    ...options,
  });
}

it("refuses to begin again from a folder of weights of which a file has changed, by the file's name", async () => {
  const folder = join(mkdtempSync(join(tmpdir(), "troupe-test-")), "weights");
  onTestFinished(() => rmSync(join(folder, ".."), { recursive: true }));
  mkdirSync(folder);
  const file = join(folder, "model.safetensors");
  writeFileSync(file, "weights");
  const initial = { kind: "weights", step: 0, folder, seed: 1, entries: {} } as const;
  const lastGood = lastGoodOf({ start: { ...startFromSeed(1), initial } });
  expect(await lastGood.newest()).toEqual(initial);
  writeFileSync(file, "other weights");
  await expect(lastGood.newest()).rejects.toMatchObject({
    code: "DATA_CHANGED",
    message: expect.stringContaining(`[pretrained] expected ${file} to stay as it was`),
  });
});

it("never goes back to a copy in memory that a rewind has dropped, but to the next one", async () => {
  const state = { step: 4, progress: { numUpdates: 4 }, sizeBytes: 8 };
  const checkpointer = { ask: async () => ({ state }) } as unknown as ActorRef<CheckpointerProtocol>;
  const lastGood = lastGoodOf({ checkpointer });
  expect(await lastGood.newest(4)).toMatchObject({ kind: "memory", step: 4 });
  expect(await lastGood.newest(3)).toMatchObject({ kind: "seed" });
  expect(await lastGood.newest()).toMatchObject({ kind: "seed" });
  state.step = 3;
  lastGood.note({ step: 3, path: undefined });
  expect(await lastGood.newest()).toMatchObject({ kind: "memory", step: 3 });
});

it("takes no checkpoint for damaged while its store cannot be reached", async () => {
  await using s3 = await startS3("models");
  useS3(s3);
  const { path } = await writeCheckpoint("s3://models/run", contentOf(2));
  const events: unknown[] = [];
  const lastGood = lastGoodOf({ emit: (event) => events.push(event) });
  lastGood.note({ step: 2, path });
  s3.fault = () => 500;
  await expect(lastGood.newest()).rejects.toMatchObject({ code: "S3_FAILED" });
  s3.fault = () => undefined;
  expect(await lastGood.newest()).toMatchObject({ kind: "checkpoint", step: 2 });
  expect(events).toEqual([]);
});
