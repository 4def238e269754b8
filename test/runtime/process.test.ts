import { spawn, spawnSync } from "node:child_process";
import { once } from "node:events";
import {
  existsSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  readlinkSync,
  statSync,
  writeFileSync,
} from "node:fs";
import { connect } from "node:net";
import { join } from "node:path";
import { createInterface } from "node:readline";
import { expect, onTestFinished, test, vi } from "vitest";
import { HostProcess } from "../../src/runtime/hosting/host-process.ts";
import type { ActorRef, RuntimeEvent } from "../../src/runtime/index.ts";
import { frameHeader } from "../../src/runtime/transport/frame.ts";
import { socketPath } from "../../src/runtime/transport/unix/unix-door.ts";
import type { BlockerProtocol } from "./actors/blocker.ts";
import type { EchoProtocol } from "./actors/echo.ts";
import type { MortalProtocol } from "./actors/mortal.ts";
import type { SinkInit, SinkProtocol } from "./actors/sink.ts";
import { actorModule, startSystem } from "./start-system.ts";

const deadlineMs = 20_000;
const preload = new URL("./actors/preload.ts", import.meta.url);
const module = actorModule("mortal");

/** The folders of systems whose first process has this number. */
function foldersOf(pid: number): string[] {
  return ["/dev/shm", "/tmp"].flatMap((root) =>
    readdirSync(root)
      .filter((name) => name.startsWith("troupe-host-") && name.split("-")[3] === String(pid))
      .map((name) => join(root, name)),
  );
}

function isAlive(pid: number): boolean {
  return existsSync(`/proc/${pid}/stat`);
}

async function until(done: () => boolean): Promise<void> {
  while (!done()) await new Promise(setImmediate);
}

test.each(["SIGKILL", "SIGSEGV", "SIGABRT"] as const)(
  "a process that ends by %s fails its actors with the signal, its last output and each actor's state; other processes go on",
  async (signal) => {
    const { system, log } = startSystem({ preload });
    const place = { placement: "process", process: "doomed" } as const;
    const mortal = await system.spawn<MortalProtocol>({ name: "mortal", module, ...place });
    const beside = await system.spawn<EchoProtocol>({
      name: "beside",
      module: actorModule("echo"),
      ...place,
    });
    const other = await system.spawn<EchoProtocol>({
      name: "other",
      module: actorModule("echo"),
      placement: "process",
    });
    const held = beside.ask("hold", null, { deadlineMs });
    const relayed = other.ask("relayHold", { to: beside }, { deadlineMs });
    mortal.tell("die", { signal, words: "about to break" });
    await expect(held).rejects.toMatchObject({
      code: "ACTOR_DOWN",
      cause: { message: expect.stringContaining(signal) },
    });
    await expect(relayed).rejects.toMatchObject({ code: "ACTOR_DOWN" });
    const failures = log.ofKind("actor.failed");
    expect(failures.map(({ actor }) => actor).toSorted()).toEqual(["beside", "mortal"]);
    for (const { cause } of failures) {
      expect(cause.code).toBe(signal);
      expect(cause.message).toContain("about to break");
    }
    expect(failures.find(({ actor }) => actor === "mortal")?.cause.fields).toMatchObject({
      op: { name: "all_reduce", block: "layers.3", sequence: 1841 },
    });
    expect(await other.ask("echo", 5, { deadlineMs })).toBe(5);
  },
);

