import { type ChildProcess, execFileSync, spawn } from "node:child_process";
import { once } from "node:events";
import { mkdir, readdir, rename, symlink, truncate, writeFile } from "node:fs/promises";
import { hostname } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { afterAll, afterEach, beforeAll, describe, expect, test, vi } from "vitest";
import {
  type CheckpointStorage,
  LocalFolder,
  listCheckpoints,
  openCheckpoint,
  openStorage,
  ownerOf,
  prune,
  putOwner,
  type RunRecord,
  stampOf,
  standingOf,
  takeEmpty,
  takeOver,
  writeCheckpoint,
} from "../../src/library/checkpoint/index.ts";
import { patience } from "../fixtures/patience.ts";
import { type S3Server, startS3, useS3 } from "../fixtures/s3/s3-server.ts";
import { temporaryFolder } from "../service/temporary-folder.ts";
import { contentOf } from "./content.ts";
import { refusal } from "./refusal.ts";

const program = fileURLToPath(new URL("./hold-lock.ts", import.meta.url));
const first: RunRecord = { id: "11111111-0000", job: "job.ts", startedAt: "2026-11-22T10:00:00.000Z" };
const second: RunRecord = { id: "22222222-0000", job: "other.ts", startedAt: "2026-11-22T11:00:00.000Z" };
const children: ChildProcess[] = [];
let s3: S3Server;
let numPrefixes = 0;

beforeAll(async () => {
  s3 = await startS3("models");
  useS3(s3);
});
afterAll(() => s3[Symbol.asyncDispose]());
afterEach(() => {
  for (const child of children.splice(0)) child.kill("SIGKILL");
});

/** Another process that has taken a storage. */
async function holderOf(location: string): Promise<ChildProcess> {
  const child = spawn(process.execPath, [program, location], { stdio: ["ignore", "pipe", "inherit"] });
  children.push(child);
  await once(child.stdout as NodeJS.ReadableStream, "data");
  return child;
}

/** Saves steps as a run. */
async function save(storage: CheckpointStorage, run: RunRecord, ...steps: readonly number[]): Promise<void> {
  for (const step of steps) {
    const content = contentOf(step);
    await writeCheckpoint(storage, { ...content, state: { ...content.state, run: { ...run } } });
  }
}

const places = {
  "a folder": async () => join(await temporaryFolder(), "run"),
  "a bucket": async () => `s3://models/run-${numPrefixes++}`,
};

