import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { StagedRecords } from "../../src/compute/offload/index.ts";
import { memory, scope, type Tensor } from "../../src/compute/tensor/index.ts";

let folder: string;
beforeAll(() => {
  folder = mkdtempSync(join(tmpdir(), "troupe-records-"));
});
afterAll(() => rmSync(folder, { recursive: true }));

const numels = [3000, 1024, 200_000, 10, 0];
const present = [0, 1, 2, 3];

/** The first element of a record, or -1 if its elements differ. */
const elementOf = (record: Tensor) =>
  scope(() =>
    record
      .eq(record.narrow(0, 0, 1))
      .all()
      .item() === 1
      ? record.narrow(0, 0, 1).item()
      : -1,
  );

async function filled(numBuffers?: number): Promise<StagedRecords> {
  const records = new StagedRecords(folder, numels, numBuffers);
  for (const record of present) {
    await records.use(record, async (memory) => void scope(() => memory.fill_(record)), { fresh: true });
  }
  return records;
}

const read = (records: StagedRecords, record: number) =>
  records.use(record, async (memory) => elementOf(memory), { readOnly: true });

describe("StagedRecords", () => {
  it.each([1, 2, 3])("every record is restored as it was left, through %i buffers", async (numBuffers) => {
    const records = await filled(numBuffers);
    expect(await Promise.all(present.map((record) => read(records, record)))).toEqual(present);
    const add = (record: number) => records.use(record, async (memory) => void scope(() => memory.add_(10)));
    // All at once, twice over: uses of one record follow each other, also while the record is being written.
    await Promise.all([...present, ...present.toReversed()].map(add));
    expect(await Promise.all(present.map((record) => read(records, record)))).toEqual([20, 21, 22, 23]);
    await records.written();
    records.dispose();
  });

  it("changes nothing by a use that only reads", async () => {
    const records = await filled();
    const scribble = (memory: Tensor) => void scope(() => memory.fill_(99));
    await records.use(1, async (memory) => scribble(memory), { readOnly: true });
    expect(await read(records, 1)).toBe(1);
    records.dispose();
  });

  it("goes on while others use their records: one is worked on, one read, one written", async () => {
    const records = await filled();
    const { promise, resolve } = Promise.withResolvers<void>();
    const held = records.use(0, () => promise);
    expect(await read(records, 2)).toBe(2);
    resolve();
    await held;
    records.dispose();
  });

  it("a record that was read ahead is used, and a wrong guess is dropped", async () => {
    const records = await filled();
    for (const record of [0, 1, 2, 3]) records.expect(record);
    expect(await read(records, 1)).toBe(1);
    for (const record of [3, 2, 0]) expect(await read(records, record)).toBe(record);
    records.expect(3);
    await records.use(3, async (memory) => void scope(() => memory.fill_(33)));
    records.expect(3);
    expect(await read(records, 3)).toBe(33);
    await records.written();
    records.dispose();
  });

  it("holds its buffers and no more, whatever is asked of it", async () => {
    const before = memory().byTag.staging ?? 0;
    const records = await filled();
    const page = 4096;
    expect(records.stagingBytes).toBe(3 * Math.ceil((200_000 * 4) / page) * page);
    await Promise.all([...present, ...present].map((record) => read(records, record)));
    // A page each, for the buffers to begin on one.
    expect((memory().byTag.staging ?? 0) - before).toBe(records.stagingBytes + 3 * page);
    records.dispose();
    expect(memory().byTag.staging ?? 0).toBe(before);
  });

  it("throws what the work throws, writes nothing then, and serves the next", async () => {
    const records = await filled();
    const fail = async (memory: Tensor) => {
      scope(() => memory.fill_(99));
      throw new Error("as asked");
    };
    await expect(records.use(2, fail)).rejects.toThrow("as asked");
    expect(await read(records, 2)).toBe(2);
    records.dispose();
  });
});
