import { afterAll, describe, expect, it } from "vitest";
import type { RuntimeOptions } from "../../src/index.ts";
import { lossesOf, Workspace } from "../fixtures/run-tiny.ts";

const ownJob = new URL("../fixtures/jobs/own.ts", import.meta.url);

describe("a job with pieces of its own", () => {
  const workspace = new Workspace();
  afterAll(() => workspace[Symbol.dispose]());

  const losses = (options: RuntimeOptions, config: Record<string, unknown>) =>
    lossesOf(workspace, options, config, ownJob);

  it("draws anew in each call of a dropout that its layers share, the same under every layout and when computed again", async () => {
    const dropout = { dropout: 0.3 };
    const plain = await losses({ ranks: 1, zero: 0, accumulation: 2 }, dropout);
    for (const options of [
      { ranks: 1, zero: 0, accumulation: 2, recompute: true },
      { ranks: 2, zero: 3, recompute: ["outer", "dropout"] },
      { ranks: 2, pp: 2, accumulation: 2, recompute: true },
      { ranks: 2, pp: 2, chunks: 2, accumulation: 2, schedule: "interleaved" },
    ] as const satisfies RuntimeOptions[]) {
      expect(await losses(options, dropout), JSON.stringify(options)).toEqual(plain);
    }
    expect(await losses({ ranks: 1, zero: 0, accumulation: 2 }, { dropout: 0.29 })).not.toEqual(plain);
  });
});
