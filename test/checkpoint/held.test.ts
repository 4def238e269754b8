import {
  cpSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  renameSync,
  rmSync,
  statSync,
  symlinkSync,
} from "node:fs";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import {
  type CheckpointStorage,
  LocalFolder,
  listCheckpoints,
  openStorage,
  ownerOf,
  putOwner,
  type RunRecord,
  type StorageDraft,
  takeEmpty,
  takeOver,
  writeCheckpoint,
} from "../../src/library/checkpoint/index.ts";
import { listKeys, removeKeys } from "../../src/library/checkpoint/storage/s3/s3-keys.ts";
import { connectS3, parseS3 } from "../../src/library/s3-client.ts";
import { type S3Server, startS3, useS3 } from "../fixtures/s3/s3-server.ts";
import { temporaryFolder } from "../service/temporary-folder.ts";
import { contentOf } from "./content.ts";
import { refusal } from "./refusal.ts";

const first: RunRecord = { id: "11111111-0000", job: "job.ts", startedAt: "2026-11-22T10:00:00.000Z" };
const second: RunRecord = { id: "22222222-0000", job: "other.ts", startedAt: "2026-11-22T11:00:00.000Z" };
let s3: S3Server;
let numPrefixes = 0;

beforeAll(async () => {
  s3 = await startS3("models");
  useS3(s3);
});
afterAll(() => s3[Symbol.asyncDispose]());

/** Methods of a storage that change nothing in it: they need no lock. */
const reading = ["ask", "holder", "join", "latest", "list", "lock", "open", "readText"];

/** All others. A new one that is missing here fails the test below, as does one that forgets to ask for the lock. */
const writing: Readonly<Record<string, (storage: CheckpointStorage) => Promise<unknown>>> = {
  begin: (storage) => storage.begin("step-000001"),
  beside: (storage) => storage.beside("step-000001"),
  putFile: (storage) =>
    (storage as LocalFolder).putFile("step-000001", "config.json", (file) => file.append(Buffer.from("{}"))),
  remove: (storage) => storage.remove("step-000001"),
  sweep: (storage) => storage.sweep(),
  writeText: (storage) => storage.writeText("run.json", "{}"),
};

/** Methods of a draft that was begun while the lock was there; `abandon` removes what is the draft's own. */
const drafting: Readonly<Record<string, (draft: StorageDraft) => Promise<unknown>>> = {
  commit: (draft) => draft.commit(),
  create: (draft) => draft.create("config.json"),
};

async function save(storage: CheckpointStorage, run: RunRecord, ...steps: readonly number[]): Promise<void> {
  for (const step of steps) {
    const content = contentOf(step);
    const state = { ...content.state, run: { ...run } };
    await writeCheckpoint(storage, { ...content, state }, { keep: { last: 2 } });
  }
}

/** A place that is taken away from its holder. */
interface Place {
  readonly location: string;
  /** All that lies there now, by name. */
  contents(): Promise<unknown>;
}

/** Another run begins where the place was, and saves: two of its steps have the names of the first run's. */
async function another(location: string): Promise<AsyncDisposable> {
  const storage = await openStorage(location);
  const lock = await storage.lock("another run");
  await takeEmpty(storage, second);
  await save(storage, second, 1, 2);
  return lock;
}

function treeOf(folder: string): unknown {
  if (statSync(folder, { throwIfNoEntry: false }) === undefined) return "none";
  const entries = readdirSync(folder, { withFileTypes: true, recursive: true });
  return (
    entries
      // A draft is its writer's own to remove.
      .filter((entry) => entry.isFile() && !entry.parentPath.includes(".saving-"))
      .map((entry) => join(entry.parentPath, entry.name))
      .sort()
      .map((path) => [path, readFileSync(path, "base64")])
  );
}

async function folder(): Promise<Place> {
  const location = join(await temporaryFolder(), "run");
  return { location, contents: async () => treeOf(location) };
}

async function bucket(): Promise<Place> {
  const location = `s3://models/held-${numPrefixes++}`;
  const contents = async () => {
    const connection = await connectS3(parseS3(location));
    return [await listKeys(connection, connection.prefix), await ownerOf(await openStorage(location))];
  };
  return { location, contents };
}

async function emptyBucket(location: string): Promise<void> {
  const connection = await connectS3(parseS3(location));
  await removeKeys(connection, await listKeys(connection, connection.prefix));
}

