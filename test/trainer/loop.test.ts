import { afterAll, describe, expect, it } from "vitest";
import { lossesOf, runTiny, Workspace } from "../fixtures/run-tiny.ts";

const loopJob = new URL("../fixtures/jobs/tiny-loop.ts", import.meta.url);
const workspace = new Workspace();
afterAll(() => workspace[Symbol.dispose]());

const steps = 6;

describe("a loop of one's own", () => {
  it("trains as the job does, to the bit: one rank", async () => {
    const options = { ranks: 1, steps };
    const job = await lossesOf(workspace, options);
    const told = await runTiny(workspace, options, {}, loopJob);
    expect(told.error).toBeUndefined();
    expect(told.losses).toEqual(job);
  });
});
