import { readdirSync, readFileSync } from "node:fs";
import { afterAll, describe, expect, it } from "vitest";
import { parseProcessors, shareOf } from "../../src/compute/tensor/processors.ts";
import { Runtime } from "../../src/entries/index.ts";
import { lossesOf, tinyJob, Workspace } from "../fixtures/run-tiny.ts";

/** The threads of a process, by the processors that each may run on. */
function threadsBy(pid: number): Map<string, number> {
  const counts = new Map<string, number>();
  for (const thread of readdirSync(`/proc/${pid}/task`)) {
    const status = readFileSync(`/proc/${pid}/task/${thread}/status`, "utf8");
    const [, list = ""] = /^Cpus_allowed_list:\s*(.*)$/m.exec(status) ?? [];
    const processors = parseProcessors(list).join(" ");
    counts.set(processors, (counts.get(processors) ?? 0) + 1);
  }
  return counts;
}

describe.skipIf(process.platform !== "linux")("the threads of ranks, as `bind` tells them", () => {
  const workspace = new Workspace();
  afterAll(() => workspace[Symbol.dispose]());
  const [, list = ""] = /^Cpus_allowed_list:\s*(.*)$/m.exec(readFileSync("/proc/self/status", "utf8")) ?? [];
  const allowed = parseProcessors(list);

  it.each(["thread", "process"] as const)(
    "keep to their rank's share of the processors, rank and shard and what these start, placement %s, and compute what others do",
    async (placement) => {
      const options = { ranks: 2, zero: 3, steps: 4, threadsPerRank: 2 } as const;
      // Narrower products are one thread's.
      const config = { width: 256 };
      const runtime = await Runtime.spawn({ ...options, placement, bind: "cores", warmStandby: false });
      const seen: Map<string, number>[] = [];
      const losses: number[] = [];
      runtime.events$.subscribe((event) => {
        if (event.kind !== "step.finished") return;
        losses.push(event.lossNats);
        if (event.step !== 2) return;
        const ranks = runtime.inspect().filter(({ role }) => role === "rank");
        for (const { pid } of ranks) seen.push(threadsBy(pid));
      });
      await runtime.run(tinyJob, { data: workspace.text, cache: workspace.path("cache"), ...config });
      await runtime.stop();
      expect(seen).toHaveLength(2);
      for (const [rank, threads] of seen.entries()) {
        // A rank, its shard, and the second thread of the rank's arithmetic.
        const own = shareOf("cores", rank, 2, [allowed]).join(" ");
        expect(threads.get(own) ?? 0).toBeGreaterThanOrEqual(3);
        // If the other rank has a process of its own, none of its threads are here.
        const other = shareOf("cores", 1 - rank, 2, [allowed]).join(" ");
        if (placement === "process" && other !== own) expect(threads.get(other)).toBeUndefined();
      }
      expect(losses).toEqual(await lossesOf(workspace, options, config));
    },
  );
});
