import { mkdirSync } from "node:fs";
import { setTimeout as pause } from "node:timers/promises";
import { openStorage, verifyCheckpoint } from "../../src/library/checkpoint/index.ts";
import { lossesOf, type Workspace } from "../fixtures/run-tiny.ts";
import { startedBy } from "../fixtures/started-by.ts";
import { LaunchedRun } from "../launch/launched-hosts.ts";
import { TwoHosts } from "../launch/namespaces.ts";
import type { Chance } from "./chance.ts";
import { possessions } from "./leftovers.ts";

const STEPS = 14;
const SAVE_EVERY = 2;
/** Far longer than a run and its faults take on a busy machine: a program that is not done by then hangs. */
const HANG_MS = 240_000;
/** How far apart the things that happen to one run are, in steps, at most. */
const MOST_STEPS_APART = 4;

const faults = {
  "the host's program killed": ({ member }: Struck) => void member.child.kill("SIGKILL"),
  "the head's program killed": ({ head }: Struck) => void head.child.kill("SIGKILL"),
  "a rank's process killed": ({ chance, head, member }: Struck) =>
    signal(pick(chance, ranksOf([head, member])), "SIGKILL"),
  "a rank's process stopped for a while": async ({ chance, head, member }: Struck) => {
    const pid = pick(chance, ranksOf([head, member]));
    signal(pid, "SIGSTOP");
    await pause(200 + chance.below(3_300));
    signal(pid, "SIGCONT");
  },
  "the host's program stopped for a while": async ({ chance, member }: Struck) => {
    member.child.kill("SIGSTOP");
    await pause(200 + chance.below(3_300));
    member.child.kill("SIGCONT");
  },
  "the link cut for a while": async ({ chance, hosts }: Struck) => {
    hosts.cut();
    await pause(200 + chance.below(3_300));
    hosts.mend();
  },
} as const satisfies Readonly<Record<string, (struck: Struck) => void | Promise<void>>>;

/** The programs and hosts that a fault may strike. */
interface Struck {
  readonly chance: Chance;
  readonly hosts: TwoHosts;
  readonly head: LaunchedRun;
  readonly member: LaunchedRun;
}

/** The result of runs over two hosts with injected faults. */
export interface HostsReport {
  readonly numRuns: number;
  readonly counts: ReadonlyMap<string, number>;
  /** Groups that were started again from a good state. */
  readonly numRestored: number;
  /** Saves that were reported. */
  readonly numSaved: number;
  /** Violations of the promises. */
  readonly wrong: readonly string[];
}

/**
 * Runs over two hosts that are namespaces, one after the other, until so many faults have befallen them. What ends is started again as
 * a launcher would: a host with the place of the one that is gone, all of them with `--resume auto` where the head is.
 */
export async function strikeHosts(
  workspace: Workspace,
  { numFaults, chance, onFault }: { numFaults: number; chance: Chance; onFault: (line: string) => void },
): Promise<HostsReport> {
  const undisturbed = await lossesOf(workspace, { ranks: 2, zero: 3, steps: STEPS });
  const total = {
    numRuns: 0,
    counts: new Map<string, number>(),
    numRestored: 0,
    numSaved: 0,
    wrong: [] as string[],
  };
  let numLeft = numFaults;
  while (numLeft > 0) {
    const run = new StruckRun(workspace, `hosts-${total.numRuns}`, chance);
    const outcome = await run.toItsEnd(Math.min(numLeft, 1 + chance.below(3)), (what) => {
      total.counts.set(what, (total.counts.get(what) ?? 0) + 1);
      numLeft -= 1;
      onFault(`run ${total.numRuns}: ${what}`);
    });
    total.numRuns += 1;
    total.numRestored += outcome.numRestored;
    total.numSaved += outcome.saved.length;
    total.wrong.push(...outcome.wrong, ...wrongLosses(outcome.losses, undisturbed));
  }
  return total;
}

