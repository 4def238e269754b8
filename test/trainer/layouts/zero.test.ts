import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { lossesOf, runTiny, Workspace } from "../../fixtures/run-tiny.ts";

const steps = 12;

describe("ZeRO", () => {
  const workspace = new Workspace();
  let plain: readonly number[] = [];

  beforeAll(async () => {
    plain = await lossesOf(workspace, { ranks: 2, zero: 0, steps });
  });
  afterAll(() => workspace[Symbol.dispose]());

  it("learns", async () => {
    const losses = await lossesOf(workspace, { ranks: 2, zero: 3, steps: 50 });
    expect(losses).toHaveLength(50);
    expect(losses.at(-1)).toBeLessThan((losses[0] ?? 0) - 2);
  });

  it.each([1, 2, 3])("trains to the same 17 digits at level %i as at level 0", async (zero) => {
    expect(await lossesOf(workspace, { ranks: 2, zero, steps })).toEqual(plain);
  });

  it.each([0, Number.POSITIVE_INFINITY])(
    "does not depend on a prefetch window of %d bytes",
    async (prefetchBytes) => {
      expect(await lossesOf(workspace, { ranks: 2, zero: 3, steps, prefetchBytes })).toEqual(plain);
    },
  );

  it("gives one rank that accumulates twice the bits of two ranks", async () => {
    expect(await lossesOf(workspace, { ranks: 1, zero: 3, steps }, { accumulation: 2 })).toEqual(plain);
  });

  it("gives four ranks the same bits at every level", async () => {
    const four = await lossesOf(workspace, { ranks: 4, zero: 0, steps: 10 });
    for (const zero of [1, 3]) expect(await lossesOf(workspace, { ranks: 4, zero, steps: 10 })).toEqual(four);
  });

  it("gives nine ranks, whose statistics go row by row, the bits of one that accumulates nine times", async () => {
    const one = await lossesOf(workspace, { ranks: 1, zero: 0, steps: 6 }, { batch: 9, accumulation: 9 });
    for (const zero of [0, 3])
      expect(await lossesOf(workspace, { ranks: 9, zero, steps: 6 }, { batch: 9 })).toEqual(one);
  });

  it("gives the same bits again with the same seed, and others with another", async () => {
    const again = () => runTiny(workspace, { ranks: 2, zero: 3, steps: 5, seed: 7 });
    const { losses: first, error } = await again();
    expect(error).toBeUndefined();
    expect((await again()).losses).toEqual(first);
    expect(first).not.toEqual(plain.slice(0, 5));
  });

  it("updates each block as soon as it is reduced when nothing is clipped, to the same bits at every level", async () => {
    const unclipped = { clipNorm: 0 };
    const level0 = await lossesOf(workspace, { ranks: 2, zero: 0, steps: 10 }, unclipped);
    expect(await lossesOf(workspace, { ranks: 2, zero: 3, steps: 10 }, unclipped)).toEqual(level0);
    expect(level0).not.toEqual(plain.slice(0, 10));
  });

  it("draws dropout by sample, not by rank or level", async () => {
    const dropout = { dropout: 0.2 };
    const level3 = await lossesOf(workspace, { ranks: 2, zero: 3, steps: 10 }, dropout);
    expect(
      await lossesOf(workspace, { ranks: 1, zero: 0, steps: 10 }, { ...dropout, accumulation: 2 }),
    ).toEqual(level3);
    expect(level3).not.toEqual(plain.slice(0, 10));
  });
});
