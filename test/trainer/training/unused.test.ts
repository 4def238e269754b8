import { expect, it } from "vitest";
import { Runtime, type TroupeEvent } from "../../../src/entries/index.ts";
import { describeEvent } from "../../../src/job/events/index.ts";

const job = new URL("../../fixtures/jobs/unused.ts", import.meta.url);

it("names the parameters that are trained and that no loss depends on, once, on replicas too", async () => {
  const events: TroupeEvent[] = [];
  await using runtime = await Runtime.spawn({ ranks: 2, zero: 3, threadsPerRank: 1, warmStandby: false });
  runtime.events$.subscribe((event) => events.push(event));
  await runtime.run(job);
  const unused = events.filter(({ kind }) => kind === "parameters.unused");
  expect(unused).toMatchObject([
    { step: 1, names: ["layers.2.weight", "layers.2.bias", "head.weight", "head.bias"] },
  ]);
  expect(describeEvent(unused[0] as TroupeEvent)?.text).toBe(
    "no loss of step 1 uses layers.2.weight, layers.2.bias, head.weight, head.bias: forward does not call the modules that have them",
  );
});
