import { afterAll, expect, it } from "vitest";
import { actorModules } from "../../src/actors/index.ts";
import { preloads } from "../../src/actors/preload/index.ts";
import type { FeederInit, FeederProtocol } from "../../src/actors/protocols/feeder.ts";
import { type RankProtocol, recipientName, splitOf } from "../../src/actors/protocols/index.ts";
import {
  liveRefs,
  memory,
  shareRef,
  type Tensor,
  tagMemory,
  tensor,
} from "../../src/compute/tensor/index.ts";
import { attachBatch, disposeBatch } from "../../src/library/data/index.ts";
import { tinyJob, Workspace } from "../fixtures/run-tiny.ts";
import { actorModule, startSystem } from "../runtime/start-system.ts";

const workspace = new Workspace();
afterAll(() => workspace[Symbol.dispose]());

const deadlineMs = 20_000;
const order = { position: 0, numSamples: 2, owner: "reader", numReaders: 1 };
const lost = { code: "ACTOR_DOWN" };

/** A feeder, and an actor in the place of a rank, each of generation 1. */
async function startFeeder() {
  const { default: job } = await import(tinyJob.href);
  const config = { ...job.config, data: workspace.text, cache: workspace.path("cache") };
  const { system } = startSystem({ preload: preloads.oneHost });
  const init: FeederInit = { jobUrl: tinyJob.href, data: { config, seed: 1 } };
  const feeder = await system.spawn<FeederProtocol, FeederInit>({
    name: "feeder",
    module: actorModules.feeder,
    init,
  });
  const rank = await system.spawn<RankProtocol>({ name: "rank-0", module: actorModule("echo") });
  feeder.tell("begin", { generation: 1, ranks: [rank] });
  const next = async (generation: number, split = "train") => {
    const { tensors } = await feeder.ask("next", { ...order, split, generation }, { deadlineMs });
    const batch = attachBatch(tensors, "cpu");
    const tokens = [...(batch.inputIds as Tensor).toTypedArray()];
    disposeBatch(batch);
    return tokens;
  };
  return { system, feeder, rank, next };
}

it("a feeder ends waits for batches with a rank of their generation, and deals to the next generation", async () => {
  const { system, feeder, rank, next } = await startFeeder();
  const dealt = await next(1);
  const refused = expect(next(1, splitOf(1))).rejects.toMatchObject(lost);
  await system.stopActor(rank);
  await refused;
  await expect(next(1)).rejects.toMatchObject(lost);
  expect(await next(2)).toEqual(dealt);
  await expect(next(1)).rejects.toMatchObject(lost);
  const beginMs = performance.now();
  await system.stopActor(feeder);
  // An actor that does not end is ended after 5 s.
  expect(performance.now() - beginMs).toBeLessThan(4_500);
});

it("it keeps nothing of a generation that has ended, and answers none of its questions with what is missing", async () => {
  const { system, feeder, rank, next } = await startFeeder();
  await next(1);
  const numRefs = liveRefs();
  const samples = tagMemory("of the test", () => tensor([[1, 2, 3]], { dtype: "int64" }));
  const owner = recipientName(feeder.address);
  const put = (generation: number, call: number) =>
    feeder.tell("put", {
      generation,
      call,
      batch: { tensors: { ids: shareRef(samples, { owner }) } },
      isCounted: false,
      requests: [{ split: splitOf(call), position: 0, numSamples: 1 }],
    });
  const evaluation = { generation: 1, step: 0, split: "validation", numSamples: 1 };
  const rows = () => ({ logits: shareRef(samples, { owner }) });
  await feeder.ask("predicted", { ...evaluation, position: 0, rows: rows() }, { deadlineMs });
  put(1, 7);
  await system.stopActor(rank);
  put(1, 8);
  await next(2);
  put(1, 9);
  feeder.tell("drop", { generation: 1, call: 7 });
  for (const kind of ["rows", "score"] as const)
    await expect(feeder.ask(kind, evaluation, { deadlineMs })).rejects.toMatchObject(lost);
  await expect(
    feeder.ask("predicted", { ...evaluation, position: 0, rows: rows() }, { deadlineMs }),
  ).rejects.toMatchObject(lost);
  await next(2);
  samples.dispose();
  expect(liveRefs()).toBe(numRefs);
  expect(memory().byTag["of the test"]).toBe(0);
});
