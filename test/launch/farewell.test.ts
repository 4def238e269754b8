import { describe, expect, it } from "vitest";
import { Head, type Launch, takePart } from "../../src/actors/launch/index.ts";
import { nativeInfo } from "../../src/entries/tensor.ts";
import { freePort } from "./launched-hosts.ts";

describe.skipIf(!nativeInfo().gloo)("a process that comes in a lost one's place just as the run ends", () => {
  const trust = { tls: undefined, tokenFile: undefined };

  async function comeLate(end: { readonly failure?: string }): Promise<void> {
    const master = { host: "127.0.0.1", port: await freePort() };
    const of = (rank: number): Launch => ({
      ...{ by: "torchrun", rank, size: 2, localRank: 0, localSize: 1 },
      ...{ master, isStoreKept: false, replacesLost: true, run: "" },
    });
    using head = await Head.open(of(0), trust);
    const farewell = head.farewell([1_000], end);
    const heartbeat = { everyMs: 200, lostAfter: 9 };
    // Without the word of the head it would wait for as long as a host may take to come.
    try {
      await takePart({ launch: of(1), about: "", deadlineMs: 600_000, trust, heartbeat });
    } finally {
      await farewell;
    }
  }

  it("hears that at once, and ends as the run did", async () => {
    await comeLate({});
    await expect(comeLate({ failure: "out of memory" })).rejects.toMatchObject({
      code: "HOST_REFUSED",
      message: expect.stringContaining("one that has failed: out of memory"),
    });
  });

  it("a lost host is not waited for if the launcher never reassigns places, or none was lost lately", async () => {
    const master = { host: "127.0.0.1", port: await freePort() };
    const of = (replacesLost: boolean): Launch => ({
      ...{ by: "Slurm", rank: 0, size: 2, localRank: 0, localSize: 1 },
      ...{ master, isStoreKept: false, replacesLost, run: "" },
    });
    for (const [replacesLost, lostForMs] of [
      [false, 1_000],
      [true, 600_000],
    ] as const) {
      using head = await Head.open(of(replacesLost), trust);
      let isOver = false;
      void head.farewell([lostForMs], {}).then(() => {
        isOver = true;
      });
      await Promise.resolve();
      expect(isOver).toBe(true);
    }
  });
});