test("actors that name one process share it, others do not, and it ends with the last of them", async () => {
  const { system } = startSystem({ preload });
  const places: [string, string][] = [
    ["a", "one"],
    ["b", "one"],
    ["c", "two"],
  ];
  const actors: ActorRef<MortalProtocol>[] = [];
  for (const [name, shared] of places) {
    actors.push(await system.spawn<MortalProtocol>({ name, module, placement: "process", process: shared }));
  }
  const [a = 0, b = 0, c = 0] = await Promise.all(
    actors.map((actor) => actor.ask("pid", null, { deadlineMs })),
  );
  expect(a).toBe(b);
  expect(new Set([a, c, process.pid]).size).toBe(3);
  // Two more Node programs with libtorch: each has some 20 MB of its own at the least.
  expect(system.residentBytes()).toBeGreaterThan(process.memoryUsage.rss() + 2 * 20e6);
  await system.stopActor(actors[0] as ActorRef<MortalProtocol>);
  expect(await actors[1]?.ask("pid", null, { deadlineMs })).toBe(b);
  await system.stopActor(actors[1] as ActorRef<MortalProtocol>);
  await until(() => !isAlive(a));
  expect(isAlive(c)).toBe(true);
});

test("a group of processes is restarted as a group of threads is, and a thread that waits for the dead one goes on at once", async () => {
  const { system, log } = startSystem({ preload });
  const supervisor = await system.supervise({
    name: "group",
    strategy: "one_for_all",
    children: [
      { name: "mortal", module, placement: "process" },
      { name: "blocker", module: actorModule("blocker"), placement: "process" },
    ],
  });
  const mortal = supervisor.ref<MortalProtocol & EchoProtocol>("mortal");
  const firstPid = await mortal.ask("pid", null, { deadlineMs });
  supervisor.ref<BlockerProtocol>("blocker").tell("hang", { on: mortal, forAnswer: true });
  await log.untilEmitted("hangs");
  process.kill(firstPid, "SIGKILL");
  await log.until((event) => event.kind === "actor.restarted" && event.actor === "blocker");
  const secondPid = await mortal.ask("pid", null, { deadlineMs });
  expect(secondPid).not.toBe(firstPid);
  expect(log.ofKind("actor.failed")[0]).toMatchObject({ actor: "mortal", cause: { code: "SIGKILL" } });
});

test("a process's end is reported to each process linked with it, even if they never spoke, and to no other", async () => {
  const { system, log } = startSystem({ preload });
  const order = vi.spyOn(HostProcess.prototype, "order");
  onTestFinished(() => order.mockRestore());
  const place = { placement: "process" } as const;
  const doomed = await system.spawn<MortalProtocol & EchoProtocol>({ name: "doomed", module, ...place });
  const watchers = ["first", "second"];
  for (const name of watchers) {
    const watcher = await system.spawn<SinkProtocol, SinkInit>({
      name,
      module: actorModule("sink"),
      init: {},
      ...place,
    });
    watcher.tell("watchLinked", doomed);
    await log.until((event) => event.kind === "actor.emitted" && event.actor === name);
  }
  for (const name of ["stranger", "other"])
    await system.spawn<EchoProtocol>({ name, module: actorModule("echo"), ...place });
  process.kill(await doomed.ask("pid", null, { deadlineMs }), "SIGKILL");
  const hasHeard = (name: string) => (event: RuntimeEvent) =>
    event.kind === "actor.emitted" && event.actor === name && "down" in (event.event as object);
  for (const name of watchers) await log.until(hasHeard(name));
  const reported = order.mock.calls.flatMap(([{ kind }], call) =>
    kind === "lost" ? (order.mock.contexts[call] as HostProcess).name : [],
  );
  expect(reported.toSorted()).toEqual(watchers);
});

test("nothing is left of processes that are started and killed again and again", async () => {
  const { system, log } = startSystem({ preload });
  const pids: number[] = [];
  let numDescriptors = 0;
  for (let cycle = 0; cycle < 8; cycle++) {
    const mortal = await system.spawn<MortalProtocol>({ name: "mortal", module, placement: "process" });
    const pid = await mortal.ask("pid", null, { deadlineMs });
    pids.push(pid);
    const failed = log.until((event) => event.kind === "actor.failed" && event.incarnation === cycle + 1);
    system.watch(mortal, () => {});
    process.kill(pid, "SIGKILL");
    await failed;
    await until(() => !isAlive(pid));
    // The first cycle opens what lasts: the socket, the shared memory.
    if (cycle === 1) numDescriptors = readdirSync("/proc/self/fd").length;
  }
  expect(readdirSync("/proc/self/fd").length).toBeLessThanOrEqual(numDescriptors);
  const [folder = ""] = foldersOf(process.pid);
  expect(readdirSync(folder).toSorted()).toEqual(["p0.sock", "shared"]);
  await system.stop();
  expect(foldersOf(process.pid)).toEqual([]);
  expect(pids.filter(isAlive)).toEqual([]);
});

