import { expect, test } from "vitest";
import type { ChildSpec, RestartReport, Strategy, Supervisor } from "../../src/runtime/index.ts";
import { FakeClock } from "../fixtures/fake-clock.ts";
import type { ChildInit, ChildProtocol } from "./actors/child.ts";
import type { HolderProtocol } from "./actors/holder.ts";
import { actorModule, type EventLog, startSystem } from "./start-system.ts";

const deadlineMs = 20_000;

function child(name: string, options: Partial<ChildSpec> & { init?: () => ChildInit } = {}): ChildSpec {
  return { name, module: actorModule("child"), placement: "main", init: (): ChildInit => ({}), ...options };
}

/** Makes a child fail and resolves when its supervisor has restarted what the failure took with it. */
async function failAndRecover(
  supervisor: Supervisor,
  name: string,
  recovered: () => Promise<unknown>,
): Promise<void> {
  const done = recovered();
  supervisor.ref<ChildProtocol>(name).tell("fail", `${name} failed`);
  await done;
}

function nextRestart(log: EventLog, name: string, incarnation: number): Promise<unknown> {
  return log.until(
    (event) => event.kind === "actor.restarted" && event.actor === name && event.incarnation === incarnation,
  );
}

interface RestartRow {
  readonly strategy: Strategy;
  readonly fails: string;
  readonly stopped: readonly string[];
  readonly started: readonly string[];
}

const restartTable: readonly RestartRow[] = [
  { strategy: "one_for_one", fails: "a", stopped: [], started: ["a"] },
  { strategy: "one_for_one", fails: "b", stopped: [], started: ["b"] },
  { strategy: "one_for_all", fails: "a", stopped: ["c", "b"], started: ["a", "b", "c"] },
  { strategy: "one_for_all", fails: "c", stopped: ["b", "a"], started: ["a", "b", "c"] },
  { strategy: "rest_for_one", fails: "a", stopped: ["c", "b"], started: ["a", "b", "c"] },
  { strategy: "rest_for_one", fails: "b", stopped: ["c"], started: ["b", "c"] },
  { strategy: "rest_for_one", fails: "c", stopped: [], started: ["c"] },
];

test("DL-11 children of a list are started at once, behind those before them, and stopped at once before those", async () => {
  const { system, log } = startSystem();
  // If two waited for each other, neither would start.
  const startsAfter = (other: string) => ({
    init: () => ({ startsAfter: log.untilEmitted(`start ${other}#1`) }),
  });
  const stopsAfter = (other: string) => ({
    init: () => ({ stopsAfter: log.untilEmitted(`stop ${other}#1`) }),
  });
  const supervisor = await system.supervise({
    name: "group",
    strategy: "one_for_all",
    children: [
      child("first"),
      [child("a", startsAfter("b")), child("b", startsAfter("a"))],
      [child("c", stopsAfter("d")), child("d", stopsAfter("c"))],
    ],
  });
  expect(log.emitted).toEqual(["first", "a", "b", "c", "d"].map((name) => `start ${name}#1`));
  await supervisor.stop();
  const stopped = log.emitted.filter((text) => String(text).startsWith("stop"));
  expect(stopped).toEqual(["d", "c", "b", "a", "first"].map((name) => `stop ${name}#1`));
});

test("DL-11 where some of a list cannot start, all that were started stop, and the first one's error is thrown", async () => {
  const { system, log } = startSystem();
  const fails = { init: () => ({ failStartFrom: 1 }) };
  const starting = system.supervise({
    name: "group",
    strategy: "one_for_all",
    children: [child("first"), [child("a"), child("b", fails), child("c", fails), child("d")], child("last")],
  });
  await expect(starting).rejects.toThrow("b cannot start");
  expect(log.emitted).toEqual([
    ...["first", "a", "d"].map((name) => `start ${name}#1`),
    ...["d", "a", "first"].map((name) => `stop ${name}#1`),
  ]);
  expect(system.inspect()).toEqual([]);
});

