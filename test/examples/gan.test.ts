import { expect, it } from "vitest";
import { type EventOf, Runtime, type RuntimeOptions } from "../../src/entries/index.ts";

const job = new URL("../../examples/gan/job.ts", import.meta.url);
const steps = 150;

type Step = EventOf<"step.finished">;

async function train(options: RuntimeOptions, onStep: (step: Step, runtime: Runtime) => void = () => {}) {
  await using runtime = await Runtime.spawn({ steps, threadsPerRank: 1, warmStandby: false, ...options });
  const made: Step[] = [];
  let numRestarts = 0;
  runtime.on("step.finished", (event) => {
    made[event.step - 1] = event;
    onStep(event, runtime);
  });
  runtime.on("run.restored", () => {
    numRestarts += 1;
  });
  await runtime.run(job);
  return {
    figures: made.map(({ lossNats, metrics = {} }) => ({ ...metrics, lossNats }) as Record<string, number>),
    numRestarts,
  };
}

it("two models learn by one loop, to the same bits on 2 ranks at ZeRO 0 and at ZeRO 3, of whose processes one is killed", async () => {
  const whole = await train({ ranks: 2, zero: 0 });
  expect(whole.figures).toHaveLength(steps);
  expect(whole.figures[0]?.radius).toBeLessThan(0.6);
  expect(whole.figures.at(-1)?.radius).toBeGreaterThan(1.4);
  let isStruck = false;
  const split = await train({ ranks: 2, zero: 3, placement: "process" }, ({ step }, runtime) => {
    const victim = runtime.inspect().find(({ actor }) => actor === "rank-1");
    if (step < 20 || isStruck || victim === undefined) return;
    isStruck = true;
    process.kill(victim.pid, "SIGKILL");
  });
  expect(split.numRestarts).toBe(1);
  expect(split.figures).toEqual(whole.figures);
});