test("when the first process is killed its processes end, and their shared memory is removed; until then their output bears their names", async () => {
  const program = spawn(process.execPath, [new URL("./programs/of-processes.ts", import.meta.url).pathname], {
    stdio: ["ignore", "pipe", "inherit"],
  });
  const pid = program.pid as number;
  const lines: string[] = [];
  for await (const line of createInterface({ input: program.stdout })) {
    lines.push(line);
    // The processes write by pipes of their own: no line waits for another's.
    if (lines.length === 3) break;
  }
  const [first, second, last] = lines.toSorted();
  expect([first, second]).toEqual(["[first] hello from first", "[second] hello from second"]);
  const pids = last?.split(" ").slice(1).map(Number) ?? [];
  expect(foldersOf(pid)).toHaveLength(1);
  expect(pids.filter(isAlive)).toHaveLength(2);
  program.kill("SIGKILL");
  await until(() => !pids.some(isAlive) && foldersOf(pid).length === 0);
});

test.skipIf(spawnSync("setpriv", ["--pdeathsig", "USR2", "--", "true"]).status !== 0)(
  "when the first process is killed, processes that still load end with it, at any point",
  async () => {
    const program = spawn(process.execPath, [new URL("./programs/of-loading.ts", import.meta.url).pathname], {
      stdio: ["ignore", "pipe", "inherit"],
    });
    let pid = 0;
    for await (const line of createInterface({ input: program.stdout })) {
      pid = Number(/^\[first\] loads (\d+)$/.exec(line)?.[1]);
      break;
    }
    onTestFinished(() => void (isAlive(pid) && process.kill(pid, "SIGKILL")));
    expect(isAlive(pid)).toBe(true);
    program.kill("SIGKILL");
    await until(() => !isAlive(pid));
  },
);

test("a hanging process is named with its present work, and ended with its actors when one is to stop", async () => {
  const { system, log } = startSystem({ preload });
  const place = { placement: "process", process: "still" } as const;
  const mortal = await system.spawn<MortalProtocol>({ name: "mortal", module, ...place });
  const beside = await system.spawn<EchoProtocol>({ name: "beside", module: actorModule("echo"), ...place });
  const held = beside.ask("hold", null, { deadlineMs });
  const pid = await mortal.ask("pid", null, { deadlineMs });
  mortal.tell("die", { signal: "SIGSTOP", words: "stands still" });
  await until(() => readFileSync(`/proc/${pid}/stat`, "utf8").includes(") T "));
  expect(system.inspect().find(({ actor }) => actor === "mortal")).toMatchObject({
    pid,
    op: { name: "all_reduce", block: "layers.3", sequence: 1841 },
  });
  await system.stopActor(mortal, { deadlineMs: 50 });
  await expect(held).rejects.toMatchObject({
    code: "ACTOR_DOWN",
    cause: { message: expect.stringContaining("SIGKILL") },
  });
  expect(log.ofKind("actor.stopped")).toMatchObject([{ actor: "mortal", forced: true }]);
  expect(isAlive(pid)).toBe(false);
});

test("leftovers of a system that was killed with all its processes are removed by the next", async () => {
  const namespace = readlinkSync("/proc/self/ns/pid").replace(/\D/g, "");
  const dead = spawn("true");
  await once(dead, "exit");
  const left = `/dev/shm/troupe-host-${namespace}-${dead.pid}-1-left`;
  mkdirSync(left);
  writeFileSync(join(left, "p1-0"), "a tensor");
  const { system } = startSystem({ preload });
  await system.spawn<MortalProtocol>({ name: "mortal", module, placement: "process" });
  expect(existsSync(left)).toBe(false);
  expect(foldersOf(process.pid)).toHaveLength(1);
});

