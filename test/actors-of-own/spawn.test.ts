import { EventEmitter, once } from "node:events";
import { arange, Runtime, type TroupeEvent } from "troupe";
import { sentTo } from "troupe/actors";
import { attach, liveTensors, moveRef, shareRef } from "troupe/tensor";
import { expect, onTestFinished, test, vi } from "vitest";
import { patience } from "../fixtures/patience.ts";
import type { Judge } from "./actors/judge.ts";

const module = new URL("./actors/judge.ts", import.meta.url);
const loop = new URL("./actors/loop.ts", import.meta.url);
const init = { word: "good" };
const deadlineMs = 20_000;

/** A runtime that is stopped when the test has finished, and its events. */
async function startRuntime(
  options: Parameters<typeof Runtime.spawn>[0] = {},
): Promise<{ readonly runtime: Runtime; readonly events: readonly TroupeEvent[] }> {
  const runtime = await Runtime.spawn(options);
  const events: TroupeEvent[] = [];
  runtime.events$.subscribe((event) => events.push(event));
  onTestFinished(() => runtime.stop());
  return { runtime, events };
}

/** Spawns a judge that counts the word "good". */
function spawnJudge({ actors }: Runtime, name = "judge") {
  return actors.spawn<Judge, typeof init>({ name, module, role: "judge", init });
}

test.each(["thread", "process", "main"] as const)(
  "an actor of a user's file answers and takes notes (%s)",
  async (placement) => {
    const { actors } = (await startRuntime()).runtime;
    const judge = await actors.spawn<Judge, typeof init>({ name: "judge", module, placement, init });
    judge.tell("note", { text: "first" });
    expect(await judge.ask("mark", { text: "good, very good" }, { deadlineMs })).toBe(2);
    expect(await judge.ask("noted", {}, { deadlineMs })).toEqual(["first"]);
    const other = await actors.spawn<Judge, typeof init>({ name: "other", module, init });
    expect(await other.ask("through", { other: judge, text: "good" }, { deadlineMs })).toBe(1);
  },
);

test("a supervised actor starts again, and one restart too many reaches the script", async () => {
  const { runtime, events } = await startRuntime();
  const news = new EventEmitter();
  const supervisor = await runtime.actors.supervise({
    name: "judges",
    strategy: "one_for_one",
    restarts: 1,
    children: [{ name: "judge", module, role: "judge", init: () => init }],
    onRestart: () => news.emit("restart"),
    onEscalate: (cause) => news.emit("escalate", cause),
  });
  const judge = supervisor.ref<Judge>("judge");
  const restarted = once(news, "restart");
  judge.tell("fall", { why: "once" });
  await restarted;
  expect(await judge.ask("place", {}, { deadlineMs })).toMatchObject({ incarnation: 2 });
  const escalated = once(news, "escalate");
  judge.tell("fall", { why: "twice" });
  expect(await escalated).toMatchObject([{ message: "once" }]);
  const reported = () => events.filter(({ kind }) => kind.startsWith("actor."));
  await vi.waitFor(() => expect(reported()).toHaveLength(5), patience);
  expect(reported()).toMatchObject([
    { kind: "actor.started", actor: "judge", role: "judge" },
    { kind: "actor.failed", cause: { message: "once" } },
    { kind: "actor.started", incarnation: 2 },
    { kind: "actor.restarted", cause: { message: "once" } },
    { kind: "actor.failed", cause: { message: "twice" } },
  ]);
});

test.each(["thread", "process"] as const)(
  "tensors cross without a copy of their memory (%s)",
  async (placement) => {
    const { actors } = (await startRuntime()).runtime;
    const judge = await actors.spawn<Judge, typeof init>({ name: "judge", module, placement, init });
    const before = liveTensors();
    const numbers = arange(1_000);
    const lent = shareRef(numbers, sentTo(judge));
    expect(await judge.ask("sum", { tensor: lent }, { deadlineMs })).toBe(499_500);
    const { tensor } = await judge.ask("square", { tensor: moveRef(numbers, sentTo(judge)) }, { deadlineMs });
    const squares = attach(tensor);
    expect(squares.shape).toEqual([1_000]);
    expect([...squares.toTypedArray()].slice(0, 4)).toEqual(
      [0, 1, 4, 9].map((n) => (squares.dtype === "int64" ? BigInt(n) : n)),
    );
    squares.dispose();
    expect(liveTensors()).toBe(before);
  },
);

test("a tensor on its way to an actor that falls is released", async () => {
  const { runtime } = await startRuntime();
  const judge = await spawnJudge(runtime);
  runtime.actors.watch(judge, () => {});
  const numbers = arange(10);
  judge.tell("endLater", { why: "on purpose" });
  const asked = judge.ask("sum", { tensor: shareRef(numbers, sentTo(judge)) }, { deadlineMs });
  await expect(asked).rejects.toMatchObject({ code: "ACTOR_DOWN" });
  numbers.add_(1); // it would throw while another reads it
  numbers.dispose();
});

test("the runtime's events come as messages, and to the next incarnation", async () => {
  const { runtime } = await startRuntime();
  const supervisor = await runtime.actors.supervise({
    name: "judges",
    strategy: "one_for_one",
    children: [{ name: "judge", module, init: () => init }],
  });
  const judge = supervisor.ref<Judge>("judge");
  runtime.tellEvents(judge, "stepped", { kinds: ["step.finished"] });
  await runtime.run(loop, { steps: 3 });
  expect(await judge.ask("noted", {}, { deadlineMs })).toEqual(
    expect.arrayContaining(["step 1", "step 2", "step 3"]),
  );
  await runtime.run(loop, { steps: 3, fallsAfter: 1, isPatient: true });
  const { incarnation } = await judge.ask("place", {}, { deadlineMs });
  expect(incarnation).toBe(2);
  expect(await judge.ask("noted", {}, { deadlineMs })).toContain("step 3");
});

