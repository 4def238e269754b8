import { afterAll, describe, expect, it } from "vitest";
import { nativeInfo } from "../../../src/compute/tensor/index.ts";
import type { RuntimeOptions } from "../../../src/entries/index.ts";
import { pretendNccl } from "../../devices/pretend-nccl.ts";
import { lossesOf, runTiny, Workspace } from "../../fixtures/run-tiny.ts";

// On pretend devices, by a pretend NCCL.
describe.skipIf(!nativeInfo().gloo)("a run by NCCL, a process and a device for each rank", () => {
  const workspace = new Workspace();
  const nccl = pretendNccl(4);
  afterAll(() => {
    workspace[Symbol.dispose]();
    nccl[Symbol.dispose]();
  });
  const byNccl = { device: "sim", placement: "process", carrier: "nccl" } as const;

  it.each<RuntimeOptions & { readonly ranks: number; readonly steps: number }>([
    { ranks: 2, zero: 3, steps: 3 },
    { ranks: 4, tp: 2, pp: 2, accumulation: 2, steps: 2 },
  ])("has the losses of threads of the host, to the bit: %j", async (options) => {
    expect(await lossesOf(workspace, { ...options, ...byNccl })).toEqual(await lossesOf(workspace, options));
  });

  it("goes on from its last state after a rank's process has died within a step", async () => {
    const options = { ranks: 2, zero: 2, steps: 6 } as const;
    const outcome = await runTiny(
      workspace,
      { ...options, ...byNccl, checkpoint: { inMemoryEverySteps: 2 } },
      { fault: "exit", faultRank: 1, faultAt: 4, faultOnce: workspace.path("struck") },
    );
    expect(outcome.error).toBeUndefined();
    expect(outcome.losses).toEqual(await lossesOf(workspace, options));
  });

  it("is refused where two ranks would share a device", async () => {
    await expect(runTiny(workspace, { ranks: 2, ...byNccl, device: "sim:0" })).rejects.toMatchObject({
      code: "OPTION",
      message: expect.stringContaining("a device for each rank"),
    });
  });
});