describe.each(Object.entries(places))("%s of checkpoints", (_, place) => {
  test("a folder is written by one process at a time: the second learns which process has it", async () => {
    const location = await place();
    const holder = await holderOf(location);
    const storage = await openStorage(location);
    const error = await refusal(() => storage.lock("troupe checkpoint prune"));
    expect(error.code).toBe("CHECKPOINT_LOCKED");
    expect(error.message).toContain(`a run of job.ts, process ${holder.pid} on ${hostname()} since 20`);
    expect(error.fields).toMatchObject({ location: storage.location, pid: holder.pid, host: hostname() });
  });

  test("is free once its holder is killed or gives it back, and once its own writer does", async () => {
    const location = await place();
    const storage = await openStorage(location);
    const holder = await holderOf(location);
    holder.kill("SIGKILL");
    await once(holder, "exit");
    const lock = await storage.lock("one");
    expect((await refusal(() => storage.lock("two"))).code).toBe("CHECKPOINT_LOCKED");
    await lock[Symbol.asyncDispose]();
    await lock[Symbol.asyncDispose]();
    await (await storage.lock("three"))[Symbol.asyncDispose]();
    expect(await storage.list()).toEqual([]);
  });

  test("a folder belongs to the run that takes it: a second run is refused, with the alternatives", async () => {
    const storage = await openStorage(await place());
    await using _lock = await storage.lock("a test");
    await takeEmpty(storage, first);
    // It died before it saved anything: nothing is lost by taking its place.
    await takeEmpty(storage, first);
    await save(storage, first, 5, 10);
    const error = await refusal(() => takeEmpty(storage, second));
    expect(error.code).toBe("CHECKPOINT_TAKEN");
    expect(error.message).toContain("a run of job.ts, begun 2026-11-22T10:00:00.000Z, up to step 10");
    expect(error.message).toContain("--resume");
    expect(error.message).toContain("--overwrite");
    expect(await ownerOf(storage)).toEqual({ ...first, end: null });
    expect((await listCheckpoints(storage)).map(({ step }) => step)).toEqual([10, 5]);
  });

  test("is another run's once that takes it over, and holds nothing of the first any more", async () => {
    const storage = await openStorage(await place());
    await using _lock = await storage.lock("a test");
    await takeEmpty(storage, first);
    await save(storage, first, 5, 10);
    await takeOver(storage, second);
    expect(await ownerOf(storage)).toEqual({ ...second, end: null });
    expect(await listCheckpoints(storage)).toEqual([]);
    await save(storage, second, 1);
    expect((await listCheckpoints(storage)).map(({ step, run }) => [step, run?.id])).toEqual([
      [1, second.id],
    ]);
  });

  test("an owner file tells the state of its run, and of a killed run the time of its last update", async () => {
    const location = await place();
    const storage = await openStorage(location);
    expect(await standingOf(storage, undefined)).toBeUndefined();
    const holder = await holderOf(location);
    await putOwner(storage, first);
    expect(await standingOf(storage, undefined)).toMatchObject({
      state: "running",
      holder: { pid: holder.pid, what: "a run of job.ts" },
    });
    holder.kill("SIGKILL");
    await once(holder, "exit");
    expect(await standingOf(storage, undefined)).toEqual({ state: "silent", heardAt: first.startedAt });
    const content = contentOf(5);
    await writeCheckpoint(storage, { ...content, state: { ...content.state, run: stampOf(first) } });
    const [newest] = await listCheckpoints(storage);
    expect(newest).toMatchObject({ run: first, savedAt: expect.stringMatching(/^20/) });
    expect(await standingOf(storage, newest?.savedAt)).toEqual({
      state: "silent",
      heardAt: newest?.savedAt,
    });
    const end = { how: "stopped", at: "2026-11-22T12:00:00.000Z" } as const;
    await putOwner(storage, first, end);
    expect(await standingOf(storage, newest?.savedAt)).toEqual({ state: "ended", end });
  });

  test("gives, keeps and prunes checkpoints of its own run alone", async () => {
    const storage = await openStorage(await place());
    await using _lock = await storage.lock("a test");
    await takeEmpty(storage, second);
    await save(storage, first, 3, 25, 30);
    await save(storage, second, 5, 10, 15, 20);
    const owned = (await listCheckpoints(storage)).map(({ step, foreign }) => [step, foreign]);
    expect(owned).toEqual([
      [30, true],
      [25, true],
      [20, false],
      [15, false],
      [10, false],
      [5, false],
      [3, true],
    ]);
    {
      await using newest = await openCheckpoint(storage, { except: [`${storage.location}/step-000020`] });
      expect(newest.state.step).toBe(15);
      expect(newest.passedOver.map(({ code }) => code)).toEqual(["CHECKPOINT_TAKEN", "CHECKPOINT_TAKEN"]);
    }
    expect((await prune(storage, { last: 2 })).removed).toEqual(["step-000010", "step-000005"]);
    expect((await listCheckpoints(storage)).map(({ step }) => step)).toEqual([30, 25, 20, 15, 3]);
  });
});

