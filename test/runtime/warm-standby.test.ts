import { existsSync, mkdtempSync, readFileSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import type { Worker } from "node:worker_threads";
import { describe, expect, onTestFinished, test } from "vitest";
import type { SupervisorOptions } from "../../src/runtime/index.ts";
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

/** One actor that may have a warm standby, and what is known of the threads and processes that are there for it. */
async function superviseLearner(
  placement: "thread" | "process",
  options: Pick<SupervisorOptions, "warmStandby"> = {},
) {
  const folder = mkdtempSync(join(tmpdir(), "troupe-test-"));
  onTestFinished(() => rmSync(folder, { recursive: true }));
  const path = join(folder, "loaded");
  const workers = new Set<Worker>();
  const enter = (worker: Worker) => {
    workers.add(worker);
    worker.once("exit", () => workers.delete(worker));
  };
  process.on("worker", enter);
  onTestFinished(() => void process.off("worker", enter));
  const { system, log } = startSystem({ preload: new URL("./actors/preload.ts", import.meta.url) });
  const module = new URL(`${actorModule("learner").href}?${path}`);
  const supervisor = await system.supervise({
    name: "group",
    strategy: "one_for_one",
    children: [{ name: "learner", module, placement, standbyModules: [] }],
    ...options,
  });
  const loaders = () => readFileSync(path, "utf8").trim().split("\n");
  const pids = () => loaders().map((line) => Number(line.split(" ")[0]));
  return {
    system,
    supervisor,
    log,
    /** Actors that have loaded their modules, in that order. */
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
