import { existsSync } from "node:fs";
import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import fc from "fast-check";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { full, hold, numelOf } from "../../src/compute/tensor/index.ts";
import { type Box, boxesOfRun, coverOnce } from "../../src/library/checkpoint/format/slices.ts";
import type { Checkpoint } from "../../src/library/checkpoint/reading/checkpoint.ts";
import { openCheckpoint } from "../../src/library/checkpoint/reading/open-checkpoint.ts";
import {
  type CheckpointSource,
  writeCheckpoint,
} from "../../src/library/checkpoint/saving/save-checkpoint.ts";

const seed = 20_261_121;
const state = { step: 1, seed, samplesConsumed: 0, job: null, tokenizer: null };
// A disk of memory, where there is one: what is looked at here is which bytes go where.
const disk = existsSync("/dev/shm") ? "/dev/shm" : tmpdir();
let folder: string;
beforeAll(async () => {
  folder = await mkdtemp(join(disk, "troupe-resharding-"));
});
afterAll(() => rm(folder, { recursive: true }));

/** A tensor whose elements tell their place. */
interface Logical {
  readonly name: string;
  readonly shape: readonly number[];
  readonly values: Float32Array;
}

/** How a tensor is spread over ranks: boxes, or runs of its row-major order. */
type Layout =
  | { readonly boxes: readonly Box[] }
  | { readonly runs: readonly [begin: number, numel: number][] };

const whole = (shape: readonly number[]): Box => ({ offset: shape.map(() => 0), shape });

/** Sorted places that cut 0..size into pieces, uneven and empty ones too. */
const cutsOf = (size: number, maxCuts: number) =>
  fc
    .array(fc.integer({ min: 0, max: size }), { maxLength: maxCuts })
    .map((cuts) => [0, ...cuts.toSorted((a, b) => a - b), size]);

const piecesOf = (cuts: readonly number[]): [number, number][] =>
  cuts.slice(1).map((end, index) => [cuts[index] ?? 0, end - (cuts[index] ?? 0)]);

/** Cuts along any dimensions at once: rows (row parallel), columns, both, experts. */
function gridOf(shape: readonly number[], maxCuts = 3): fc.Arbitrary<Box[]> {
  return fc.tuple(...shape.map((size) => cutsOf(size, maxCuts))).map((cuts) => {
    let boxes: Box[] = [{ offset: [], shape: [] }];
    for (const dim of cuts) {
      boxes = boxes.flatMap((box) =>
        piecesOf(dim)
          .filter(([, size]) => size > 0)
          .map(([begin, size]) => ({ offset: [...box.offset, begin], shape: [...box.shape, size] })),
      );
    }
    return boxes;
  });
}

/** A rank's share of a fused query-key-value projection: its heads' rows of each of the three, at once. */
function fusedShares(shape: readonly number[], ranks: number): Box[] {
  const [rows = 0, ...rest] = shape;
  const part = rows / 3 / ranks;
  return Array.from({ length: ranks * 3 }, (_, i) => ({
    offset: [(i % 3) * (rows / 3) + Math.floor(i / 3) * part, ...rest.map(() => 0)],
    shape: [part, ...rest],
  }));
}

const logical = fc
  .array(fc.integer({ min: 1, max: 7 }), { minLength: 0, maxLength: 4 })
  .map((shape) => ({ shape, values: Float32Array.from({ length: numelOf(shape) }, (_, i) => i + 0.5) }));

/** A model of a few tensors, one of them a fused projection, each with boxes to be written as. */
const written = fc.array(logical, { minLength: 1, maxLength: 4 }).chain((tensors) => {
  const fused = { shape: [12, 5], values: Float32Array.from({ length: 60 }, (_, i) => -i) };
  const named = [...tensors, fused].map((tensor, index) => ({ ...tensor, name: `h.${index}.weight` }));
  const layouts = named.map(({ shape }, index) =>
    index === tensors.length
      ? fc.constantFrom(fusedShares(shape, 1), fusedShares(shape, 2), fusedShares(shape, 4))
      : fc.oneof(fc.constant([whole(shape)]), gridOf(shape)),
  );
  return fc.record({
    tensors: fc.constant(named),
    layouts: fc.tuple(...layouts),
    // Stages and shards keep files of their own.
    maxFileBytes: fc.integer({ min: 1, max: 2000 }),
    chunkBytes: fc.integer({ min: 1, max: 600 }),
  });
});

