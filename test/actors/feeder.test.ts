import { afterAll, expect, it } from "vitest";
import { actorModules } from "../../src/actors/index.ts";
import { preloads } from "../../src/actors/preload/index.ts";
import type { FeederInit, FeederProtocol } from "../../src/actors/protocols/feeder.ts";
import { splitOf } from "../../src/actors/protocols/index.ts";
import { tinyJob, Workspace } from "../fixtures/run-tiny.ts";
import { startSystem } from "../runtime/start-system.ts";

const workspace = new Workspace();
afterAll(() => workspace[Symbol.dispose]());

it("a feeder ends with its group at once, though a batch is due of a call that never comes", async () => {
  const { default: job } = await import(tinyJob.href);
  const config = { ...job.config, data: workspace.text, cache: workspace.path("cache") };
  const { system } = startSystem({ preload: preloads.oneHost });
  const init = (): FeederInit => ({ jobUrl: tinyJob.href, data: { config, seed: 1 } });
  const supervisor = await system.supervise({
    name: "group",
    strategy: "one_for_all",
    children: [
      { name: "feeder", module: actorModules.feeder, init },
      { name: "sibling", module: new URL("../runtime/actors/echo.ts", import.meta.url) },
    ],
  });
  const feeder = supervisor.ref<FeederProtocol>("feeder");
  const order = { position: 0, numSamples: 2, owner: "reader#1", numReaders: 1 };
  await feeder.ask("next", { split: "train", ...order }, { deadlineMs: 20_000 });
  const refused = expect(
    feeder.ask("next", { split: splitOf(1), ...order }, { deadlineMs: 20_000 }),
  ).rejects.toMatchObject({ code: "ACTOR_DOWN" });
  const beginMs = performance.now();
  await supervisor.restart();
  // An actor that does not end is ended after 5 s.
  expect(performance.now() - beginMs).toBeLessThan(4_500);
  await refused;
});
