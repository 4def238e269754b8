import { once } from "node:events";
import { MessageChannel, Worker } from "node:worker_threads";
import { afterEach, describe, expect, it } from "vitest";
import {
  attach,
  type Device,
  full,
  liveRefs,
  liveTensors,
  moveRef,
  onDevice,
  ops,
  readLater,
  requireDevice,
  scope,
  shareRef,
  type Tensor,
} from "../../src/compute/tensor/index.ts";
import type { LentMemory } from "../fixtures/devices/lent-memory.ts";
import type { PassesOn } from "../fixtures/devices/passes-on.ts";
import { pretend } from "../fixtures/devices/pretend.ts";
import type { StreamsRank } from "../fixtures/devices/streams-rank.ts";

const seeds = Array.from({ length: 12 }, (_, index) => index + 1);
const numel = 4096;
requireDevice("sim:0");

/** Late, in the stream that the thread is in, and no number that lay there before. */
function late(value: number): Tensor {
  return onDevice("sim:0", () => ops.mul(full([numel], 1), value));
}

function last(tensor: Tensor): number {
  return tensor.select(0, numel - 1).item();
}

function inStream<T>(stream: number, body: () => T): T {
  const before = pretend().simStream(stream);
  try {
    return body();
  } finally {
    pretend().simStream(before);
  }
}

function waitFor(stream: number): void {
  inStream(stream, () => pretend().simSynchronize());
}

/** Both streams have come to their ends: a seed begins with no queue. */
function begin(seed: number): void {
  waitFor(1);
  waitFor(2);
  pretend().simSeed(seed);
}

afterEach(() => {
  waitFor(1);
  waitFor(2);
  expect(liveTensors()).toBe(0);
  expect(liveRefs()).toBe(0);
});

describe("numbers of a device", () => {
  it("only the reader of a tensor waits for it, and only when it reads", () => {
    for (const seed of seeds) {
      begin(seed);
      scope(() => {
        const numbers = [3, 5, 7].map((value) => readLater(late(value).select(0, numel - 1)));
        expect(numbers.map((number) => number())).toEqual([3, 5, 7]);
      });
    }
  });
});

describe("tensors between streams", () => {
  it("are read behind what their sender computed, moved or shared", () => {
    scope(() => {
      for (const seed of seeds) {
        for (const refer of [moveRef, shareRef]) {
          begin(seed);
          scope(() => {
            const ref = inStream(1, () => refer(late(seed)));
            expect(inStream(2, () => last(attach(ref).add(1)))).toBe(seed + 1);
          });
        }
      }
    });
  });

  it("keep their memory until the stream that they went to has read it", () => {
    scope(() => {
      for (const seed of seeds) {
        begin(seed);
        scope(() => {
          const ref = inStream(1, () => moveRef(late(seed)));
          const read = inStream(2, () => {
            const moved = attach(ref);
            const result = moved.add(1);
            moved.dispose();
            return result;
          });
          // The memory is stream 1's: it would take it again, and come first.
          const other = inStream(1, () => late(-1));
          waitFor(1);
          expect(inStream(2, () => last(read))).toBe(seed + 1);
          expect(inStream(1, () => last(other))).toBe(-1);
        });
      }
    });
  });

  it("are written again only behind what their readers have read", () => {
    scope(() => {
      for (const seed of seeds) {
        begin(seed);
        scope(() => {
          const lent = inStream(1, () => late(seed));
          const ref = inStream(1, () => shareRef(lent));
          const read = inStream(2, () => {
            const borrowed = attach(ref);
            const result = borrowed.add(1);
            borrowed.dispose();
            return result;
          });
          inStream(1, () => lent.fill_(-1));
          waitFor(1);
          expect(inStream(2, () => last(read))).toBe(seed + 1);
        });
      }
    });
  });

  it.each<[string, readonly Device[]]>([
    ["on one device", ["sim:0", "sim:0", "sim:0"]],
    ["on two", ["sim:0", "sim:1", "sim:0"]],
  ])(
    "are reduced and gathered by threads behind what each has computed, and read behind the result, %s",
    async (_, devices) => {
      const size = devices.length;
      for (const seed of seeds.slice(0, 4)) {
        pretend().simSeed(seed);
        const ranks = devices.map((device, rank) => {
          const workerData: StreamsRank = { name: `streams-${seed}`, device, rank, size, rounds: 30 };
          return new Worker(new URL("../fixtures/devices/streams-rank.ts", import.meta.url), { workerData });
        });
        const wrong = await Promise.all(
          ranks.map(async (rank) => (await once(rank, "message"))[0] as string[]),
        );
        await Promise.all(ranks.map((rank) => rank.terminate()));
        expect(wrong).toEqual(wrong.map(() => []));
      }
    },
  );

  it("buffers are overwritten only after the copies that messages ordered another device to make", async () => {
    const rounds = 30;
    for (const seed of seeds.slice(0, 4)) {
      pretend().simSeed(seed);
      const { port1, port2 } = new MessageChannel();
      const ends: LentMemory[] = [
        { device: "sim:0", writes: true, other: port1, rounds },
        { device: "sim:1", writes: false, other: port2, rounds },
      ];
      const [writer, reader] = ends.map((workerData) => {
        const file = new URL("../fixtures/devices/lent-memory.ts", import.meta.url);
        return new Worker(file, { workerData, transferList: [workerData.other] });
      }) as [Worker, Worker];
      const [[seen]] = await Promise.all([once(reader, "message"), once(writer, "message")]);
      await Promise.all([reader.terminate(), writer.terminate()]);
      expect(seen).toEqual(Array.from({ length: rounds }, (_, round) => round + 1));
    }
  });

  it("are read behind what a thread of the host has written, which heard of another device first", async () => {
    const rounds = 30;
    for (const seed of seeds.slice(0, 4)) {
      pretend().simSeed(seed);
      const [first, third] = [new MessageChannel(), new MessageChannel()];
      const places: PassesOn[] = [
        { device: "sim:0", others: [first.port1], rounds },
        { device: "cpu", others: [first.port2, third.port1], rounds },
        { device: "sim:1", others: [third.port2], rounds },
      ];
      const threads = places.map((workerData) => {
        const file = new URL("../fixtures/devices/passes-on.ts", import.meta.url);
        return new Worker(file, { workerData, transferList: [...workerData.others] });
      });
      const reported = await Promise.all(threads.map((thread) => once(thread, "message")));
      await Promise.all(threads.map((thread) => thread.terminate()));
      expect(reported[2]?.[0]).toEqual(Array.from({ length: rounds }, (_, round) => round + 1));
    }
  });
});
