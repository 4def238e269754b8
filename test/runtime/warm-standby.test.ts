import { existsSync, mkdtempSync, readFileSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import type { Worker } from "node:worker_threads";
import { describe, expect, onTestFinished, test, vi } from "vitest";
import type { ChildSpec, SupervisorOptions } from "../../src/runtime/index.ts";
import { patience } from "../fixtures/patience.ts";
import { startedBy } from "../fixtures/started-by.ts";
import type { LearnerProtocol } from "./actors/learner.ts";
import { actorModule, startSystem } from "./start-system.ts";

const deadlineMs = 20_000;

describe.each(["thread", "process"] as const)("a warm standby of an actor with placement %s", (placement) => {
  test("has loaded the modules before it is needed, and is whom the actor is started again on", async () => {
    const { supervisor, log, loaders } = await superviseLearner(placement);
    const [first] = loaders();
    expect(supervisor.prepareStandby()).toBe(true);
    expect(supervisor.prepareStandby()).toBe(false); // one is enough
    await until(() => loaders().length === 2);
    const [, second] = loaders();
    const ref = supervisor.ref<LearnerProtocol>("learner");
    expect(await ref.ask("where", null, { deadlineMs })).toBe(first);
    ref.tell("fail", null);
    await log.until(({ kind }) => kind === "actor.restarted");
    expect(await ref.ask("where", null, { deadlineMs })).toBe(second);
    expect(loaders()).toHaveLength(2); // nothing was loaded once more
    expect(supervisor.prepareStandby()).toBe(true); // the next life has nobody yet
  });

  test("a standby that ends is no failure: the actor lives, and is started again without it", async () => {
    const { supervisor, log, loaders, endNewest } = await superviseLearner(placement);
    supervisor.prepareStandby();
    await until(() => loaders().length === 2);
    await endNewest();
    expect(supervisor.prepareStandby()).toBe(false); // what ended it may end the next one too
    expect(log.ofKind("actor.failed")).toEqual([]);
    const ref = supervisor.ref<LearnerProtocol>("learner");
    ref.tell("fail", null);
    await log.until(({ kind }) => kind === "actor.restarted");
    expect(await ref.ask("where", null, { deadlineMs })).toBe(loaders()[2]);
  });

  test("is always there where the supervisor is to keep one, also for the next life", async () => {
    const { supervisor, log, loaders } = await superviseLearner(placement, { warmStandby: true });
    await until(() => loaders().length === 2);
    const ref = supervisor.ref<LearnerProtocol>("learner");
    for (let life = 1; life <= 2; life++) {
      ref.tell("fail", null);
      await log.until((event) => event.kind === "actor.restarted" && event.incarnation === life + 1);
      expect(await ref.ask("where", null, { deadlineMs })).toBe(loaders()[life]);
      await until(() => loaders().length === life + 2);
    }
  });

  test("ends with its system, also while it still loads", async () => {
    const { system, supervisor, loaders, running } = await superviseLearner(placement);
    supervisor.prepareStandby();
    await system.stop();
    expect(running()).toBe(0);
    expect(loaders().length).toBeLessThanOrEqual(2);
    expect(supervisor.prepareStandby()).toBe(false);
  });
});

describe("processes of a group that starts again together", () => {
  test.each([
    ["that loaded modules in advance", { standbyModules: [] }],
    ["that load theirs now", {}],
  ])("go on with new threads %s, but for that in which an actor has failed", async (_, place) => {
    const { supervisor, restarts, loaders, whereAll } = await superviseGroup(place);
    const lives = [await whereAll()];
    for (const failing of [1, 0, 0]) {
      supervisor.ref<LearnerProtocol>(`learner-${failing}`).tell("fail", null);
      await restarts(3 * lives.length);
      lives.push(await whereAll());
      const [before = [], after = []] = lives.slice(-2);
      expect(after.map((where, at) => pidOf(where) === pidOf(before[at]))).toEqual(
        before.map((_, at) => at !== failing),
      );
      expect(existsSync(`/proc/${pidOf(before[failing])}`)).toBe(false);
    }
    // Each has a thread of its own, and no other has loaded the module.
    expect(new Set(lives.flat()).size).toBe(12);
    expect(loaders().toSorted()).toEqual(lives.flat().toSorted());
  });

  test("are replaced where one was killed, and where each incarnation is to have a new one", async () => {
    const { restarts, whereAll } = await superviseGroup({ standbyModules: [], freshProcess: true });
    const before = await whereAll();
    process.kill(pidOf(before[0]), "SIGKILL");
    await restarts(3);
    const pids = [...before, ...(await whereAll())].map(pidOf);
    expect(new Set(pids).size).toBe(6);
    await until(() => pids.filter((pid) => existsSync(`/proc/${pid}`)).length === 3);
  });

  test("give way to standbys that are ready, and end with them when the group is given up", async () => {
    const { supervisor, restarts, loaders, whereAll } = await superviseGroup(
      { standbyModules: [] },
      { restarts: 1 },
    );
    const before = await whereAll();
    while (supervisor.prepareStandby());
    await until(() => loaders().length === 6);
    supervisor.ref<LearnerProtocol>("learner-2").tell("fail", null);
    await restarts(3);
    const after = await whereAll();
    expect(loaders().slice(3).toSorted()).toEqual(after.toSorted());
    supervisor.ref<LearnerProtocol>("learner-2").tell("fail", null);
    const pids = [...before, ...after].map(pidOf);
    await until(() => pids.every((pid) => !existsSync(`/proc/${pid}`)));
    expect(loaders()).toHaveLength(6);
  });

  test("end standbys that still load and are not needed, and get others later", async () => {
    const { supervisor, restarts, loaders, whereAll } = await superviseGroup({ standbyModules: [] });
    const before = (await whereAll()).map(pidOf);
    while (supervisor.prepareStandby());
    await until(() => childPids().length === 6);
    const standbys = childPids().slice(3);
    // The standbys of the first two take for ever.
    for (const pid of standbys.slice(0, 2)) process.kill(pid, "SIGSTOP");
    process.kill(before[2] as number, "SIGKILL");
    await restarts(3);
    const after = [before[0], before[1], standbys[2]];
    expect((await whereAll()).map(pidOf)).toEqual(after);
    await until(() => childPids().length === 3);
    expect(loaders()).toHaveLength(6);
    expect(supervisor.prepareStandby()).toBe(true);
  });
});

/** A system, the module of its actors, and where those live that have loaded it, in that order. */
function startLearners() {
  const folder = mkdtempSync(join(tmpdir(), "troupe-test-"));
  onTestFinished(() => rmSync(folder, { recursive: true }));
  const path = join(folder, "loaded");
  return {
    ...startSystem({ preload: new URL("./actors/preload.ts", import.meta.url) }),
    module: new URL(`${actorModule("learner").href}?${path}`),
    loaders: () => readFileSync(path, "utf8").trim().split("\n"),
  };
}

/** Three actors that start again together, each in a process of its own, and those that have loaded their module. */
async function superviseGroup(
  place: Pick<ChildSpec, "standbyModules" | "freshProcess">,
  options: Pick<SupervisorOptions, "restarts"> = {},
) {
  const { system, log, module, loaders } = startLearners();
  const names = ["learner-0", "learner-1", "learner-2"];
  const supervisor = await system.supervise({
    name: "group",
    strategy: "one_for_all",
    children: [names.map((name) => ({ name, module, placement: "process", ...place }))],
    onEscalate: () => {},
    ...options,
  });
  const refs = names.map((name) => supervisor.ref<LearnerProtocol>(name));
  return {
    supervisor,
    /** Resolves once so many actors have been restarted. */
    restarts: (count: number) => log.until(() => log.ofKind("actor.restarted").length >= count),
    loaders,
    whereAll: () => Promise.all(refs.map((ref) => ref.ask("where", null, { deadlineMs }))),
  };
}

const pidOf = (where: string | undefined) => Number(where?.split(" ")[0]);

/** The processes for actors that this one has, in the order in which they were started. */
const childPids = (): readonly number[] =>
  startedBy(process.pid)
    .filter(isOfActors)
    .toSorted((a, b) => a - b);

function isOfActors(pid: number): boolean {
  try {
    return readFileSync(`/proc/${pid}/cmdline`, "utf8").includes("process-entry");
  } catch {
    return false; // it has ended meanwhile
  }
}

/** One actor that may have a warm standby, and what is known of the threads and processes that are there for it. */
async function superviseLearner(
  placement: "thread" | "process",
  options: Pick<SupervisorOptions, "warmStandby"> = {},
) {
  const workers = new Set<Worker>();
  const enter = (worker: Worker) => {
    workers.add(worker);
    worker.once("exit", () => workers.delete(worker));
  };
  process.on("worker", enter);
  onTestFinished(() => void process.off("worker", enter));
  const { system, log, module, loaders } = startLearners();
  const supervisor = await system.supervise({
    name: "group",
    strategy: "one_for_one",
    children: [{ name: "learner", module, placement, standbyModules: [] }],
    ...options,
  });
  const pids = () => loaders().map((line) => Number(line.split(" ")[0]));
  return {
    system,
    supervisor,
    log,
    loaders,
    /** How many of the threads and processes there are. */
    running: () =>
      placement === "thread" ? workers.size : pids().filter((pid) => existsSync(`/proc/${pid}`)).length,
    /** Ends the thread or process that was the last to load its module. */
    async endNewest(): Promise<void> {
      if (placement === "thread") await [...workers].at(-1)?.terminate();
      else {
        const pid = pids().at(-1) ?? 0;
        process.kill(pid, "SIGKILL");
        await until(() => !existsSync(`/proc/${pid}`));
      }
      await new Promise(setImmediate);
    },
  };
}

async function until(done: () => boolean): Promise<void> {
  while (!done()) await new Promise(setImmediate);
}

test("an actor whose arguments cannot be copied leaves no thread behind", async () => {
  const workers: Worker[] = [];
  const enter = (worker: Worker) => void workers.push(worker);
  process.on("worker", enter);
  onTestFinished(() => void process.off("worker", enter));
  const { system } = startSystem();
  const init = () => {};
  await expect(system.spawn({ name: "echo", module: actorModule("echo"), init })).rejects.toThrow(
    /could not be cloned/,
  );
  await new Promise(setImmediate);
  expect(workers).toHaveLength(1);
  // A thread that has ended has no number.
  await vi.waitFor(() => expect(workers[0]?.threadId).toBe(-1), patience);
});