describe("a folder of checkpoints", () => {
  test("falls back to its own run's where the newest is damaged, whatever else lies in it", async () => {
    const folder = await temporaryFolder();
    const storage = new LocalFolder(folder);
    await takeEmpty(storage, second);
    await save(storage, first, 30);
    await save(storage, second, 15, 20);
    await truncate(join(folder, "step-000020", "model.safetensors"), 10);
    await using opened = await openCheckpoint(storage);
    expect(opened.state.step).toBe(15);
  });

  test("names a step whose manifest is another's, and passes it over", async () => {
    const folder = await temporaryFolder();
    const storage = new LocalFolder(folder);
    await save(storage, first, 25, 30);
    await rename(join(folder, "step-000030"), join(folder, "aside"));
    await rename(join(folder, "step-000025"), join(folder, "step-000030"));
    await rename(join(folder, "aside"), join(folder, "step-000025"));
    const found = await listCheckpoints(storage);
    expect(found.map(({ damage }) => damage?.message)).toEqual([
      expect.stringContaining("expected the state of step 30, as its folder is named"),
      expect.stringContaining("that of step 30"),
    ]);
    expect((await refusal(() => openCheckpoint(storage))).code).toBe("CHECKPOINT_DAMAGED");
  });

  test("keeps what a living process writes when another sweeps, and nothing of a dead one's", async () => {
    const folder = await temporaryFolder();
    const storage = new LocalFolder(folder);
    const startOf = (pid: number) =>
      execFileSync("cat", [`/proc/${pid}/stat`], { encoding: "utf8" })
        .replace(/^.*\) /s, "")
        .split(" ")[19];
    const holder = await holderOf(join(folder, "elsewhere"));
    const uuid = "01234567-89ab-cdef-0123-456789abcdef";
    const living = `.saving-step-000001-${holder.pid}.${startOf(holder.pid ?? 0)}-${uuid}`;
    const dead = `.saving-step-000002-${holder.pid}.1-${uuid}`;
    for (const name of [living, dead, `.saving-step-000003-${uuid}`]) await mkdir(join(folder, name));
    await storage.sweep();
    expect((await readdir(folder)).sort()).toEqual([living, "elsewhere"]);
    holder.kill("SIGKILL");
    await once(holder, "exit");
    await storage.sweep();
    expect(await readdir(folder)).toEqual(["elsewhere"]);
  });

  test("a dead owner counts as dead even if its parent never reaps it, as in many containers", async () => {
    const folder = await temporaryFolder();
    const careless = `const c = require("child_process").spawn("cat", { stdio: ["inherit", "ignore", "ignore"] });
      require("fs").writeSync(1, String(c.pid));
      Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0);`;
    const parent = spawn(process.execPath, ["-e", careless], { stdio: ["pipe", "pipe", "inherit"] });
    children.push(parent);
    const [pid] = await once(parent.stdout, "data");
    const stat = () =>
      execFileSync("cat", [`/proc/${pid}/stat`], { encoding: "utf8" }).replace(/^.*\) /s, "");
    const draft = `.saving-step-000001-${pid}.${stat().split(" ")[19]}-01234567-89ab-cdef-0123-456789abcdef`;
    await mkdir(join(folder, draft));
    await new LocalFolder(folder).sweep();
    expect(await readdir(folder)).toEqual([draft]);
    parent.stdin.end();
    await vi.waitFor(() => expect(stat()).toMatch(/^Z/), patience);
    await new LocalFolder(folder).sweep();
    expect(await readdir(folder)).toEqual([]);
  });

  test.each(["a pipe", "a link to what has no end", "a large file"])(
    "is read where `latest` is %s",
    async (what) => {
      const folder = await temporaryFolder();
      const storage = new LocalFolder(folder);
      await save(storage, first, 1, 2);
      const latest = join(folder, "latest");
      await rename(latest, join(folder, "kept"));
      if (what === "a pipe") execFileSync("mkfifo", [latest]);
      else if (what === "a large file") await writeFile(latest, Buffer.alloc(1 << 20, "a"));
      else await symlink("/dev/zero", latest);
      expect(await storage.latest()).toBeUndefined();
      await using opened = await openCheckpoint(storage);
      expect(opened.state.step).toBe(2);
    },
  );
});
