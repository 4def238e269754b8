import { closeSync, openSync, readdirSync, writeSync } from "node:fs";
import { mkdir, readdir, readFile, rename, rm, truncate, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { lastValueFrom, toArray } from "rxjs";
import { describe, expect, onTestFinished, test } from "vitest";
import { scope, type Tensor, tensor } from "../../src/compute/tensor/index.ts";
import type { TroupeEvent } from "../../src/job/events/index.ts";
import { HuggingFaceFolder, LocalFolder } from "../../src/library/checkpoint/index.ts";
import type { ActorContext } from "../../src/runtime/index.ts";
import {
  CheckpointService,
  type CheckpointServiceOptions,
  type GivenTensor,
} from "../../src/tools/service/index.ts";
import writer, { type WriteProgress, type WriterProtocol } from "../../src/tools/service/writer.ts";
import { refusal } from "../checkpoint/refusal.ts";
import { temporaryFolder } from "./temporary-folder.ts";

async function open(options: CheckpointServiceOptions = {}) {
  const dir = options.dir ?? (await temporaryFolder());
  const service = await CheckpointService.open({ ...options, dir });
  onTestFinished(() => service.close());
  return { service, dir };
}

async function floats(service: CheckpointService, step: number, name: string): Promise<number[]> {
  await using checkpoint = await service.read(step);
  const { shape } = checkpoint.entry(name);
  const bytes = await checkpoint.read(name, new Uint8Array(4 * shape.reduce((a, b) => a * b, 1)));
  return [...new Float32Array(bytes.buffer)];
}

describe("a checkpoint service", () => {
  test("saves tensors, arrays of numbers, raw bytes and slices, and gives them back", async () => {
    const { service, dir } = await open();
    const raw = { dtype: "F32", shape: [2, 4] } as const;
    const half = (column: number) => ({
      ...raw,
      bytes: new Uint8Array(Float32Array.of(column, column + 1, column + 4, column + 5).buffer),
      slice: { offset: [0, column], shape: [2, 2] },
    });
    const save = scope(() =>
      service.save({
        step: 7,
        tensors: {
          "a.weight": tensor([
            [1, 2],
            [3, 4],
          ]).transpose(0, 1),
          "b.weight": Float32Array.of(5, 6),
          "c.weight": { ...raw, bytes: new Uint8Array(32).fill(0) },
          "d.weight": [half(2), half(0)],
          half: tensor(Uint16Array.of(0x3f80, 0xc000), { dtype: "bfloat16" }),
          scalar: tensor(3),
        },
        optimizer: { "exp_avg.b.weight": Float32Array.of(7, 8) },
        metadata: { loss: 1.5, note: "é" },
        config: { model_type: "mine" },
      }),
    );
    const saved = await save.durable;
    expect(saved).toMatchObject({ path: join(dir, "step-000007"), verified: true });
    expect(await floats(service, 7, "a.weight")).toEqual([1, 3, 2, 4]);
    expect(await floats(service, 7, "b.weight")).toEqual([5, 6]);
    expect(await floats(service, 7, "c.weight")).toEqual(new Array(8).fill(0));
    expect(await floats(service, 7, "d.weight")).toEqual([0, 1, 2, 3, 4, 5, 6, 7]);
    expect(await floats(service, 7, "scalar")).toEqual([3]);
    expect(await floats(service, 7, "exp_avg.b.weight")).toEqual([7, 8]);
    await using checkpoint = await service.read();
    expect(checkpoint.entry("half")).toMatchObject({ dtype: "BF16", shape: [2] });
    expect(checkpoint.state.metadata).toEqual({ loss: 1.5, note: "é" });
    expect(checkpoint.optimizer).toEqual(["exp_avg.b.weight"]);
    await using folder = await HuggingFaceFolder.open(join(dir, "step-000007"));
    expect(folder.config).toEqual({ model_type: "mine" });
    expect(folder.names).not.toContain("exp_avg.b.weight");
  });

  test("saves what it was given, though all of it changes as soon as `save` returns: 1,000 of 1,000", async () => {
    const { service } = await open({ verify: false, keepLast: 2 });
    const arrays = Array.from({ length: 10 }, () => new Float32Array(64));
    const held = arrays.map((array) => tensor(array));
    onTestFinished(() => held.forEach((each) => void each.dispose()));
    const fill = (value: number) => {
      for (const array of arrays) array.fill(value);
      held.forEach((each, index) => void each.copyFrom(arrays[index] as Float32Array));
    };
    const named = (kind: string, values: readonly (Float32Array | Tensor)[]) =>
      values.map((value, index) => [`${kind}.${index}`, value] as const);
    const tensors = Object.fromEntries([...named("array", arrays), ...named("tensor", held)]);
    let numEqual = 0;
    for (let step = 0; step < 50; step++) {
      fill(step);
      const save = service.save({ step, tensors });
      fill(-1);
      await save.durable;
      for (const name of Object.keys(tensors)) {
        if ((await floats(service, step, name)).every((value) => value === step)) numEqual += 1;
      }
    }
    expect(numEqual).toBe(1000);
  });

  test("tells how far it is, and each save's beginning and end", async () => {
    const { service } = await open();
    const save = service.save({ step: 1, tensors: { a: new Float32Array(1 << 20), b: new Uint8Array(3) } });
    const progress = await lastValueFrom(save.progress$.pipe(toArray()));
    expect(progress.at(-1)).toEqual({ writtenBytes: 4 * 2 ** 20 + 3, totalBytes: 4 * 2 ** 20 + 3 });
    const kinds: string[] = [];
    service.events$.subscribe(({ kind }) => kinds.push(kind));
    await service.close();
    expect(kinds[0]).toBe("checkpoint.started");
    expect(kinds).toContain("checkpoint.progressed");
    expect(kinds.at(-1)).toBe("checkpoint.saved");
  });

  test("writes one save at a time; others wait in the memory that was declared, and no more", async () => {
    const { service } = await open({ stagingBytes: 2048 });
    const tensors = { a: new Uint8Array(1000) };
    const [first, second] = [service.save({ step: 1, tensors }), service.save({ step: 2, tensors })];
    const error = await refusal(() => service.save({ step: 3, tensors }));
    expect(error.code).toBe("CHECKPOINT_STAGING");
    await first.durable;
    await second.durable;
    await service.save({ step: 3, tensors }).durable;
    // A larger save reuses the memory of smaller ones.
    await service.save({ step: 4, tensors: { a: new Uint8Array(2000) } }).durable;
    expect((await service.list()).map(({ step }) => step)).toEqual([4, 3, 2, 1]);
    expect((await refusal(() => service.save({ step: 5, tensors: { a: new Uint8Array(2049) } }))).code).toBe(
      "CHECKPOINT_STAGING",
    );
  });

  test("skips a save while another is written, if its options say so, and counts it", async () => {
    const { service } = await open({ whenBusy: "skip" });
    const events: TroupeEvent[] = [];
    service.events$.subscribe((event) => events.push(event));
    const first = service.save({ step: 1, tensors: { a: new Uint8Array(10) } });
    const second = service.save({ step: 2, tensors: { a: new Uint8Array(10) } });
    expect(await second.durable).toBeUndefined();
    expect(await first.durable).toBeDefined();
    expect(await service.save({ step: 3, tensors: { a: new Uint8Array(10) } }).durable).toBeDefined();
    await service.close();
    expect(events.find(({ kind }) => kind === "checkpoint.skipped")).toMatchObject({
      step: 2,
      numSkipped: 1,
    });
    expect(events.filter(({ kind }) => kind === "checkpoint.saved")).toMatchObject([
      { step: 1 },
      { step: 3 },
    ]);
  });

  test("keeps the checkpoints that its options name", async () => {
    const { service, dir } = await open({ keepLast: 2, keepEvery: 3 });
    for (let step = 1; step <= 7; step++)
      await service.save({ step, tensors: { a: new Uint8Array(1) } }).durable;
    expect((await readdir(dir)).toSorted()).toEqual([
      ".lock",
      "latest",
      "step-000003",
      "step-000006",
      "step-000007",
    ]);
  });

  test("keeps the checkpoint before, where the new one does not read back as it was written", async () => {
    const dir = await temporaryFolder();
    await using lock = await new LocalFolder(dir).lock("a test");
    const sizeBytes = 3 << 20;
    const tensor = {
      group: "weights",
      name: "a",
      dtype: "U8",
      shape: [sizeBytes],
      begin: 0,
      sizeBytes,
    } as const;
    const tensors = [{ ...tensor, memory: new SharedArrayBuffer(sizeBytes) }];
    // Damages the second one behind its writer's back, in a chunk that is not read when it is opened.
    const emit = ({ step, writtenBytes, totalBytes }: WriteProgress) => {
      if (step !== 2 || writtenBytes < totalBytes) return;
      const draft = readdirSync(dir).find((name) => name.startsWith(".saving-step-000002")) ?? "";
      const file = openSync(join(dir, draft, "model.safetensors"), "r+");
      writeSync(file, "damage", sizeBytes - 100);
      closeSync(file);
    };
    const context = { emit } as unknown as ActorContext<WriterProtocol>;
    const init = { location: dir, hold: lock.hold, keep: { last: 1 }, verify: true };
    const { handlers } = await writer.start(context, init);
    const write = (step: number) => handlers.write({ step, tensors, metadata: {}, config: {} });
    await write(1);
    expect((await refusal(() => write(2))).code).toBe("CHECKPOINT_DAMAGED");
    expect(await new LocalFolder(dir).list()).toEqual(["step-000001"]);
    await write(3);
    expect(await new LocalFolder(dir).list()).toEqual(["step-000003"]);
  });

  test("finds every chunk that was damaged, by file, tensor and offset", async () => {
    const { service, dir } = await open();
    const values = new Uint8Array(5 << 20).map((_, index) => index % 251);
    await service.save({ step: 1, tensors: { big: values, small: new Uint8Array(9) } }).durable;
    expect(await service.verify(1)).toEqual([]);
    const path = join(dir, "step-000001", "model.safetensors");
    const bytes = await readFile(path);
    for (const place of [1_500_000, 4_300_000]) bytes[place] = (bytes[place] as number) ^ 1;
    await writeFile(path, bytes);
    const damages = await service.verify(1);
    expect(damages.map(({ path, tensor, offsetBytes }) => [path, tensor, offsetBytes])).toEqual([
      [path, "big", 1 << 20],
      [path, "big", 4 << 20],
    ]);
    await truncate(path, 100);
    expect(await service.verify(1)).toMatchObject([{ path }]);
  });

  test("refuses what is no tensor, parts that do not fit, and says which are missing", async () => {
    const { service, dir } = await open();
    const raw = { dtype: "F32", shape: [2, 2], bytes: new Uint8Array(8) } as const;
    const row = (index: number) => ({ ...raw, slice: { offset: [index, 0], shape: [1, 2] } });
    const codeOf = async (given: unknown) =>
      (await refusal(() => service.save({ step: 1, tensors: { a: given as GivenTensor } }))).code;
    expect(await codeOf("text")).toBe("CHECKPOINT_SLICE");
    expect(await codeOf(raw)).toBe("CHECKPOINT_SLICE");
    expect(await codeOf([row(0), row(0)])).toBe("CHECKPOINT_SLICE");
    expect(await codeOf(row(2))).toBe("CHECKPOINT_SLICE");
    expect(await codeOf({ ...raw, dtype: "F99" })).toBe("CHECKPOINT_SLICE");
    expect(await codeOf({ ...raw, shape: [-1, 2] })).toBe("CHECKPOINT_SLICE");
    expect(await codeOf([row(0)])).toBe("CHECKPOINT_INCOMPLETE");
    expect((await refusal(() => service.save({ step: 1.5, tensors: {} }))).code).toBe("OPTION");
    expect((await refusal(() => service.read(1))).code).toBe("CHECKPOINT_MISSING");
    expect(await readdir(dir)).toEqual([".lock"]);
  });

  test("reports a save that fails once, leaves nothing of it, and saves the next", async () => {
    const { service, dir } = await open();
    await writeFile(join(dir, "latest"), "");
    const events: TroupeEvent[] = [];
    service.events$.subscribe((event) => events.push(event));
    // A folder in the way of the file that names the newest checkpoint.
    await rm(join(dir, "latest"));
    await mkdir(join(dir, "latest"));
    await writeFile(join(dir, "latest", "x"), "");
    const error = await refusal(() => service.save({ step: 1, tensors: { a: new Uint8Array(9) } }).durable);
    expect(error.code).toBe("CHECKPOINT_SAVE_FAILED");
    expect(error.message).toContain(`expected ${dir}/latest to be a file, got a folder (move it away)`);
    expect(error.message).not.toContain("free space");
    await rm(join(dir, "latest"), { recursive: true });
    await service.save({ step: 2, tensors: { a: new Uint8Array(9) } }).durable;
    await service.close();
    expect(events.filter(({ kind }) => kind === "checkpoint.failed")).toMatchObject([{ step: 1 }]);
    expect((await readdir(dir)).filter((entry) => entry.startsWith("."))).toEqual([]);
  });

  test("refuses a place where a folder has the name of the file that names the newest checkpoint", async () => {
    const dir = await temporaryFolder();
    await mkdir(join(dir, "latest"));
    const error = await refusal(() => CheckpointService.open({ dir }));
    expect(error.message).toBe(
      `[checkpoint] expected ${dir}/latest to be a file, got a folder (move it away)`,
    );
    expect(await readdir(dir)).toEqual(["latest"]);
  });

  test("whose place another service takes fails its saves, and changes nothing there", async () => {
    const dir = join(await temporaryFolder(), "saves");
    const { service } = await open({ dir, keepLast: 1 });
    await service.save({ step: 1, tensors: { a: Uint8Array.of(1) } }).durable;
    await rename(dir, `${dir}.old`);
    const { service: other } = await open({ dir });
    for (const step of [1, 2]) await other.save({ step, tensors: { a: Uint8Array.of(9) } }).durable;
    for (const step of [2, 3]) {
      const error = await refusal(() => service.save({ step, tensors: { a: Uint8Array.of(1) } }).durable);
      expect(error.message).toContain(
        `expected ${dir} to be the folder that this writer has locked, got another in its place`,
      );
    }
    await service.close();
    expect((await other.list()).map(({ step, latest }) => [step, latest])).toEqual([
      [2, true],
      [1, false],
    ]);
    expect(await other.verify(2)).toEqual([]);
    await other.close();
    expect(await readdir(dir)).toEqual(["latest", "step-000001", "step-000002"]);
    expect(await readdir(`${dir}.old`)).toEqual(["latest", "step-000001"]);
  });

  test.each([
    [{}, "dir or storage"],
    [{ dir: "a", storage: "s3://b" }, "dir or storage"],
    [{ dir: "a", keepLast: 0 }, "keepLast"],
    [{ dir: "a", keepEvery: 2 }, "keepEvery"],
    [{ dir: "a", stagingBytes: -1 }, "stagingBytes"],
    [{ dir: "a", whenBusy: "never" }, "whenBusy"],
    [{ dir: "a", keepEverySteps: 5 }, "got keepEverySteps"],
  ])("refuses the options %o by name", async (options, name) => {
    const error = await refusal(() => CheckpointService.open(options as CheckpointServiceOptions));
    expect([error.code, error.message.includes(name)]).toEqual(["OPTION", true]);
  });
});
