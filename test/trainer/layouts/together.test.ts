import { afterAll, expect, it } from "vitest";
import { runTiny, Workspace } from "../../fixtures/run-tiny.ts";

const together = new URL("../../fixtures/jobs/together.ts", import.meta.url);
const asJob = new URL("../../fixtures/jobs/together-job.ts", import.meta.url);
const workspace = new Workspace();
afterAll(() => workspace[Symbol.dispose]());

const train = async (options: Parameters<typeof runTiny>[1], job = together) => {
  const { losses, error } = await runTiny(workspace, { seed: 3, ...options }, {}, job);
  if (error !== undefined) throw error;
  return losses;
};

it("ranks compute together along every axis in a loop's hands, and a loss over all replicas' rows is that of one rank", async () => {
  const alone = await train({ ranks: 1 });
  const pair = await train({ ranks: 2, zero: 3 });
  const mesh = await train({ ranks: 4, tp: 2, zero: 1 });
  expect(alone).toHaveLength(4);
  expect(await train({ ranks: 2, zero: 3 }, asJob)).toEqual(pair);
  // Means of four rows each are added in another order than one of eight: some ulps of float32.
  for (const [step, loss] of alone.entries()) {
    expect(Math.abs((pair[step] ?? Number.NaN) - loss)).toBeLessThan(2e-6);
    expect(Math.abs((mesh[step] ?? Number.NaN) - loss)).toBeLessThan(2e-6);
  }
});
