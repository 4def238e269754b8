import { execFile } from "node:child_process";
import { randomUUID } from "node:crypto";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { promisify } from "node:util";
import { afterAll, afterEach, beforeAll, describe, expect, onTestFinished, test, vi } from "vitest";
import { empty, noGrad, scope } from "../../src/compute/tensor/index.ts";
import {
  type CheckpointContent,
  listCheckpoints,
  openCheckpoint,
  openStorage,
  prune,
  standingOf,
  verifyCheckpoint,
  writeCheckpoint,
} from "../../src/library/checkpoint/index.ts";
import { convert } from "../../src/library/convert/index.ts";
import { CheckpointService } from "../../src/tools/service/index.ts";
import { patience } from "../fixtures/patience.ts";
import { lossesOf, runTiny, Workspace } from "../fixtures/run-tiny.ts";
import { type S3Server, startS3, useS3 } from "../fixtures/s3/s3-server.ts";
import { temporaryFolder } from "../service/temporary-folder.ts";
import { contentOf } from "./content.ts";
import { refusal } from "./refusal.ts";

const bucket = "models";
let s3: S3Server;
let numPlaces = 0;
const troupe = fileURLToPath(new URL("../../bin/troupe.mjs", import.meta.url));

beforeAll(async () => {
  s3 = await startS3(bucket);
  useS3(s3);
});
afterAll(() => s3[Symbol.asyncDispose]());
afterEach(() => {
  s3.fault = () => undefined;
});

/** A prefix of its own for each test. */
function place(): { readonly location: string; readonly prefix: string } {
  numPlaces += 1;
  const prefix = `run-${numPlaces}`;
  return { location: `s3://${bucket}/${prefix}`, prefix };
}

const keysBelow = async (prefix: string) =>
  (await s3.keys(bucket)).filter((key) => key.startsWith(`${prefix}/`));

/** A checkpoint with a tensor of some 12 MB, so that its file travels in parts. */
function largeContent(step: number): CheckpointContent {
  const values = new Float32Array(3_000_000).map((_, index) => index + step);
  const large = {
    name: "large",
    dtype: "F32",
    shape: [3, 1_000_000],
    read: () => new Uint8Array(values.buffer),
  } as const;
  const content = contentOf(step);
  return { ...content, weights: [...content.weights, large] };
}

