import { afterAll, describe, expect, it } from "vitest";
import { runTiny, Workspace } from "../fixtures/run-tiny.ts";
import { hasGpu } from "./gpu.ts";

const workspace = new Workspace();
afterAll(() => workspace[Symbol.dispose]());

async function losses(options: Parameters<typeof runTiny>[1]): Promise<readonly number[]> {
  const outcome = await runTiny(workspace, options);
  if (outcome.error !== undefined) throw outcome.error;
  return outcome.losses;
}

describe.skipIf(!hasGpu)("training on one GPU", () => {
  it("gives the host's losses but for the order of sums", async () => {
    const host = await losses({ ranks: 1 });
    const device = await losses({ ranks: 1, device: "cuda:0" });
    expect(device).toHaveLength(host.length);
    // float32 sums in another order, over a few steps of a tiny model.
    for (const [step, loss] of device.entries())
      expect(Math.abs(loss - (host[step] ?? 0)), `step ${step}`).toBeLessThan(2e-4);
  });

  it("gives the same losses twice, and for 1, 2 and 4 ranks that divide what they keep", async () => {
    const one = await losses({ ranks: 2, device: "cuda:0" });
    expect(await losses({ ranks: 2, device: "cuda:0" })).toEqual(one);
    expect(await losses({ ranks: 2, zero: 3, device: "cuda:0" })).toEqual(one);
    const four = await losses({ ranks: 4, device: "cuda:0" });
    expect(await losses({ ranks: 4, zero: 3, device: "cuda:0" })).toEqual(four);
  });

  it.each(["fp32", "bf16", "amp-bf16"] as const)(
    "gives the same losses with blocks as programs and as CUDA graphs, %s",
    async (precision) => {
      const options = { ranks: 2, zero: 3, device: "cuda:0", precision, steps: 6 } as const;
      const singly = await losses(options);
      expect(await losses({ ...options, graph: "exact" })).toEqual(singly);
      process.env.TROUPE_DEVICE_GRAPHS = "1";
      try {
        expect(await losses({ ...options, graph: "exact" })).toEqual(singly);
      } finally {
        delete process.env.TROUPE_DEVICE_GRAPHS;
      }
    },
  );
});
