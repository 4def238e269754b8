import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { type SamplerState, samplesBefore, skipSamples } from "../../src/library/data/index.ts";

const fresh: SamplerState = { step: 0, numSamples: 0, batchSize: 4, skips: [] };

describe("the sampler state", () => {
  it("takes one batch a step, from where the run begins", () => {
    expect([0, 1, 7].map((step) => samplesBefore(fresh, step))).toEqual([0, 4, 28]);
    const resumed = { ...fresh, step: 5, numSamples: 33 };
    expect([5, 6].map((step) => samplesBefore(resumed, step))).toEqual([33, 37]);
  });

  it("goes back in steps without going back in samples", () => {
    const rewound = skipSamples(fresh, 3, 6);
    expect([2, 3, 4].map((step) => samplesBefore(rewound, step))).toEqual([8, 24, 28]);
  });

  it("the sampler takes no sample twice, however often it goes back", () => {
    const jumps = fc.array(fc.tuple(fc.nat(6), fc.nat(6)), { maxLength: 6 });
    fc.assert(
      fc.property(jumps, (jumps) => {
        let sampler = fresh;
        let step = 0;
        let taken = 0;
        for (const [ahead, back] of jumps) {
          for (const end = step + ahead; step < end; step++) {
            expect(samplesBefore(sampler, step)).toBe(taken);
            taken += sampler.batchSize;
          }
          const to = Math.max(0, step - back);
          sampler = skipSamples(sampler, to, step);
          step = to;
        }
        expect(samplesBefore(sampler, step)).toBe(taken);
      }),
      { seed: 7 },
    );
  });
});
