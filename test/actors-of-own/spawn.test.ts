import { EventEmitter, once } from "node:events";
import { Runtime, type TroupeEvent } from "troupe";
import { expect, onTestFinished, test } from "vitest";
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
  const told = events.filter(({ kind }) => kind.startsWith("actor."));
  expect(told.map(({ kind }) => kind)).toEqual([
    "actor.started",
    "actor.failed",
    "actor.started",
    "actor.restarted",
    "actor.failed",
  ]);
  expect(told[1]).toMatchObject({ actor: "judge", role: "judge", cause: { message: "once" } });
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
