import { readFileSync, renameSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import type { Worker } from "node:worker_threads";
import type { Runtime } from "../../src/entries/index.ts";
import type { Chance } from "./chance.ts";
import { editJob } from "./edited-files.ts";

/** Where ranks live. */
export type Placement = "thread" | "process";

/** A run that can be struck. */
export interface Target {
  readonly runtime: Runtime;
  readonly chance: Chance;
  readonly threads: ActorThreads;
  /** The folder that the job `struck` looks into. */
  readonly strikes: string;
  /** The file of the job, which only imports the job `struck`. */
  readonly job: string;
  /** The text that it trains on. */
  readonly text: string;
}

/** A fault of an actor, a process, or a rank in the middle of its forward. */
export interface Fault {
  readonly name: string;
  readonly placements: readonly Placement[];
  /** @returns the name of the struck actor; undefined if none could be struck at the moment */
  strike(target: Target): string | undefined;
}

const everywhere: readonly Placement[] = ["thread", "process"];

/** Every fault of the chaos, in the order of the table. */
export const faults: readonly Fault[] = [
  {
    name: "an actor's thread ends",
    placements: everywhere,
    strike: ({ chance, threads }) => threads.endOne(chance),
  },
  { name: "the job leaves its thread", placements: everywhere, strike: (target) => order(target, "exit") },
  {
    name: "an actor throws where nobody catches it",
    placements: everywhere,
    strike: (target) => order(target, "throw"),
  },
  {
    name: "an actor rejects where nobody looks",
    placements: everywhere,
    strike: (target) => order(target, "reject"),
  },
  { name: "a rank waits for ever", placements: everywhere, strike: (target) => order(target, "hang") },
  {
    name: "the job is edited, broken or removed, and it leaves its thread",
    placements: everywhere,
    strike(target) {
      editJob(target.job, target.chance);
      return order(target, "exit");
    },
  },
  {
    name: "the data is written again with the same bytes, and the job leaves its thread",
    placements: everywhere,
    strike(target) {
      const { text } = target;
      writeFileSync(`${text}.new`, readFileSync(text));
      renameSync(`${text}.new`, text);
      return order(target, "exit");
    },
  },
  {
    name: "native code blocks for 0.3 s",
    placements: everywhere,
    strike: (target) => order(target, "block"),
  },
  ...(["SIGKILL", "SIGSEGV", "SIGABRT"] as const).map((signal) =>
    onProcess(`a process ends by ${signal}`, signal),
  ),
  onProcess("a process stands still", "SIGSTOP"),
  {
    name: "a process stands still for 0.3 s",
    placements: ["process"],
    strike(target) {
      const pid = pidOfRank(target);
      if (pid === undefined) return undefined;
      if (!signalIfAlive(pid, "SIGSTOP")) return undefined;
      setTimeout(() => signalIfAlive(pid, "SIGCONT"), 300);
      return `process ${pid}`;
    },
  },
];

/** The threads of actors that live in this process, as Node tells of them. */
export class ActorThreads implements Disposable {
  readonly #workers = new Set<Worker>();
  readonly #enter = (worker: Worker): void => {
    this.#workers.add(worker);
    worker.once("exit", () => this.#workers.delete(worker));
  };

  constructor() {
    process.on("worker", this.#enter);
  }

  /**
   * Ends one of them, whatever it does: of two of one name the elder lives, and the other waits to take its place.
   * @param cast - matches the names of those that it may be. Default: all of a run
   */
  endOne(chance: Chance, cast = CAST): string | undefined {
    const living = new Map(
      [...this.#workers].toReversed().map((worker) => [worker.threadName ?? "", worker]),
    );
    const named = [...living.values()].filter(({ threadName }) => cast.test(threadName ?? ""));
    if (named.length === 0) return undefined;
    const worker = chance.pick(named);
    void worker.terminate();
    return worker.threadName ?? undefined;
  }

  [Symbol.dispose](): void {
    process.off("worker", this.#enter);
  }
}

const CAST = /^(rank|shard|offload)-\d+$|^(feeder|checkpointer)$/;

function onProcess(name: string, signal: NodeJS.Signals): Fault {
  return {
    name,
    placements: ["process"],
    strike(target) {
      const pid = pidOfRank(target);
      return pid !== undefined && signalIfAlive(pid, signal) ? `process ${pid}` : undefined;
    },
  };
}

function pidOfRank({ runtime, chance }: Target): number | undefined {
  const pids = runtime.inspect().flatMap(({ pid }) => (pid === process.pid ? [] : [pid]));
  return pids.length === 0 ? undefined : chance.pick(pids);
}

function signalIfAlive(pid: number, signal: NodeJS.Signals): boolean {
  try {
    return process.kill(pid, signal);
  } catch {
    return false; // it has ended meanwhile, of another fault
  }
}

function order({ runtime, chance, strikes }: Target, what: string): string | undefined {
  const ranks = runtime.inspect().filter(({ actor }) => actor.startsWith("rank-"));
  if (ranks.length === 0) return undefined;
  const { actor } = chance.pick(ranks);
  writeFileSync(join(strikes, actor), what);
  return actor;
}
