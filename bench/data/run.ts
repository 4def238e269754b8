// Trains as its argument, which is JSON, says, and prints each step with the memory of the process: the program that is killed.
import { readFileSync } from "node:fs";
import { Runtime, type RuntimeOptions } from "../../src/entries/index.ts";

const { options, config } = JSON.parse(process.argv[2] ?? "{}") as {
  readonly options: RuntimeOptions;
  readonly config: Readonly<Record<string, unknown>>;
};
await using runtime = await Runtime.spawn({ threadsPerRank: 1, warmStandby: false, ...options });
runtime.events$.subscribe((event) => {
  if (event.kind === "checkpoint.saved") console.log(JSON.stringify({ saved: event.step }));
  if (event.kind === "step.finished" && event.step % 10 === 0)
    console.log(JSON.stringify({ step: event.step, megabytes: megabytes(), ms: performance.now() }));
});
await runtime.run(new URL("./job.ts", import.meta.url), config);

function megabytes(): number {
  return Number(/^VmRSS:\s+(\d+) kB$/m.exec(readFileSync("/proc/self/status", "utf8"))?.[1] ?? 0) / 1_000;
}
