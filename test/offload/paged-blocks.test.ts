import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, it } from "vitest";
import { type Access, PagedBlocks, type PagingPlan } from "../../src/compute/offload/index.ts";
import {
  emptyPaged,
  hold,
  memory,
  PAGE_BYTES,
  scope,
  type Tensor,
  tagMemory,
} from "../../src/compute/tensor/index.ts";

let folder: string;
beforeAll(() => {
  folder = mkdtempSync(join(tmpdir(), "troupe-paged-"));
});
afterAll(() => rmSync(folder, { recursive: true }));

const tag = "paged-blocks-test";
const blockBytes = 3 * PAGE_BYTES;
const here = () => (memory().byTag[tag] ?? 0) / blockBytes;

describe("PagedBlocks", () => {
  let memories: Tensor[] = [];
  let reported: string[] = [];
  let blocks: PagedBlocks;

  /** Four blocks, which are made zeros and read as what the last one to write has filled them with. */
  function make(windowBytes: number, numChangers = 1, plan: Partial<PagingPlan> = {}): PagedBlocks {
    const make = () => tagMemory(tag, () => hold(() => emptyPaged(blockBytes / 4, "float32")));
    memories = Array.from({ length: 4 }, make);
    const onTransfer: PagingPlan["onTransfer"] = (block, direction) =>
      void reported.push(`${direction} ${block}`);
    blocks = new PagedBlocks(new Map(memories.map((memory, index) => [index, { memory, numChangers }])), {
      directory: folder,
      windowBytes,
      onTransfer,
      ...plan,
    });
    return blocks;
  }

  async function use<T>(block: number, access: Access, work: (memory: Tensor) => T): Promise<T> {
    await blocks.pin(block, access);
    try {
      return scope(() => work(memories[block] as Tensor));
    } finally {
      blocks.unpin(block, access);
    }
  }

  const write = (block: number, value: number) =>
    use(block, "overwrite", (memory) => void memory.fill_(value));
  const read = (block: number) => use(block, "read", (memory) => [memory.min().item(), memory.max().item()]);
  const untilStored = async (numStored: number) => {
    while (reported.filter((each) => each.startsWith("store")).length < numStored)
      await new Promise((resolve) => setImmediate(resolve));
  };

  beforeEach(() => {
    reported = [];
  });
  afterEach(() => blocks.dispose());

  it("only used blocks are in memory, and every block is restored as it was left", async () => {
    make(0);
    expect(here()).toBe(0);
    for (const block of [0, 1, 2, 3]) await write(block, block + 1);
    await untilStored(4);
    expect(here()).toBe(0);
    await blocks.pin(1, "read");
    await blocks.pin(1, "read");
    expect(here()).toBe(1);
    blocks.unpin(1, "read");
    expect(here()).toBe(1);
    blocks.unpin(1, "read");
    expect(here()).toBe(0);
    expect(await Promise.all([3, 2, 1, 0].map(read))).toEqual([
      [4, 4],
      [3, 3],
      [2, 2],
      [1, 1],
    ]);
    await use(2, "change", (memory) => void memory.add_(10));
    await untilStored(5);
    expect(await read(2)).toEqual([13, 13]);
  });

  it("paging moves only needed bytes: overwritten blocks are not read, and unchanged blocks are not written", async () => {
    make(0);
    await write(0, 1);
    await untilStored(1);
    await read(0);
    await use(0, "change", () => {});
    await untilStored(2);
    expect(reported).toEqual(["store 0", "bring 0", "bring 0", "store 0"]);
  });

  it("lets a block be read while it is on its way into the file, in which memory it stays until then", async () => {
    let pass = () => {};
    const gate = new Promise<void>((resolve) => {
      pass = resolve;
    });
    make(0, 1, { delay: () => gate });
    await write(0, 5);
    expect(await read(0)).toEqual([5, 5]);
    expect(here()).toBe(1);
    pass();
    await untilStored(1);
    expect(here()).toBe(0);
    expect(reported).toEqual(["store 0"]);
  });

  it("stores a block once all its changers are done, and not before", async () => {
    make(0, 3);
    await write(0, 1);
    await write(0, 2);
    expect([here(), reported]).toEqual([1, []]);
    await write(0, 3);
    await untilStored(1);
    expect([here(), reported]).toEqual([0, ["store 0"]]);
  });

  it.each([
    ["one block", 0, 1],
    ["two blocks", 2 * blockBytes, 2],
  ])(
    "has at most as many blocks changed at once as the window holds: %s, in whatever order changers ask",
    async (_what, windowBytes, most) => {
      make(windowBytes, 2);
      let highest = 0;
      const change = async (block: number) => {
        await blocks.pin(block, "overwrite");
        highest = Math.max(highest, here());
        blocks.unpin(block, "overwrite");
      };
      const orders = [
        [0, 1, 2, 3],
        [3, 1, 0, 2],
      ];
      await Promise.all(orders.flat().map(change));
      await untilStored(4);
      expect(highest).toBe(most);
      // The rest of the window holds the blocks that were unpinned last.
      expect(here()).toBe(windowBytes / blockBytes);
    },
  );

  it("keeps the blocks that were left last while the window has room, and does not read them again", async () => {
    make(2 * blockBytes);
    for (const block of [0, 1, 2, 3]) {
      await write(block, block + 1);
      // A block being written takes its part of the window, and another's place.
      await untilStored(block + 1);
    }
    reported = [];
    for (const block of [3, 2]) expect(await read(block)).toEqual([block + 1, block + 1]);
    expect(reported).toEqual([]);
    expect(await read(1)).toEqual([2, 2]);
    expect(await read(2)).toEqual([3, 3]);
    expect(await read(3)).toEqual([4, 4]);
    expect(reported).toEqual(["bring 1", "bring 3"]);
    expect(here()).toBe(2);
  });

  it("paging keeps the blocks that were unpinned last, not those that were written last", async () => {
    const { promise: gate, resolve: pass } = Promise.withResolvers<void>();
    const gates = [gate];
    make(3 * blockBytes, 1, { delay: async () => gates.shift() });
    for (const block of [0, 1, 2]) await write(block, block + 1);
    await untilStored(2);
    pass();
    await untilStored(3);
    reported = [];
    for (const block of [3, 1, 2]) await read(block);
    expect(reported).toEqual(["bring 3"]);
    expect(here()).toBe(3);
  });

  it("an update finds its block as the last reader left it, and evicts others for it", async () => {
    make(2 * blockBytes);
    for (const block of [0, 1]) await read(block);
    reported = [];
    await use(1, "change", (memory) => void memory.fill_(7));
    await use(2, "overwrite", (memory) => {
      // No block had room to stay.
      expect(here()).toBe(2);
      memory.fill_(8);
    });
    await untilStored(2);
    expect(reported.filter((each) => each.startsWith("bring"))).toEqual([]);
    expect([await read(1), await read(2)]).toEqual([
      [7, 7],
      [8, 8],
    ]);
  });

  it("rejects waiting and later users with the reason of its end", async () => {
    make(0, 2);
    await write(0, 1);
    const waiting = write(1, 1);
    blocks.abort(new Error("a peer is gone"));
    await expect(waiting).rejects.toThrow("a peer is gone");
    await expect(read(2)).rejects.toThrow("a peer is gone");
  });
});