/** One run over two hosts, through all its faults. */
class StruckRun {
  readonly #workspace: Workspace;
  readonly #chance: Chance;
  readonly #folder: string;
  readonly #temporary: string;
  readonly #mark: string;
  readonly #all: LaunchedRun[] = [];
  /** Started for the present head. */
  #numMembers = 0;

  constructor(workspace: Workspace, name: string, chance: Chance) {
    this.#workspace = workspace;
    this.#chance = chance;
    this.#folder = workspace.path(name);
    this.#temporary = workspace.path(`${name}-tmp`);
    this.#mark = `${process.pid}-${name}`;
    mkdirSync(this.#temporary);
  }

  async toItsEnd(numFaults: number, onFault: (what: string) => void) {
    const wrong: string[] = [];
    using hosts = new TwoHosts();
    let left = numFaults;
    const begin = performance.now();
    let { head, member } = this.#startBoth(hosts);
    let step = 1 + this.#chance.below(MOST_STEPS_APART);
    for (;;) {
      const isThere = (event: LaunchedRun["events"][number]) =>
        event.kind === "step.finished" && event.step >= step;
      const late = pause(HANG_MS, "late" as const, { ref: false });
      const struckOrOver =
        left > 0 ? head.until(isThere).then(() => "there" as const) : head.ended.then(() => "over" as const);
      const next = await Promise.race([
        struckOrOver.catch(() => "over" as const),
        this.#lost(member, head),
        late,
      ]);
      if (next === "late") {
        wrong.push(`nothing more within ${HANG_MS / 1000} s: ${head.err.slice(-400)}`);
        break;
      }
      if (next === "member gone") {
        // The launcher gives the place to another program.
        member = this.#start(hosts, 1);
        continue;
      }
      if (next === "there") {
        const names = Object.keys(faults) as (keyof typeof faults)[];
        const name = names[this.#chance.below(names.length)] as keyof typeof faults;
        onFault(`${name} at step ${step}`);
        await faults[name]({ chance: this.#chance, hosts, head, member });
        left -= 1;
        step = Math.min(STEPS - 1, step + 1 + this.#chance.below(MOST_STEPS_APART));
        continue;
      }
      const code = await head.ended;
      if (code === 0) break;
      if (head.child.signalCode !== "SIGKILL") {
        wrong.push(`the head ended with ${code}: ${head.err.slice(-400)}`);
        break;
      }
      // A host that was admitted ends by itself; one that was not waits for a head, and the launcher ends it with the other.
      if (!this.#isTakenIn(head)) member.child.kill("SIGTERM");
      if ((await Promise.race([member.ended, late])) === "late") {
        wrong.push(`host 1 stays ${HANG_MS / 1000} s behind its head: ${member.err.slice(-400)}`);
        break;
      }
      ({ head, member } = this.#startBoth(hosts));
    }
    // One that came too late to be taken in waits for a head: its launcher ends it.
    if (!this.#isTakenIn(head)) member.child.kill("SIGKILL");
    await Promise.race([member.ended, pause(20_000)]);
    wrong.push(...(await this.#left()), ...(await this.#unsaved()));
    for (const each of this.#all) each[Symbol.dispose]();
    if (performance.now() - begin > HANG_MS * 2) wrong.push("the run took far too long");
    const events = this.#all.flatMap((each) => each.events);
    return {
      wrong,
      losses: events.flatMap((event) =>
        event.kind === "step.finished" ? [[event.step, event.lossNats] as const] : [],
      ),
      saved: events.filter(({ kind }) => kind === "checkpoint.saved"),
      numRestored: events.filter(({ kind }) => kind === "run.restored").length,
    };
  }

  async #lost(member: LaunchedRun, head: LaunchedRun): Promise<"member gone" | "over"> {
    const code = await member.ended;
    // One that ends in order was let go: the head ends, too.
    if (code === 0) return await head.ended.then(() => "over" as const);
    const isOver = await Promise.race([head.ended.then(() => true), pause(1_000, false)]);
    return isOver ? "over" : "member gone";
  }

  /** Whether the newest program of host 1 has come to this head. */
  #isTakenIn(head: LaunchedRun): boolean {
    return head.events.filter(({ kind }) => kind === "host.joined").length >= this.#numMembers;
  }

  #startBoth(hosts: TwoHosts) {
    return { head: this.#start(hosts, 0), member: this.#start(hosts, 1) };
  }

  #start(hosts: TwoHosts, rank: 0 | 1): LaunchedRun {
    const env = {
      RANK: `${rank}`,
      WORLD_SIZE: "2",
      MASTER_ADDR: hosts.addresses[0] as string,
      MASTER_PORT: "29500",
      TROUPE_CHAOS_MARK: this.#mark,
      TMPDIR: this.#temporary,
    };
    const saving = ["--checkpoint", this.#folder, "--checkpoint-every", `${SAVE_EVERY}`, "--resume", "auto"];
    const args = [
      "--ranks",
      "2",
      "--zero",
      "3",
      "--steps",
      `${STEPS}`,
      "--threads-per-rank",
      "1",
      "--no-warm-standby",
    ];
    const all = [...args, "--max-restarts", "40", ...saving];
    const run = new LaunchedRun(this.#workspace, env, all, hosts.command(rank, process.execPath));
    this.#all.push(run);
    this.#numMembers = rank === 0 ? 0 : this.#numMembers + 1;
    return run;
  }

  /** Processes, sockets and files that are still there. */
  async #left(): Promise<string[]> {
    const place = {
      mark: `TROUPE_CHAOS_MARK=${this.#mark}`,
      folder: this.#temporary,
      pids: new Set<number>(),
    };
    const look = () => {
      const { processes, files } = possessions(place);
      return [...processes.map((pid) => `left: process ${pid}`), ...files.map((file) => `left: ${file}`)];
    };
    for (let waited = 0; waited < 50 && look().length > 0; waited += 1) await pause(100);
    return look();
  }

  /** Checkpoints that were reported and are not complete. */
  async #unsaved(): Promise<string[]> {
    const saved = this.#all.flatMap((run) =>
      run.events.flatMap((event) => (event.kind === "checkpoint.saved" ? event.path : [])),
    );
    const storage = await openStorage(this.#folder);
    const wrong: string[] = [];
    for (const path of new Set(saved)) {
      const name = path.slice(path.lastIndexOf("/") + 1);
      const damages = await verifyCheckpoint(storage, name).catch((error: Error) => [error]);
      if (damages.length > 0) wrong.push(`${name} was reported saved: ${damages[0]?.message}`);
    }
    return wrong;
  }
}

function wrongLosses(
  losses: readonly (readonly [number, number])[],
  undisturbed: readonly number[],
): string[] {
  const others = losses.filter(([step, loss]) => !Object.is(loss, undisturbed[step - 1]));
  const numSteps = new Set(losses.map(([step]) => step)).size;
  return [
    ...(others.length > 0 ? [`other losses: ${JSON.stringify(others)}`] : []),
    ...(numSteps < undisturbed.length ? [`${numSteps} of ${undisturbed.length} steps`] : []),
  ];
}

/** The processes in which ranks live. */
const ranksOf = (runs: readonly LaunchedRun[]): number[] =>
  runs.flatMap(({ child: { pid } }) => (pid === undefined ? [] : startedBy(pid)));

function pick(chance: Chance, pids: readonly number[]): number | undefined {
  return pids[chance.below(Math.max(1, pids.length))];
}

function signal(pid: number | undefined, name: NodeJS.Signals): void {
  try {
    if (pid !== undefined) process.kill(pid, name);
  } catch {
    // It has ended by itself.
  }
}