test("DL-11 a list is restarted together, and one of it that cannot start is a failure like any other", async () => {
  const { system, log } = startSystem();
  const escalated = Promise.withResolvers<string>();
  const supervisor = await system.supervise({
    name: "group",
    strategy: "one_for_all",
    restarts: 1,
    children: [[child("a"), child("b", { init: () => ({ failStartFrom: 3 }) })]],
    onEscalate: (cause) => escalated.resolve(cause.message),
  });
  await failAndRecover(supervisor, "a", () => nextRestart(log, "b", 2));
  supervisor.forgiveRestarts();
  supervisor.ref<ChildProtocol>("a").tell("fail", "again");
  expect(await escalated.promise).toBe("again");
  expect(system.inspect()).toEqual([]);
});

test.each(restartTable)(
  "DL-11 $strategy: when $fails fails, stops $stopped in reverse order and starts $started",
  (row) => expectRestart(row),
);

test.each([
  { fails: "b", stopped: ["c"], started: ["b", "c"] },
  { fails: "a", stopped: ["c", "b"], started: ["a", "b", "c"] },
])(
  "DL-11 one_for_all, where a outlives the others: when $fails fails, stops $stopped and starts $started",
  (row) => expectRestart({ strategy: "one_for_all", ...row }, "a"),
);

async function expectRestart(row: RestartRow, outliving?: string): Promise<void> {
  const { system, log } = startSystem();
  const reports: RestartReport[] = [];
  const supervisor = await system.supervise({
    name: "group",
    strategy: row.strategy,
    children: ["a", "b", "c"].map((name) => ({ ...child(name), outlives: name === outliving })),
    onRestart: (report) => reports.push(report),
  });
  const before = log.emitted.length;
  await failAndRecover(supervisor, row.fails, () => nextRestart(log, row.started.at(-1) as string, 2));
  expect(log.emitted.slice(before)).toEqual([
    ...row.stopped.map((name) => `stop ${name}#1`),
    ...row.started.map((name) => `start ${name}#2`),
  ]);
  await new Promise(setImmediate);
  expect(reports).toMatchObject([
    { child: row.fails, restarted: row.started, cause: { message: `${row.fails} failed` } },
  ]);
}

test("DL-11 a restart on purpose leaves out a child that outlives the others, as long as it says so", async () => {
  const { system, log } = startSystem();
  let goesOn = true;
  const supervisor = await system.supervise({
    name: "group",
    strategy: "one_for_all",
    children: [child("a", { outlives: () => goesOn }), child("b")],
  });
  const before = log.emitted.length;
  await supervisor.restart();
  expect(log.emitted.slice(before)).toEqual(["stop b#1", "start b#2"]);
  goesOn = false;
  await supervisor.restart();
  expect(log.emitted.slice(before + 2)).toEqual(["stop b#2", "stop a#1", "start a#2", "start b#3"]);
});

test("DL-11 a child that outlives others and was stopped is started even if one before it cannot start at first", async () => {
  const { system } = startSystem();
  const restarted = Promise.withResolvers<RestartReport>();
  const init = (incarnation: number): ChildInit => (incarnation === 2 ? { failStartFrom: 2 } : {});
  const supervisor = await system.supervise({
    name: "group",
    strategy: "one_for_all",
    children: [{ ...child("a"), init }, child("b", { outlives: true })],
    onRestart: restarted.resolve,
  });
  supervisor.ref<ChildProtocol>("b").tell("fail", "b failed");
  expect(await restarted.promise).toMatchObject({ child: "a", restarted: ["a", "b"] });
  expect(await supervisor.ref<ChildProtocol>("b").ask("incarnation", null, { deadlineMs })).toBe(2);
});

test("DL-11 starts children in order and stops them in the reverse of it", async () => {
  const { system, log } = startSystem();
  const supervisor = await system.supervise({
    name: "group",
    strategy: "one_for_one",
    children: ["a", "b", "c"].map((name) => child(name)),
  });
  await supervisor.stop();
  const order = ["start a#1", "start b#1", "start c#1", "stop c#1", "stop b#1", "stop a#1"];
  expect(log.emitted).toEqual(order);
});