function layoutsOf(shape: readonly number[]): fc.Arbitrary<Layout> {
  return fc.oneof(
    gridOf(shape).map((boxes) => ({ boxes })),
    cutsOf(numelOf(shape), 5).map((cuts) => ({ runs: piecesOf(cuts) })),
  );
}

/** The elements of a box, row-major. */
function valuesIn({ shape, values }: Logical, box: Box): Float32Array {
  const found: number[] = [];
  const visit = (dim: number, at: number) => {
    if (dim === shape.length) {
      found.push(values[at] ?? Number.NaN);
      return;
    }
    for (let i = 0; i < (box.shape[dim] ?? 0); i++)
      visit(dim + 1, at * (shape[dim] ?? 0) + (box.offset[dim] ?? 0) + i);
  };
  visit(0, 0);
  return Float32Array.from(found);
}

function sourceOf(tensor: Logical, box: Box): CheckpointSource {
  const { name, shape } = tensor;
  const isWhole = box.shape.join() === shape.join();
  const read = () => new Uint8Array(valuesIn(tensor, box).buffer);
  return {
    name,
    dtype: "F32",
    shape: box.shape,
    read,
    ...(isWhole ? {} : { part: { of: shape, offset: box.offset } }),
  };
}

/** Reads a tensor as a layout has it: boxes one by one; runs one by one, and every other one in one go. */
async function expectAlike(checkpoint: Checkpoint, tensor: Logical, layout: Layout): Promise<void> {
  const { name, shape, values } = tensor;
  if ("boxes" in layout) {
    for (const box of layout.boxes) {
      const got = await checkpoint.read(name, new Uint8Array(4 * numelOf(box.shape)), box);
      expect(new Float32Array(got.buffer)).toEqual(valuesIn(tensor, box));
    }
    return;
  }
  const into = hold(() => full([numelOf(shape) + 2], -1));
  const inside = { tensor: into, begin: 1, numel: numelOf(shape) };
  const others = layout.runs.filter((_, index) => index % 2 === 1);
  const stretches = others.flatMap(([begin, numel]) => [4 * begin, 4 * begin, 4 * numel]);
  await checkpoint.readStretches(name, Float64Array.from(stretches), inside);
  for (const [begin, numel] of layout.runs.filter((_, index) => index % 2 === 0)) {
    await checkpoint.readRange(name, 4 * begin, { tensor: into, begin: begin + 1, numel });
  }
  expect(into.toTypedArray()).toEqual(Float32Array.of(-1, ...values, -1));
  into.dispose();
}

describe("a checkpoint written in any layout", () => {
  test("a checkpoint is read bit for bit in any other layout: runs, rows, columns, grids, fused projections, stages, uneven shares", async () => {
    let numSaved = 0;
    let numCases = 0;
    const property = fc.asyncProperty(written, fc.nat(), async ({ tensors, layouts, ...options }, turn) => {
      const directory = join(folder, `${numSaved++}`);
      const weights = tensors.flatMap((tensor, i) => layouts[i]!.map((box) => sourceOf(tensor, box)));
      await writeCheckpoint(directory, { state, config: {}, weights, optimizer: [] }, options);
      await using checkpoint = await openCheckpoint(directory);
      for (const [index, tensor] of tensors.entries()) {
        expect(checkpoint.entry(tensor.name)).toMatchObject({ dtype: "F32", shape: tensor.shape });
        for (const layout of fc.sample(layoutsOf(tensor.shape), { seed: turn + index, numRuns: 8 })) {
          await expectAlike(checkpoint, tensor, layout);
          numCases += 1;
        }
      }
    });
    await fc.assert(property, { seed, numRuns: 100, endOnFailure: true });
    expect(numCases).toBeGreaterThanOrEqual(2000);
  });
});