describe("checkpoints in S3", () => {
  test("are written in parts whose checksums the store compares, and read by ranges, only what is wanted", async () => {
    const { location } = place();
    const before = s3.numChecked;
    await writeCheckpoint(location, largeContent(3));
    expect(s3.openUploads.size).toBe(0);
    // Two parts of 12 MB, and small objects in one part.
    expect(s3.numChecked - before).toBeGreaterThanOrEqual(2 + 5);
    await using checkpoint = await openCheckpoint(location);
    expect(checkpoint.state.step).toBe(3);
    const box = { offset: [1, 10], shape: [2, 5] };
    const part = new Float32Array((await checkpoint.read("large", new Uint8Array(40), box)).buffer);
    expect([...part]).toEqual(
      [13, 14, 15, 16, 17, 1_000_013, 1_000_014, 1_000_015, 1_000_016, 1_000_017].map((n) => n + 1_000_000),
    );
    expect(checkpoint.readBytes).toBeLessThanOrEqual(4 << 20);
    const whole = scope(() => {
      const into = empty([3_000_000]);
      return noGrad(() => into);
    });
    await checkpoint.readRange("large", 0, whole);
    const values = whole.toTypedArray() as Float32Array;
    expect(values.every((value, index) => value === Math.fround(index + 3))).toBe(true);
    whole.dispose();
  });

  test("are listed, kept and pruned like those of a folder", async () => {
    const { location, prefix } = place();
    for (const step of [1, 2, 3, 4]) await writeCheckpoint(location, contentOf(step));
    const storage = await openStorage(location);
    expect(await storage.latest()).toBe("step-000004");
    expect((await listCheckpoints(storage)).map(({ step, latest }) => [step, latest])).toEqual([
      [4, true],
      [3, false],
      [2, false],
      [1, false],
    ]);
    expect((await prune(storage, { last: 1, every: 2 })).removed).toEqual(["step-000003", "step-000001"]);
    const folders = new Set((await keysBelow(prefix)).map((key) => key.split("/")[1]));
    expect([...folders]).toEqual(["latest", "step-000002", "step-000004"]);
  });

  test("replace one of the same step in a single write, and leave nothing of the old", async () => {
    const { location, prefix } = place();
    await writeCheckpoint(location, contentOf(5));
    const numKeys = (await keysBelow(prefix)).length;
    await writeCheckpoint(location, { ...contentOf(5), config: { model_type: "other" } });
    await using checkpoint = await openCheckpoint(location);
    expect(checkpoint.config).toEqual({ model_type: "other" });
    expect((await keysBelow(prefix)).length).toBe(numKeys);
  });

  test("that were damaged are found by file, tensor and offset, and skipped for an older undamaged one", async () => {
    const { location } = place();
    await writeCheckpoint(location, contentOf(1));
    await writeCheckpoint(location, largeContent(2));
    const storage = await openStorage(location);
    expect(await verifyCheckpoint(storage, "step-000002")).toEqual([]);
    const { client, sdk } = await clientOf();
    const key = (await s3.keys(bucket)).find(
      (name) =>
        location.endsWith(name.split("/")[0] as string) &&
        name.includes("step-000002") &&
        name.endsWith("model.safetensors"),
    );
    const stored = await client.send(new sdk.GetObjectCommand({ Bucket: bucket, Key: key }));
    const bytes = Buffer.from((await stored.Body?.transformToByteArray()) ?? []);
    bytes.writeUInt8((bytes[9_000_000] as number) ^ 4, 9_000_000);
    await client.send(new sdk.PutObjectCommand({ Bucket: bucket, Key: key, Body: bytes }));
    expect(await verifyCheckpoint(storage, "step-000002")).toMatchObject([
      { path: `s3://${bucket}/${key}`, tensor: "large", offsetBytes: 8 << 20 },
    ]);
    await client.send(new sdk.PutObjectCommand({ Bucket: bucket, Key: key, Body: bytes.subarray(0, 1000) }));
    await using checkpoint = await openCheckpoint(location);
    expect(checkpoint.state.step).toBe(1);
    expect(checkpoint.passedOver[0]?.code).toBe("CHECKPOINT_DAMAGED");
    client.destroy();
  });

  test("that cannot be reached are not passed over for older ones, nor listed as damaged", async () => {
    const { location } = place();
    for (const step of [1, 2]) await writeCheckpoint(location, contentOf(step));
    for (const [asked, file] of [
      ["HEAD", "manifest.json"],
      ["GET", "manifest.json"],
      ["GET", "model.safetensors"],
    ]) {
      s3.fault = (method, path) =>
        method === asked && path.includes("step-000002") && path.endsWith(`${file}`) ? 500 : undefined;
      for (const act of [openCheckpoint, listCheckpoints])
        expect([asked, file, (await refusal(() => act(location))).code]).toEqual([asked, file, "S3_FAILED"]);
    }
  });

  test("are not pruned while their names cannot be read, though a save that is durable succeeds", async () => {
    const { location } = place();
    const keep = { last: 1 };
    await writeCheckpoint(location, contentOf(1), { keep, named: { as: "best" } });
    const storage = await openStorage(location);
    s3.fault = (method, path) => (method === "GET" && path.endsWith("named.json") ? 500 : undefined);
    const { pruned } = await writeCheckpoint(location, contentOf(2), { keep });
    expect(pruned).toMatchObject({ removed: [], failed: [{ name: location, cause: { code: "S3_FAILED" } }] });
    const naming = await refusal(() => writeCheckpoint(location, contentOf(3), { named: { as: "other" } }));
    expect(naming).toMatchObject({ code: "CHECKPOINT_SAVE_FAILED", cause: { code: "S3_FAILED" } });
    s3.fault = () => undefined;
    expect((await prune(storage, keep)).removed).toEqual(["step-000002"]);
    await using best = await openCheckpoint(`${location}/best`);
    expect(best.state.step).toBe(1);
  });

  test("are not pruned while they have one of more names than fit in 64 KiB", async () => {
    const { location } = place();
    for (const step of [1, 2, 3]) await writeCheckpoint(location, contentOf(step));
    const storage = await openStorage(location);
    const many = Array.from({ length: 5_000 }, (_, index) => [`try-${index}`, { step: 1 }]);
    await storage.writeText("named.json", JSON.stringify(Object.fromEntries(many)));
    expect((await prune(storage, { last: 1 })).removed).toEqual(["step-000002"]);
    await expect(storage.readText("named.json")).rejects.toMatchObject({ code: "FILE_READ" });
  });

  test("that the store refuses to remove are reported, though it answers the request", async () => {
    const { location, prefix } = place();
    for (const step of [1, 2]) await writeCheckpoint(location, contentOf(step));
    const storage = await openStorage(location);
    const key = `${prefix}/step-000001/committed`;
    s3.refusedKeys.add(key);
    onTestFinished(() => s3.refusedKeys.clear());
    const { removed, failed } = await prune(storage, { last: 1 });
    expect(removed).toEqual([]);
    expect(`${failed[0]?.cause}`).toContain(
      `expected to remove s3://${bucket}/${key}, got "AccessDenied: a test's"`,
    );
    expect(await storage.list()).toContain("step-000001");
  });

  test("that could not be uploaded leave nothing but the ones before, whichever request fails", async () => {
    const { location, prefix } = place();
    await writeCheckpoint(location, contentOf(1));
    const before = await keysBelow(prefix);
    const storage = await openStorage(location);
    const failing: [string, RegExp][] = [
      ["POST", /model\.safetensors$/],
      ["PUT", /model\.safetensors$/],
      ["PUT", /optimizer\.safetensors$/],
      ["PUT", /manifest\.json$/],
      ["PUT", /committed$/],
    ];
    for (const [method, path] of failing) {
      s3.fault = (asked, key) => (asked === method && path.test(key) ? 500 : undefined);
      const error = await refusal(() => writeCheckpoint(location, largeContent(2)));
      expect([error.code, path.source]).toEqual(["CHECKPOINT_SAVE_FAILED", path.source]);
      s3.fault = () => undefined;
      expect(await keysBelow(prefix)).toEqual(before);
      expect(s3.openUploads.size).toBe(0);
      expect(await storage.list()).toEqual(["step-000001"]);
    }
  });

  test("replace one of the same step though the answer to the commit is lost", async () => {
    const { location } = place();
    await writeCheckpoint(location, contentOf(5));
    s3.fault = (method, path) => (method === "PUT" && path.endsWith("committed") ? "lose answer" : undefined);
    const again = { ...contentOf(5), config: { model_type: "other" } };
    expect((await refusal(() => writeCheckpoint(location, again))).code).toBe("CHECKPOINT_SAVE_FAILED");
    s3.fault = () => undefined;
    expect(await verifyCheckpoint(await openStorage(location), "step-000005")).toEqual([]);
    await using checkpoint = await openCheckpoint(location);
    expect(checkpoint.config).toEqual({ model_type: "other" });
  });

  test("a lock is taken, and renewed again, though an answer is lost", async () => {
    vi.useFakeTimers({ toFake: ["setInterval", "clearInterval"] });
    onTestFinished(() => void vi.useRealTimers());
    const { location } = place();
    const storage = await openStorage(location);
    let numWrites = 0;
    const loseAnswer = () => {
      numWrites = 0;
      // Amazon's client repeats the write, which is refused then.
      s3.fault = (method, path) =>
        method === "PUT" && path.endsWith(".lock") && ++numWrites === 1 ? "lose answer" : undefined;
    };
    loseAnswer();
    await using _lock = await storage.lock("a test");
    loseAnswer();
    vi.advanceTimersByTime(20_000);
    await vi.waitFor(() => expect(numWrites).toBe(2), patience);
    const renewed = await storage.readText(".lock");
    vi.advanceTimersByTime(20_000);
    await vi.waitFor(async () => expect(await storage.readText(".lock")).not.toBe(renewed), patience);
    await storage.ask();
  });

  test("unfinished checkpoints of a dead process are swept, its uploads too, and committed ones stay", async () => {
    const { location, prefix } = place();
    await writeCheckpoint(location, contentOf(1));
    const before = await keysBelow(prefix);
    const storage = await openStorage(location);
    const draft = await storage.begin("step-000002");
    const file = await draft.create("model.safetensors");
    await file.append(new Uint8Array(9 << 20));
    const small = await draft.create("small");
    await small.append(new Uint8Array(10));
    await small.finish();
    const again = await storage.begin("step-000001");
    await (await again.create("config.json")).finish();
    // The process dies here; another begins.
    expect(s3.openUploads.size).toBe(1);
    await (await openStorage(location)).sweep();
    expect(s3.openUploads.size).toBe(0);
    expect(await keysBelow(prefix)).toEqual(before);
  });

  test("are swept without the objects and uploads of others below the same prefix", async () => {
    const { location, prefix } = place();
    const { client, sdk } = await clientOf();
    const theirs = { Bucket: bucket, Key: `${prefix}/users/${randomUUID()}/a.jpg` };
    await client.send(new sdk.PutObjectCommand({ ...theirs, Body: "theirs" }));
    const other = await (await openStorage(`${location}/a`)).begin("step-000001");
    const file = await other.create("model.safetensors");
    await file.append(new Uint8Array(9 << 20));
    await (await openStorage(location)).sweep();
    await file.finish();
    await other.commit();
    expect(await keysBelow(prefix)).toContain(theirs.Key);
    expect(await (await openStorage(`${location}/a`)).list()).toEqual(["step-000001"]);
    client.destroy();
  });

  test("serve the service and the command line as a folder does", async () => {
    const { location } = place();
    await using service = await CheckpointService.open({ storage: location, keepLast: 2 });
    for (const step of [1, 2, 3]) await service.save({ step, tensors: { a: Float32Array.of(step) } }).durable;
    expect((await service.list()).map(({ step }) => step)).toEqual([3, 2]);
    const { stdout } = await promisify(execFile)(process.execPath, [
      troupe,
      "checkpoint",
      "verify",
      location,
    ]);
    expect(stdout).toBe("step-000003  intact\nstep-000002  intact\n");
    const file = join(await temporaryFolder(), "x.safetensors");
    expect(await convert(location, file, { to: "safetensors" })).toMatchObject({
      from: "troupe",
      step: 3,
      numTensors: 1,
    });
  });

  test("take a training run that stops and goes on to the same losses as one that does not", async () => {
    const { location } = place();
    using workspace = new Workspace();
    const straight = await lossesOf(workspace, { steps: 6 });
    const checkpoint = { dir: location, everySteps: 2, keepLast: 1 };
    await lossesOf(workspace, { steps: 4, ranks: 2, zero: 3, checkpoint });
    const storage = await openStorage(location);
    expect(await storage.list()).toEqual(["step-000004"]);
    const resumed = await lossesOf(workspace, { steps: 6, resume: location, checkpoint });
    expect(resumed.slice(4)).toEqual(straight.slice(4));
    // One checkpoint can be named by itself.
    await using named = await openCheckpoint(`${location}/step-000006`);
    expect(named.state.step).toBe(6);
    const other = await runTiny(workspace, { steps: 8, resume: location }, { batch: 8 });
    expect(other.error?.message).toContain("batchSize was 4, is 8");
    expect(await standingOf(storage, undefined)).toMatchObject({ state: "ended", end: { how: "finished" } });
  });

  test("need Amazon's client, and say how to get it", async () => {
    const withoutIt = `import { registerHooks } from "node:module";
      registerHooks({ resolve(name, context, next) {
        if (name === "@aws-sdk/client-s3") throw new Error("Cannot find package " + name);
        return next(name, context);
      } });`;
    const hook = `data:text/javascript,${encodeURIComponent(withoutIt)}`;
    const run = promisify(execFile)(process.execPath, [
      "--import",
      hook,
      troupe,
      "checkpoint",
      "list",
      "s3://models/x",
    ]);
    const { code, stderr } = (await refusal(() => run)) as unknown as { code: number; stderr: string };
    expect([code, stderr.trim().split("\n").length]).toEqual([2, 1]);
    expect(stderr).toContain("npm install @aws-sdk/client-s3");
  });

  test.each(["s3://", "s3:///x", "s3://UPPER/x", "s3://bucket//x", "s3://bucket/../x", "s3://bucket/a/./b"])(
    "are refused at %s",
    async (location) => {
      expect((await refusal(() => openStorage(location))).code).toBe("CHECKPOINT_OPTION");
    },
  );

  test("tell what is wrong where the bucket is not there", async () => {
    const error = await refusal(() => CheckpointService.open({ storage: "s3://nowhere/run" }));
    expect(error.message).toContain("NoSuchBucket");
  });
});

async function clientOf() {
  const sdk = await import("@aws-sdk/client-s3");
  const client = new sdk.S3Client({ forcePathStyle: true, requestChecksumCalculation: "WHEN_REQUIRED" });
  return { sdk, client };
}
