import { type ChildProcess, fork } from "node:child_process";
import { once } from "node:events";
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { Worker } from "node:worker_threads";
import type { Backend } from "../../src/compute/collectives/index.ts";
import type { DeviceKind } from "../../src/compute/tensor/index.ts";
import type { Assignment, Outcome } from "../fixtures/collectives/member.ts";
import type { ScenarioName } from "../fixtures/collectives/scenarios.ts";

const script = new URL("../fixtures/collectives/member.ts", import.meta.url);

/** How the ranks of a contract are placed. */
export interface Setting {
  readonly backend: Backend;
  readonly placement: "thread" | "process";
  /** Each rank computes on the device of its number, of this kind. The host by default. */
  readonly onDevices?: DeviceKind;
  /** As `CommunicatorOptions` has them. */
  readonly checked?: boolean;
  readonly reduction?: "ordered" | "direct";
}

/** Beside the scenario itself. */
export interface GroupOptions {
  readonly argument?: unknown;
  readonly deadlineMs?: number;
  /** Instead of a file for processes, nothing for threads. */
  readonly rendezvous?: string;
}

/** No two groups of this process have one name. */
let numGroups = 0;

/** Threads or processes that each play one rank, kept from test to test. */
export class Members {
  readonly #setting: Setting;
  readonly #members: (Worker | ChildProcess)[] = [];
  readonly #folder = mkdtempSync(join(tmpdir(), "troupe-collectives-"));

  constructor(setting: Setting) {
    this.#setting = setting;
  }

  /** Runs one scenario on `size` ranks of a new group. @returns the results, by rank */
  async run(scenario: ScenarioName, size: number, options: GroupOptions = {}): Promise<Outcome[]> {
    return await Promise.all(this.start(scenario, size, options).outcomes);
  }

  /**
   * The same where ranks may differ or die: the group's name, and for each scenario the outcome of its rank, `ENDED` when
   * the rank has. Where there are fewer scenarios than ranks, the last ones are the caller's to play.
   */
  start(
    scenario: ScenarioName | readonly ScenarioName[],
    size: number,
    { argument, deadlineMs = 20_000, rendezvous }: GroupOptions = {},
  ): { readonly name: string; readonly outcomes: Promise<Outcome>[] } {
    const name = `group-${process.pid}-${numGroups++}`;
    const { backend, placement, onDevices, checked = false, reduction = "ordered" } = this.#setting;
    const address = rendezvous ?? (placement === "process" ? join(this.#folder, name) : "");
    const numMembers = typeof scenario === "string" ? size : scenario.length;
    const outcomes = Array.from({ length: numMembers }, (_, rank) => {
      const assignment: Assignment = {
        backend,
        name,
        rank,
        size,
        deadlineMs,
        checked,
        reduction,
        argument,
        device: onDevices === undefined ? "cpu" : `${onDevices}:${rank}`,
        scenario: typeof scenario === "string" ? scenario : (scenario[rank] as ScenarioName),
        rendezvous: address,
      };
      return this.#assign(rank, assignment);
    });
    return { name, outcomes };
  }

  /** Ends one rank at once: a thread by force, a process by SIGKILL. */
  async kill(rank: number): Promise<void> {
    const member = this.#members[rank];
    if (member instanceof Worker) await member.terminate();
    else if (member?.kill("SIGKILL") === true) await once(member, "exit");
  }

  async stop(): Promise<void> {
    await Promise.all(this.#members.map((_, rank) => this.kill(rank)));
    rmSync(this.#folder, { recursive: true });
  }

  async #assign(rank: number, assignment: Assignment): Promise<Outcome> {
    const member = this.#member(rank);
    const ended = new AbortController();
    const signal = ended.signal;
    const answer = once(member, "message", { signal });
    const end = once(member, "exit", { signal });
    if (member instanceof Worker) member.postMessage(assignment);
    else member.send(assignment);
    const first = await Promise.race([
      answer.then(([outcome]: Outcome[]) => outcome),
      end.then(
        () => undefined,
        () => undefined,
      ),
    ]);
    ended.abort();
    await Promise.allSettled([answer, end]);
    if (first === undefined) {
      delete this.#members[rank];
      return { code: "ENDED", message: `rank ${rank} has ended` };
    }
    return first;
  }

  #member(rank: number): Worker | ChildProcess {
    const present = this.#members[rank];
    if (present !== undefined) return present;
    const made =
      this.#setting.placement === "thread" ? new Worker(script) : fork(script, { serialization: "advanced" });
    this.#members[rank] = made;
    return made;
  }
}

/** The values of outcomes that must all be successes. */
export function valuesOf<Value>(outcomes: readonly Outcome[]): Value[] {
  return outcomes.map((outcome) => {
    if ("code" in outcome) throw new Error(outcome.message);
    return outcome.value as Value;
  });
}