test("only processes of the system may connect, and an impossible frame ends the connection before memory is taken", async () => {
  const { system } = startSystem({ preload });
  const echo = await system.spawn<EchoProtocol>({
    name: "echo",
    module: actorModule("echo"),
    placement: "process",
  });
  const [folder = ""] = foldersOf(process.pid);
  expect(statSync(folder).mode & 0o777).toBe(0o700);
  const hugeFrame = frameHeader(0xffff_ffff, 0, 0, 0);
  const strange = new TextEncoder().encode(JSON.stringify([7, "guessed", "nowhere"]));
  for (const said of [hugeFrame, Buffer.concat([frameHeader(strange.length, 0, 0, 0), strange])]) {
    const call = connect(socketPath(folder, 0));
    call.write(said);
    call.resume();
    await once(call, "close");
  }
  expect(await echo.ask("echo", "still served", { deadlineMs })).toBe("still served");
});

test("the variable that starts a process is hidden from the actors in it", async () => {
  const { system } = startSystem({ preload });
  const mortal = await system.spawn<MortalProtocol>({ name: "mortal", module, placement: "process" });
  expect(await mortal.ask("pid", null, { deadlineMs })).not.toBe(process.pid);
  const echo = await system.spawn<EchoProtocol>({
    name: "echo",
    module: actorModule("echo"),
    placement: "process",
    process: "mortal",
  });
  expect(await echo.ask("environmentNames", null, { deadlineMs })).not.toContain("TROUPE_PROCESS");
});

const hugePages = "/sys/kernel/mm/transparent_hugepage/enabled";
const isAsked = existsSync(hugePages) && readFileSync(hugePages, "utf8").includes("[madvise]");

test.runIf(isAsked)("the heap of a process is in huge pages, which libtorch fills as it loads", async () => {
  const { system } = startSystem({ preload });
  const mortal = await system.spawn<MortalProtocol>({ name: "mortal", module, placement: "process" });
  const pid = await mortal.ask("pid", null, { deadlineMs });
  const areas = readFileSync(`/proc/${pid}/smaps`, "utf8").split(/\n(?=[0-9a-f]+-)/);
  const heap = areas.filter((area) => area.includes("[heap]"));
  expect(heap.some((area) => /^VmFlags:.* hg\b/m.test(area))).toBe(true);
});

test("a process that cannot start, and a system without the support for processes, are refused", async () => {
  const { system } = startSystem();
  await expect(system.spawn({ name: "x", module, placement: "process" })).rejects.toMatchObject({
    code: "PROCESS_UNSUPPORTED",
  });
  await expect(system.spawn({ name: "x", module, process: "one" })).rejects.toMatchObject({
    code: "PROCESS_UNSUPPORTED",
  });
  const { system: other } = startSystem({ preload });
  await expect(
    other.spawn({ name: "x", module: new URL("file:///nowhere.ts"), placement: "process" }),
  ).rejects.toMatchObject({ code: "ACTOR_THREW" });
});

test("a host that the system does not have, or of an actor without a process, is refused in one sentence", async () => {
  const { system } = startSystem({ preload });
  const place = { name: "away", module: actorModule("echo") };
  await expect(system.spawn({ ...place, host: 0 })).rejects.toThrow(
    '[spawn away] expected no host with placement "thread", got one (leave it out, or use placement "process")',
  );
  await expect(system.spawn({ ...place, placement: "process", host: 1 })).rejects.toThrow(
    "[spawn away] expected host 0, the only one, got 1",
  );
  const here = await system.spawn({ ...place, placement: "process", host: 0 });
  expect(system.hostOf(here)).toBe(0);
});