test("DL-11 a transient child that finishes stays away, a permanent one comes back, a temporary one never does", async () => {
  const { system, log } = startSystem();
  const supervisor = await system.supervise({
    name: "group",
    strategy: "one_for_one",
    children: [
      child("passing", { restart: "transient" }),
      child("brief", { restart: "temporary" }),
      child("lasting", { restart: "permanent" }),
    ],
  });
  supervisor.ref<ChildProtocol>("passing").tell("finish", null);
  await log.until((event) => event.kind === "actor.stopped" && event.actor === "passing");
  supervisor.ref<ChildProtocol>("brief").tell("fail", "brief failed");
  await log.until((event) => event.kind === "actor.failed" && event.actor === "brief");
  supervisor.ref<ChildProtocol>("lasting").tell("finish", null);
  await nextRestart(log, "lasting", 2);
  expect(log.ofKind("actor.restarted").map(({ actor }) => actor)).toEqual(["lasting"]);
});

test("DL-11 a child that cannot start stops those before it and is reported to the caller", async () => {
  const { system, log } = startSystem();
  const children = [child("a"), child("b", { init: () => ({ failStartFrom: 1 }) })];
  const starting = system.supervise({ name: "group", strategy: "one_for_one", children });
  await expect(starting).rejects.toThrow("b cannot start");
  expect(log.emitted).toEqual(["start a#1", "stop a#1"]);
});

test("DL-11 a child that fails while those after it start for the first time is restarted once they have", async () => {
  const { system, log } = startSystem();
  const gate = Promise.withResolvers<void>();
  const starting = system.supervise({
    name: "group",
    strategy: "one_for_all",
    children: [child("a"), child("b", { init: () => ({ startsAfter: gate.promise }) }), child("c")],
  });
  await log.untilEmitted("start b#1");
  const a = await system.find<ChildProtocol>("a", { deadlineMs });
  a.tell("fail", "a failed");
  await log.until(({ kind }) => kind === "actor.failed");
  gate.resolve();
  await starting;
  await nextRestart(log, "c", 2);
  expect(log.emitted).toEqual([
    ...["start a#1", "start b#1", "start c#1", "stop c#1", "stop b#1"],
    ...["start a#2", "start b#2", "start c#2"],
  ]);
});

test("DL-12 restarts at most as often as the window allows, then gives up with the first cause", async () => {
  const clock = new FakeClock();
  const { system, log } = startSystem({ clock });
  const gaveUp = Promise.withResolvers<{ first: string; all: string[] }>();
  const supervisor = await system.supervise({
    name: "group",
    strategy: "one_for_one",
    restarts: 2,
    withinMs: 1_000,
    children: [child("a"), child("b")],
    onEscalate: (cause, failures) =>
      gaveUp.resolve({ first: cause.message, all: failures.map(({ message }) => message) }),
  });
  const fail = (text: string): boolean => supervisor.ref<ChildProtocol>("a").tell("fail", text);
  fail("first");
  await nextRestart(log, "a", 2);
  clock.advance(999);
  fail("second");
  await nextRestart(log, "a", 3);
  clock.advance(1);
  fail("third, when the first is too old to count");
  await nextRestart(log, "a", 4);
  fail("fourth");
  expect((await gaveUp.promise).all.at(-1)).toBe("fourth");
  expect((await gaveUp.promise).first).toBe("second");
  expect(log.emitted.filter((text) => String(text).startsWith("start a"))).toHaveLength(4);
  expect(log.emitted.at(-1)).toBe("stop b#1");
});

test("DL-12 a child that fails at each restart uses the window up", async () => {
  const { system } = startSystem();
  const gaveUp = Promise.withResolvers<string>();
  const supervisor = await system.supervise({
    name: "group",
    strategy: "one_for_one",
    restarts: 3,
    children: [child("a", { init: () => ({ failStartFrom: 2 }) })],
    onEscalate: (cause, failures) => gaveUp.resolve(`${cause.message}, then ${failures.length - 1} more`),
  });
  supervisor.ref<ChildProtocol>("a").tell("fail", "first");
  expect(await gaveUp.promise).toBe("first, then 3 more");
});

