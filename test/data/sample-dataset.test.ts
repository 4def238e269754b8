import { describe, expect, it } from "vitest";
import {
  attach,
  liveRefs,
  liveTensors,
  ops,
  scope,
  type Tensor,
  tensor,
} from "../../src/compute/tensor/index.ts";
import { originOf } from "../../src/errors/index.ts";
import {
  type Batch,
  BuiltBatches,
  disposeBatch,
  sampleDataset,
  stack,
} from "../../src/library/data/index.ts";

const facts = { source: "squares", labels: ["even", "odd"] };
const numbers = (length: number) => Array.from({ length }, (_, index) => index);

const record = (index: number) => ({
  x: tensor([index, index * index]),
  label: index % 2,
  text: `number ${index}`,
  mask: { isOdd: index % 2 === 1 },
});
type Sample = ReturnType<typeof record>;

const squares = (length: number, at: (index: number) => Sample | Promise<Sample> = record) => ({
  length,
  at,
});

const datasetOf = (train = squares(5), test = squares(4)) =>
  sampleDataset({
    facts,
    splits: { train, test },
    collate: stack<Sample>({ label: "int64" }),
    seed: 7,
  });

const valuesOf = (value: Tensor) => Array.from(value.toTypedArray(), Number);

describe("sampleDataset", () => {
  const orderOf = (shuffle?: boolean) => {
    const dataset = sampleDataset({
      facts,
      splits: { train: numbers(6), test: numbers(3) },
      collate: (items: readonly number[]) => ({ items }) as Batch,
      seed: 3,
      ...(shuffle === undefined ? {} : { shuffle }),
    });
    return (split: string, position: number, numSamples: number) =>
      (dataset.batch(split, position, numSamples) as { items: number[] }).items;
  };

  it("gives every sample once an epoch, each epoch in an order of its own that seed and position alone decide", () => {
    const order = orderOf();
    const epochs = [0, 1, 2].map((epoch) => order("train", 6 * epoch, 6));
    for (const epoch of epochs) expect(epoch.toSorted()).toEqual(numbers(6));
    expect(new Set(epochs.map(String)).size).toBe(3);
    expect([...order("train", 4, 5)]).toEqual([...epochs.flat().slice(4, 9)]); // across the end of an epoch
    expect(orderOf()("train", 0, 18)).toEqual(epochs.flat());
  });

  it("reads other splits, and a training split that is not shuffled, in their own order", () => {
    expect(orderOf()("test", 1, 2)).toEqual([1, 2]);
    expect(orderOf(false)("train", 4, 4)).toEqual([4, 5, 0, 1]);
  });

  it("collates tensors, numbers, texts and records name by name, and releases what it made on the way", () => {
    const before = liveTensors();
    const batch = datasetOf().batch("test", 1, 3) as ReturnType<ReturnType<typeof stack<Sample>>>;
    expect(valuesOf(batch.x)).toEqual([1, 1, 2, 4, 3, 9]);
    expect([batch.x.shape, batch.label.dtype, batch.mask.isOdd.dtype]).toEqual([[3, 2], "int64", "bool"]);
    expect(valuesOf(batch.label)).toEqual([1, 0, 1]);
    expect(batch.text).toEqual(["number 1", "number 2", "number 3"]);
    disposeBatch(batch);
    expect(liveTensors()).toBe(before);
  });

  it("waits for samples that come later, side by side", async () => {
    let numWaiting = 0;
    const { promise: all, resolve } = Promise.withResolvers<void>();
    const later = squares(3, async (index) => {
      numWaiting += 1;
      if (numWaiting === 3) resolve();
      await all; // never, were they asked for one after the other
      return record(index);
    });
    const batch = await datasetOf(later).batch("train", 0, 3);
    expect(valuesOf(batch.x).toSorted()).toEqual([0, 0, 1, 1, 2, 4]);
    disposeBatch(batch);
  });

  it("refuses samples without a function that makes a batch of them", () => {
    const options = { facts: { source: "squares" }, seed: 1, splits: { train: [1, 2] } };
    expect(() => sampleDataset(options as never)).toThrow(
      /collate to be a function .*, got undefined \(stack/,
    );
  });

  it("refuses a split without samples, and samples that differ in kind", () => {
    expect(() => datasetOf(squares(0))).toThrow(/samples in split train of squares, got 0/);
    const collate = stack();
    const refuse = (samples: Parameters<typeof collate>[0], message: RegExp) =>
      expect(() => scope(() => collate(samples))).toThrow(message);
    refuse(
      [{ x: 1 }, { y: 1 }],
      /the same names in every sample, got x in sample 0 and y in sample 1 of the batch/,
    );
    refuse(
      [{ x: 1 }, { x: "1" }],
      /one kind of x in every sample, got a number in sample 0 and a text in sample 1/,
    );
    refuse([{ x: (() => 1) as never }], /a text or a record, got a function/);
    refuse([{ x: Promise.resolve(1) as never }], /a text or a record, got a promise/);
    refuse(
      [{ x: tensor([1, 2]) }, { x: tensor([1]) }],
      /x of one dtype and shape in .*, got float32\[2\] in sample 0 and float32\[1\] in sample 1/,
    );
  });

  it.each([
    ["is not there", () => undefined, "expected at(2) of split test to return a sample, got undefined"],
    [
      "is not there later",
      async () => undefined,
      "expected at(2) of split test to return a sample, got undefined",
    ],
    [
      "has another shape",
      () => ({ ...record(2), x: tensor([1]) }),
      "got float32[2] in sample 0 and float32[1] in sample 2 of split test",
    ],
  ])("names the index and the split of a sample that %s", async (_what, sample, message) => {
    const samples = { length: 4, at: (index: number) => (index === 2 ? sample() : record(index)) };
    const read = async () => await datasetOf(squares(5), samples as never).batch("test", 0, 4);
    await expect(read()).rejects.toThrow(message);
  });

  it("keeps the index and the split with what a sample throws, at once and later", async () => {
    for (const isLate of [false, true]) {
      const thrown = new Error("a bad picture");
      const samples = {
        length: 4,
        at: (index: number) => {
          if (index !== 2) return record(index);
          if (isLate) return Promise.reject(thrown);
          throw thrown;
        },
      };
      await expect(
        (async () => await datasetOf(squares(5), samples as never).batch("test", 0, 4))(),
      ).rejects.toBe(thrown);
      expect(originOf(thrown)).toEqual({ call: "at(2) of split test" });
    }
  });
});

describe("BuiltBatches", () => {
  const request = { split: "train", position: 0, numSamples: 2 };
  const reader = { owner: "rank", numReaders: 2 };

  const counting = (make: () => Batch | Promise<Batch>) => {
    let numBuilt = 0;
    const built = new BuiltBatches({
      batch: () => {
        numBuilt += 1;
        return make();
      },
    });
    return { built, numBuilt: () => numBuilt };
  };

  it("builds a batch once for all its readers, who share its memory and do not write to it", async () => {
    const [tensors, refs] = [liveTensors(), liveRefs()];
    const { built, numBuilt } = counting(async () => ({ x: tensor([1, 2]), texts: ["one", "two"] }));
    expect(await built.batch(request)).toMatchObject({ texts: ["one", "two"] });
    const taken = await Promise.all([built.take(request, reader), built.take(request, reader)]);
    expect(numBuilt()).toBe(1);
    expect(taken.map((each) => Object.keys(each))).toEqual([["x"], ["x"]]);
    scope(() => {
      const [a, b] = taken.map(({ x }) => attach(x as never)) as [Tensor, Tensor];
      expect(valuesOf(a)).toEqual(valuesOf(b));
      expect(() => a.add_(1)).toThrow(expect.objectContaining({ code: "TENSOR_READ_ONLY" }));
    });
    expect([liveTensors(), liveRefs()]).toEqual([tensors, refs]);
    for (const { x } of [await built.take(request, { ...reader, numReaders: 1 })])
      scope(() => attach(x as never));
    expect(numBuilt()).toBe(2); // given up once its last reader had it
  });

  it("carries one tensor under two names, and records within records", async () => {
    const { built } = counting(() => {
      const x = tensor([1, 2]);
      return { inputs: x, labels: x, more: { again: x, other: ops.neg(x) } };
    });
    const before = liveTensors();
    const refs = await built.take(request, { owner: "rank", numReaders: 1 });
    scope(() => {
      const { inputs, labels, more } = refs as { inputs: never; labels: never; more: Record<string, never> };
      const all = [inputs, labels, more.again as never, more.other as never].map((ref) =>
        valuesOf(attach(ref)),
      );
      expect(all).toEqual([
        [1, 2],
        [1, 2],
        [1, 2],
        [-1, -2],
      ]);
    });
    expect(liveTensors()).toBe(before);
  });

  it.each([
    [() => tensor([1]) as never, /to return a record of named tensors, got a Tensor/],
    [() => undefined as never, /to return a record of named tensors, got undefined/],
    [() => ({ x: [tensor([1])] }) as never, /x in batch\("train", 0, 2\) .* got an array of tensors/],
    [() => ({ x: new Map() }) as never, /x in .* to be a tensor, a record or plain values, got a Map/],
  ])("a batch of an unknown form is refused", async (make, message) => {
    await expect(counting(make).built.take(request, reader)).rejects.toThrow(message);
  });

  it("tries again where building failed", async () => {
    let fails = true;
    const { built, numBuilt } = counting(() => {
      if (fails) throw new Error("the disk is away");
      return { x: tensor([1]) };
    });
    await expect(built.take(request, reader)).rejects.toThrow("the disk is away");
    fails = false;
    disposeBatch(await built.batch(request));
    expect(numBuilt()).toBe(2);
  });
});