/** How a place is taken away, and what is held until the end. */
const ways: readonly (readonly [
  what: string,
  place: () => Promise<Place>,
  strike: (location: string) => Promise<unknown>,
])[] = [
  ["a folder that was moved away", folder, async (at) => renameSync(at, `${at}.old`)],
  ["a folder that was deleted", folder, async (at) => rmSync(at, { recursive: true })],
  [
    "a folder in whose place is an empty one",
    folder,
    async (at) => {
      renameSync(at, `${at}.old`);
      mkdirSync(at);
    },
  ],
  [
    "a folder in whose place is a copy of it, which another run has locked",
    folder,
    async (at) => {
      renameSync(at, `${at}.old`);
      cpSync(`${at}.old`, at, { recursive: true });
      return (await openStorage(at)).lock("another run");
    },
  ],
  [
    "a folder in whose place is a link to another",
    folder,
    async (at) => {
      renameSync(at, `${at}.old`);
      const lock = await another(`${at}.other`);
      symlinkSync(`${at}.other`, at);
      return lock;
    },
  ],
  [
    "a folder that was moved away, where another run has begun",
    folder,
    async (at) => {
      renameSync(at, `${at}.old`);
      return another(at);
    },
  ],
  [
    "a folder that was deleted, where another run has begun",
    folder,
    async (at) => {
      rmSync(at, { recursive: true });
      return another(at);
    },
  ],
  [
    "a folder whose lock was deleted and taken by another",
    folder,
    async (at) => {
      rmSync(join(at, ".lock"));
      return (await openStorage(at)).lock("another run");
    },
  ],
  ["a bucket's prefix that was emptied", bucket, emptyBucket],
  [
    "a bucket's prefix that was emptied, where another run has begun",
    bucket,
    async (at) => {
      await emptyBucket(at);
      return another(at);
    },
  ],
];

describe("the holder of a place", () => {
  test.each(ways)("%s: changes nothing there any more, by no method", async (_what, placeOf, strike) => {
    const { location, contents } = await placeOf();
    const locked = await openStorage(location);
    await using lock = await locked.lock("a run");
    await takeEmpty(locked, first);
    // As the actor that saves does.
    const opened = await openStorage(location, { hold: lock.hold });
    await save(opened, first, 1, 2);
    const drafts = [await locked.begin("step-000001"), await opened.begin("step-000002")];
    for (const draft of drafts) await (await draft.create("manifest.json")).finish();

    await using _other = (await strike(location)) as AsyncDisposable | undefined;
    const before = await contents();
    for (const storage of [locked, opened]) {
      for (const method of methodsOf(storage).filter((name) => !reading.includes(name)))
        expect([method, (await refusal(() => writing[method]!(storage))).code]).toEqual([
          method,
          "CHECKPOINT_MOVED",
        ]);
      for (const change of [
        () => putOwner(storage, first, { how: "finished", at: first.startedAt }),
        () => takeOver(storage, first),
        () => save(storage, first, 3),
      ])
        expect((await refusal(change)).message).toContain(
          `expected ${location} to be the folder that this writer has locked`,
        );
    }
    for (const draft of drafts) {
      for (const method of methodsOf(draft).filter((name) => name !== "abandon"))
        expect([method, (await refusal(() => drafting[method]!(draft))).code]).toEqual([
          method,
          "CHECKPOINT_MOVED",
        ]);
      await draft.abandon();
    }
    await lock[Symbol.asyncDispose]();
    expect(await contents()).toEqual(before);
  });

  test.each([
    ["a folder", folder],
    ["a bucket's prefix", bucket],
  ])("keeps writing into %s while that is its own", async (_what, placeOf) => {
    const { location } = await placeOf();
    const storage = await openStorage(location);
    await using lock = await storage.lock("a run");
    await takeEmpty(storage, first);
    await save(await openStorage(location, { hold: lock.hold }), first, 1, 2, 3);
    expect((await listCheckpoints(storage)).map(({ step }) => step)).toEqual([3, 2]);
  });

  test("saves again once its folder was put back, also by a link, and leaves no draft where the folder was", async () => {
    const { location } = await folder();
    const storage = await openStorage(location);
    await using lock = await storage.lock("a run");
    await save(storage, first, 1);
    const draft = await storage.begin("step-000002");
    renameSync(location, `${location}.old`);
    expect((await refusal(() => save(storage, first, 2))).code).toBe("CHECKPOINT_SAVE_FAILED");
    await draft.abandon();
    expect(readdirSync(`${location}.old`).sort()).toEqual([".lock", "latest", "step-000001"]);
    symlinkSync(`${location}.old`, location);
    await save(storage, first, 2);
    rmSync(location);
    renameSync(`${location}.old`, location);
    await save(storage, first, 3);
    renameSync(location, `${location}.old`);
    await lock[Symbol.asyncDispose]();
    expect(readdirSync(`${location}.old`)).not.toContain(".lock");
    renameSync(`${location}.old`, location);
    expect((await listCheckpoints(location)).map(({ step }) => step)).toEqual([3, 2]);
  });

  test("of a host's own folder, which has no lock, writes only into the folder that it began in", async () => {
    const { location, contents } = await folder();
    const storage = new LocalFolder(location);
    const share = await storage.beside("step-000001");
    await (await share.create("model-rank-00001.safetensors")).finish();
    await share.commit();
    renameSync(location, `${location}.old`);
    await using _other = await another(location);
    const before = await contents();
    expect((await refusal(() => storage.beside("step-000002"))).code).toBe("CHECKPOINT_MOVED");
    expect((await refusal(() => storage.ask())).code).toBe("CHECKPOINT_MOVED");
    expect(await contents()).toEqual(before);
  });
});

/** The names of an object's own methods, those of its class. */
function methodsOf(object: object): string[] {
  const properties = Object.getOwnPropertyDescriptors(Object.getPrototypeOf(object));
  return Object.entries(properties)
    .filter(([name, { value }]) => name !== "constructor" && typeof value === "function")
    .map(([name]) => name);
}