describe("slices", () => {
  const countingTo = (shape: readonly number[]) => ({
    name: "",
    shape,
    values: Float32Array.from({ length: numelOf(shape) }, (_, i) => i),
  });

  test("slices cover a tensor if each element lies in exactly one of them", () => {
    const cases = fc.array(fc.integer({ min: 1, max: 4 }), { maxLength: 3 }).chain((shape) => {
      const box = fc.tuple(...shape.map((size) => fc.integer({ min: 0, max: size - 1 }))).chain((offset) =>
        fc.record({
          offset: fc.constant(offset),
          shape: fc.tuple(...shape.map((size, dim) => fc.integer({ min: 0, max: size - offset[dim]! }))),
        }),
      );
      const many = fc.oneof(gridOf(shape), fc.array(box, { maxLength: 4 }));
      return fc.record({
        shape: fc.constant(shape),
        boxes: many,
        more: fc.array(box, { maxLength: 1 }),
        numLeftOut: fc.nat(1),
      });
    });
    let numCovers = 0;
    fc.assert(
      fc.property(cases, ({ shape, boxes, more, numLeftOut }) => {
        const all = [...boxes.slice(numLeftOut), ...more];
        const tensor = countingTo(shape);
        const places = all.flatMap((box) => [...valuesIn(tensor, box)]).toSorted((a, b) => a - b);
        const once = places.join() === [...tensor.values].join();
        expect(coverOnce(all, shape)).toBe(once);
        numCovers += Number(once);
      }),
      { seed, numRuns: 1000 },
    );
    expect(numCovers).toBeGreaterThan(100);
  });

  test("slices cut along more dimensions than supported are refused", () => {
    const shape = [2, 2, 2, 2, 2];
    const cells = Array.from({ length: 32 }, (_, i) => ({
      offset: shape.map((_, dim) => (i >> dim) & 1),
      shape: [1, 1, 1, 1, 1],
    }));
    expect(coverOnce(cells, shape)).toBe(false);
  });

  test("of a run of elements are boxes in its order, few", () => {
    const runs = fc
      .array(fc.integer({ min: 1, max: 5 }), { maxLength: 4 })
      .chain((shape) => fc.tuple(fc.constant(shape), cutsOf(numelOf(shape), 2)));
    fc.assert(
      fc.property(runs, ([shape, [, begin = 0, end = begin]]) => {
        const tensor = countingTo(shape);
        const boxes = boxesOfRun(shape, begin, end - begin);
        expect(boxes.flatMap((box) => [...valuesIn(tensor, box)])).toEqual([
          ...tensor.values.subarray(begin, end),
        ]);
        expect(boxes.length).toBeLessThanOrEqual(Math.max(1, 2 * shape.length - 1));
      }),
      { seed, numRuns: 500 },
    );
  });
});

describe("a part of a large tensor", () => {
  test("reading a part of a tensor costs little more than the part: a run of 20 MiB at most a tenth more, a column its chunks once", async () => {
    const [numRows, numColumns] = [1536, 8192];
    const numbers = new Uint32Array(numRows * numColumns);
    for (let i = 0; i < numbers.length; i++) numbers[i] = Math.imul(i, 2_654_435_761);
    const bytes = new Uint8Array(numbers.buffer);
    const source = { name: "w", dtype: "U32", shape: [numRows, numColumns], read: () => bytes } as const;
    const directory = join(folder, "large");
    await writeCheckpoint(directory, { state, config: {}, weights: [source], optimizer: [] });
    await using checkpoint = await openCheckpoint(directory);

    const begin = 4 * 1_234_567;
    const run = await checkpoint.readRange("w", begin, new Uint8Array(20 << 20));
    expect(Buffer.compare(run, bytes.subarray(begin, begin + run.length))).toBe(0);
    expect(checkpoint.readBytes / run.length).toBeLessThanOrEqual(1.1);

    const before = checkpoint.readBytes;
    const box = { offset: [0, 100], shape: [numRows, 3] };
    const column = await checkpoint.read("w", new Uint8Array(numRows * 12), box);
    const isPlaced = (value: number, i: number) =>
      value === numbers[Math.floor(i / 3) * numColumns + 100 + (i % 3)];
    expect(new Uint32Array(column.buffer).every(isPlaced)).toBe(true);
    // Every chunk holds a piece of it, and is read once for all its rows.
    expect(checkpoint.readBytes - before).toBeLessThanOrEqual(bytes.length + (1 << 20));
  });

  test("a chunk is read once for all tensors in it: small tensors one after the other cost no chunk again", async () => {
    const bytes = new Uint8Array(20_000).fill(3);
    const weights = Array.from({ length: 300 }, (_, i) => ({
      name: `h.${i}`,
      dtype: "U8" as const,
      shape: [20_000],
      read: () => bytes,
    }));
    const directory = join(folder, "small");
    await writeCheckpoint(directory, { state, config: {}, weights, optimizer: [] });
    await using checkpoint = await openCheckpoint(directory);
    // In the order of the file.
    for (const name of checkpoint.names) {
      expect(Buffer.compare(await checkpoint.read(name, new Uint8Array(20_000)), bytes)).toBe(0);
    }
    expect(checkpoint.readBytes / (300 * 20_000)).toBeLessThanOrEqual(1.1);
  });
});