test("DL-12 waits longer before each restart of a window, and not at all once forgiven", async () => {
  const clock = new FakeClock();
  const { system, log } = startSystem({ clock });
  const supervisor = await system.supervise({
    name: "group",
    strategy: "one_for_one",
    restarts: 10,
    backoff: { firstMs: 100, maxMs: 250 },
    children: [child("a")],
  });
  for (const [index, waitMs] of [100, 200, 250].entries()) {
    supervisor.ref<ChildProtocol>("a").tell("fail", "again");
    await log.until((event) => event.kind === "actor.failed" && event.incarnation === index + 1);
    await new Promise(setImmediate);
    clock.advance(waitMs - 1);
    await new Promise(setImmediate);
    expect(log.ofKind("actor.restarted")).toHaveLength(index);
    clock.advance(1);
    await nextRestart(log, "a", index + 2);
  }
  supervisor.forgiveRestarts();
  supervisor.ref<ChildProtocol>("a").tell("fail", "much later");
  await log.until((event) => event.kind === "actor.failed" && event.incarnation === 4);
  await new Promise(setImmediate);
  clock.advance(100);
  await nextRestart(log, "a", 5);
});

test("DL-24 a restart is another incarnation: what was meant for the old one becomes a dead letter", async () => {
  const { system, log } = startSystem();
  const supervisor = await system.supervise({
    name: "group",
    strategy: "one_for_one",
    children: [child("a", { placement: "thread" })],
  });
  const handle = supervisor.ref<ChildProtocol>("a");
  const stale = await system.spawn<HolderProtocol>({
    name: "holder",
    module: actorModule("holder"),
    placement: "main",
  });
  stale.tell("pass", { to: handle, note: "to the first" });
  await log.untilEmitted("a#1 to the first");
  const oldAddress = handle.address;
  await failAndRecover(supervisor, "a", () => nextRestart(log, "a", 2));
  expect(handle.address.uid).not.toBe(oldAddress.uid);
  stale.tell("pass", { to: null, note: "to the first again" });
  const letter = await log.until((event) => event.kind === "message.undelivered");
  expect(letter).toMatchObject({ reason: "Stopped", to: "a#1", messageKind: "note" });
  expect(await handle.ask("incarnation", null, { deadlineMs })).toBe(2);
  expect(log.emitted).not.toContain("a#2 to the first again");
});

test("a supervisor's options are checked before anything starts", async () => {
  const { system, log } = startSystem();
  const base = { name: "group", strategy: "one_for_one" } as const;
  for (const bad of [
    { children: [child("a"), child("a")] },
    { children: [child("a", { outlives: true })] },
    { children: [], restarts: -1 },
    { children: [], withinMs: 0 },
  ]) {
    await expect(system.supervise({ ...base, ...bad })).rejects.toMatchObject({ code: "SUPERVISOR_OPTION" });
  }
  expect(log.events).toEqual([]);
  const group = await system.supervise({ ...base, children: [child("a")] });
  expect(() => group.ref("b")).toThrow(expect.objectContaining({ code: "SUPERVISOR_OPTION" }));
});

test("children can be restarted on purpose: that counts as no failure", async () => {
  const { system, log } = startSystem();
  const reports: RestartReport[] = [];
  const supervisor = await system.supervise({
    name: "group",
    strategy: "one_for_all",
    restarts: 0,
    children: [child("a"), child("b")],
    onRestart: (report) => reports.push(report),
  });
  await supervisor.restart();
  await Promise.all([supervisor.restart(), supervisor.restart()]);
  expect(log.emitted).toEqual([
    ...["start a#1", "start b#1", "stop b#1", "stop a#1"],
    ...["start a#2", "start b#2", "stop b#2", "stop a#2", "start a#3", "start b#3"],
  ]);
  expect(reports.map(({ restarted, cause }) => [restarted, cause])).toEqual([
    [["a", "b"], undefined],
    [["a", "b"], undefined],
  ]);
});