test("what an actor handles is traced with what made it do so", async () => {
  const { runtime, events } = await startRuntime({ traceEvery: 1 });
  const [judge, other] = [await spawnJudge(runtime), await spawnJudge(runtime, "other")];
  const through = { other: judge, text: "good" };
  await runtime.actors.begin("judging", () => other.ask("through", through, { deadlineMs }));
  await runtime.run(loop, { steps: 2 });
  const spans = () => events.filter((event) => event.kind === "message.handled");
  await vi.waitFor(() => {
    const first = spans().find(({ messageKind }) => messageKind === "through");
    const second = spans().find(({ from }) => from === "other#1");
    expect(second).toMatchObject({ actor: "judge", messageKind: "mark", parentId: first?.spanId });
    expect(second?.traceId).toBe(first?.traceId);
    expect(spans()).toContainEqual(
      expect.objectContaining({ actor: "judge", messageKind: "mark", from: "rank-0#1" }),
    );
  }, patience);
});

test("an actor that starts is as old as its start", async () => {
  const { runtime } = await startRuntime();
  const endless = new URL("../runtime/actors/endless-start.ts", import.meta.url);
  const starting = runtime.actors.spawn({ name: "endless", module: endless, startDeadlineMs: 500 });
  const refused = expect(starting).rejects.toMatchObject({ code: "ACTOR_START_TIMEOUT" });
  await vi.waitFor(() => expect(runtime.inspect()).toMatchObject([{ state: "starting" }]), patience);
  expect(runtime.inspect()[0]?.ageMs).toBeLessThan(60_000);
  await refused;
});

test("an error shows the line of the user's file", async () => {
  const { runtime } = await startRuntime();
  const judge = await spawnJudge(runtime);
  const refused = await judge.ask("refuse", { why: "no" }, { deadlineMs }).catch((error: Error) => error);
  expect(refused).toMatchObject({ code: "ACTOR_THREW", message: "no", fields: { actor: "judge#1" } });
  expect((refused as Error).stack).toMatch(/actors-of-own\/actors\/judge\.ts:\d+/);
});

test("loops reach an actor by name, also when it has started again", async () => {
  const { runtime, events } = await startRuntime({ ranks: 2 });
  const supervisor = await runtime.actors.supervise({
    name: "judges",
    strategy: "one_for_one",
    children: [{ name: "judge", module, init: () => init }],
  });
  const { steps } = await runtime.run(loop, { fallsAfter: 2, isPatient: true });
  expect(steps).toBe(6);
  const finished = events.filter((event) => event.kind === "step.finished");
  expect(finished.map(({ metrics }) => metrics)).toEqual(Array(6).fill({ marks: 2 }));
  const judge = supervisor.ref<Judge>("judge");
  expect(await judge.ask("place", {}, { deadlineMs })).toMatchObject({ incarnation: 2 });
  const notes = await judge.ask("noted", {}, { deadlineMs });
  expect(new Set(notes)).toEqual(new Set(["rank 0", "rank 1"]));
  // The actors outlive the run, and serve the next.
  expect((await runtime.run(loop)).steps).toBe(6);
});

test("a run fails with the end of the actor that its loop has asked", async () => {
  const { runtime } = await startRuntime({ ranks: 2 });
  await runtime.actors.supervise({
    name: "judges",
    strategy: "one_for_one",
    children: [{ name: "judge", module, init: () => init }],
  });
  await expect(runtime.run(loop, { fallsAfter: 2 })).rejects.toMatchObject({
    code: "ACTOR_LOST",
    message: expect.stringMatching(
      /^\[rank\.actor judge\] expected an answer to mark, got the end of judge#1: on purpose/,
    ),
    stack: expect.stringMatching(/actors-of-own\/actors\/loop\.ts:\d+/),
  });
});

test("a name that no actor has is refused with the nearest", async () => {
  const { runtime } = await startRuntime();
  await spawnJudge(runtime);
  await expect(runtime.run(loop, { judge: "jugde" })).rejects.toThrow(
    "[find jugde] expected the name of a living actor, got jugde (did you mean judge?)",
  );
  await expect(runtime.actors.find("nobody", { deadlineMs })).rejects.toMatchObject({
    code: "ACTOR_UNKNOWN",
  });
  const found = await runtime.actors.find<Judge>("judge", { deadlineMs });
  expect(await found.ask("mark", { text: "good" }, { deadlineMs })).toBe(1);
});

test("a runtime that stops in a run ends the user's actors first, and leaves none", async () => {
  const { runtime, events } = await startRuntime();
  await spawnJudge(runtime, "first");
  await spawnJudge(runtime);
  const begun = Promise.withResolvers<void>();
  runtime.once("step.finished", () => begun.resolve());
  const running = runtime.run(loop, { steps: 10_000 }).catch((error: unknown) => error);
  await begun.promise;
  expect(runtime.inspect()).toContainEqual(expect.objectContaining({ actor: "judge", role: "judge" }));
  await runtime.stop();
  expect(await running).toMatchObject({ code: "RUN_STOPPED" });
  expect(runtime.inspect()).toEqual([]);
  const ended = events.filter(({ kind }) => kind === "actor.stopped" || kind === "actor.failed");
  expect(ended.slice(0, 2)).toMatchObject([{ actor: "job-loader" }, { actor: "judge" }]);
  await expect(runtime.actors.spawn({ name: "late", module })).rejects.toMatchObject({
    code: "SYSTEM_STOPPED",
  });
});
