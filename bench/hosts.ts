// Measures two hosts that are network namespaces of this machine: bits, bytes on the cable, and the time until a fault is reported.
//
//   npm run bench -- hosts [bits] [bytes] [overlap] [faults]     as root; all parts by default
//
// A link that is slow or drops packets is made by tc's token bucket, whose queue holds little; one on which packets are under way for
// 20 ms by a program between two tun devices (test/launch/delayed-link.py), since few kernels have netem.
import { readArguments, refuse } from "../scripts/arguments.mjs";
import type { RuntimeOptions } from "../src/entries/index.ts";
import { lossesOf, Workspace } from "../test/fixtures/run-tiny.ts";
import { startedBy } from "../test/fixtures/started-by.ts";
import { LaunchedRun } from "../test/launch/launched-hosts.ts";
import { TwoHosts, whyNoNamespaces } from "../test/launch/namespaces.ts";

const STEPS = 12;
const LONG_STEPS = 30;
const WIDE = { width: 128, layers: 8 };
const WIDE_SETS = Object.entries(WIDE).flatMap(([name, value]) => ["--set", `${name}=${value}`]);
const DELAY_MS = 20;
const DELAYED_MEGABITS = 1_000;
const reason = whyNoNamespaces();

/** By name, as they are asked for. */
const parts: Readonly<Record<string, (workspace: Workspace) => Promise<void>>> = {
  bits: measureBits,
  bytes: measureTraffic,
  overlap: async (workspace) => {
    await measureOverlap(workspace, "gathers ahead", []);
    await measureOverlap(workspace, "gathers on demand", ["--prefetch", "0"]);
  },
  faults: async (workspace) => {
    for (const [what, strike] of Object.entries(strikes)) await measureDetection(workspace, what, strike);
    await measureReplacement(workspace);
  },
};

async function measureBits(workspace: Workspace): Promise<void> {
  const layouts = [
    ...([0, 1, 2, 3] as const).map((zero) => ({ ranks: 2, zero })),
    { ranks: 4, tp: 2, pp: 2 },
    { ranks: 4, tp: 2, zero: 1 },
  ];
  for (const options of layouts) {
    using run = new TwoRun(workspace, options);
    await run.ended();
    const alone = await lossesOf(workspace, { ...options, steps: STEPS });
    print(`bits, ${JSON.stringify(options)}`, isSame(run.head.losses, alone) ? "=== one host's" : "OTHER");
  }
}

async function measureTraffic(workspace: Workspace): Promise<void> {
  await measureBytes(workspace, "a cable");
  for (const reduction of ["ordered", "hierarchical"] as const)
    await measureBytes(workspace, `a cable, 2 ranks a host, ${reduction}`, { ranks: 4, reduction });
  await measureBytes(workspace, "200 Mbit/s", { limit: ["200mbit", "64kb", "400ms"] });
  await measureBytes(workspace, "200 Mbit/s, 1 ms of queue", { limit: ["200mbit", "64kb", "1ms"] });
}

const strikes: Readonly<Record<string, (run: TwoRun) => void>> = {
  "a host's program killed": ({ member }) => void member.child.kill("SIGKILL"),
  "a host that stands still": ({ member }) => {
    for (const pid of [member.child.pid as number, ...startedBy(member.child.pid as number)])
      process.kill(pid, "SIGSTOP");
  },
  "the cable pulled": ({ hosts }) => hosts.cut(),
  // Each packet waits for seconds behind those sent before.
  "the link slowed to 8 kbit/s": ({ hosts }) => hosts.limit("8kbit", "2kb", "60s"),
  "a link that drops most packets": ({ hosts }) => hosts.limit("8kbit", "2kb", "1ms"),
};

/** Options of a measurement that differ from the defaults. */
interface Measured {
  readonly ranks?: number;
  readonly reduction?: "ordered" | "hierarchical";
  readonly limit?: readonly [rate: string, burst: string, latency: string];
}

/**
 * Gradients go to their owners, of which half live on the other host: from each rank where they are added rank after rank, else
 * once from each host. Parameters come back once to each host.
 */
function bytesAParameter({ ranks = 2, reduction = "ordered" }: Measured): number {
  const senders = reduction === "ordered" ? ranks / 2 : 1;
  return 4 * (senders / 2 + 1 / 2);
}

async function measureBytes(workspace: Workspace, what: string, measured: Measured = {}): Promise<void> {
  const { ranks = 2, reduction = "ordered", limit } = measured;
  const options = { ranks, zero: 2, reduction } as const;
  using run = new TwoRun(workspace, options, WIDE_SETS);
  if (limit !== undefined) run.hosts.limit(...limit);
  const at = async (step: number) => {
    await run.head.until((event) => event.kind === "step.finished" && event.step === step);
    return { bytes: run.hosts.sent(1).bytes, ms: performance.now() };
  };
  const first = await at(3);
  const last = await at(STEPS - 1);
  const { dropped } = run.hosts.sent(1);
  await run.ended();
  const steps = STEPS - 4;
  const started = run.head.events.find((event) => event.kind === "run.started");
  const formula =
    bytesAParameter(measured) * (started?.kind === "run.started" ? started.numParameters : Number.NaN);
  // Two devices of one host add as two hosts do.
  const device = reduction === "hierarchical" ? "sim" : "cpu";
  const alone = await lossesOf(workspace, { ...options, device, steps: STEPS }, WIDE);
  const bits = isSame(run.head.losses, alone) ? "=== one host's" : "OTHER";
  const megabytes = (bytes: number) => `${(bytes / 1e6).toFixed(2)} MB`;
  const sent = (last.bytes - first.bytes) / steps;
  print(
    `bytes a step, ${what}`,
    `${megabytes(sent)} sent, ${megabytes(formula)} by formula (${(sent / formula).toFixed(2)} x), ` +
      `${((last.ms - first.ms) / steps).toFixed(0)} ms a step, ${dropped} packets dropped, bits ${bits}`,
  );
}

/** With packets 20 ms under way at 1 Gbit/s: how much of the communication is hidden behind the computation. */
async function measureOverlap(workspace: Workspace, what: string, more: readonly string[]): Promise<void> {
  const options = { ranks: 2, zero: 3 } as const;
  const hosts = new TwoHosts();
  await hosts.delay(DELAY_MS, DELAYED_MEGABITS);
  using run = new TwoRun(workspace, options, [...WIDE_SETS, ...more], hosts);
  await run.ended();
  const steps = run.head.events.flatMap((event) =>
    event.kind === "step.finished" && event.step > 3 ? event : [],
  );
  const mean = (figure: (step: (typeof steps)[number]) => number) =>
    steps.reduce((sum, step) => sum + figure(step), 0) / steps.length;
  const alone = await lossesOf(workspace, { ...options, steps: STEPS }, WIDE);
  const bits = isSame(run.head.losses, alone) ? "=== one host's" : "OTHER";
  print(
    `${DELAY_MS} ms, ${DELAYED_MEGABITS / 1e3} Gbit/s, ${what}`,
    `${mean(({ durationMs }) => durationMs).toFixed(0)} ms a step, of ${mean(({ gatherMs, reduceMs }) => gatherMs + reduceMs).toFixed(0)} ms of ` +
      `communication ${mean(({ exposedMs }) => exposedMs).toFixed(0)} waited for (overlap ${mean(({ overlap }) => overlap).toFixed(2)}), bits ${bits}`,
  );
}

async function measureDetection(
  workspace: Workspace,
  what: string,
  strike: (run: TwoRun) => void,
): Promise<void> {
  const options = { ranks: 2, zero: 3 } as const;
  using run = new TwoRun(workspace, options, ["--checkpoint-in-memory-every", "2"]);
  await run.head.until((event) => event.kind === "step.finished" && event.step === 4);
  const begin = performance.now();
  strike(run);
  await run.head.until((event) => event.kind === "host.failed");
  const reportedMs = performance.now() - begin;
  await run.head.until((event) => event.kind === "step.finished" && event.step === STEPS);
  const code = await run.head.ended;
  const alone = await lossesOf(workspace, { ...options, steps: STEPS });
  const bits = isSame(run.head.losses, alone) ? "=== one host's" : "OTHER";
  print(
    what,
    `reported after ${(reportedMs / 1e3).toFixed(2)} s, the run ended with ${code}, losses ${bits}`,
  );
}

/** Kills a host, whose place the launcher gives to another program; measures the time until that joins, and the run's result. */
async function measureReplacement(workspace: Workspace): Promise<void> {
  const options = { ranks: 2, zero: 3 } as const;
  // Long enough for the new one to come.
  const more = ["--checkpoint-in-memory-every", "2", "--slow-reduce", "100", "--steps", `${LONG_STEPS}`];
  using run = new TwoRun(workspace, options, more);
  const count = () => run.head.events.filter(({ kind }) => kind === "host.joined").length;
  await run.head.until((event) => event.kind === "step.finished" && event.step === 4);
  const begin = performance.now();
  run.member.child.kill("SIGKILL");
  await run.head.until(({ kind }) => kind === "host.failed");
  const reportedMs = performance.now() - begin;
  run.replaceMember();
  await run.head.until(() => count() === 2);
  const back = performance.now() - begin;
  const codes = [await run.head.ended, await run.member.ended];
  const alone = await lossesOf(workspace, { ...options, steps: LONG_STEPS });
  const bits = isSame(run.head.losses, alone) ? "=== one host's" : "OTHER";
  print(
    "a host's program killed, and another in its place",
    `reported after ${(reportedMs / 1e3).toFixed(2)} s, there after ${(back / 1e3).toFixed(2)} s, ended with ${codes}, losses ${bits}`,
  );
}

/** A run over two hosts. */
class TwoRun implements Disposable {
  readonly hosts: TwoHosts;
  readonly head: LaunchedRun;
  member: LaunchedRun;
  readonly #start: (rank: 0 | 1) => LaunchedRun;

  /** @param hosts - pass */
  constructor(
    workspace: Workspace,
    options: RuntimeOptions,
    more: readonly string[] = [],
    hosts = new TwoHosts(),
  ) {
    this.hosts = hosts;
    const given = Object.entries(options).flatMap(([name, value]) => [`--${name}`, `${value}`]);
    const steps = more.includes("--steps") ? [] : ["--steps", `${STEPS}`];
    const args = [...given, ...steps, "--threads-per-rank", "1", "--no-warm-standby", ...more];
    this.#start = (rank) => {
      const env = {
        RANK: `${rank}`,
        WORLD_SIZE: "2",
        MASTER_ADDR: this.hosts.addresses[0] as string,
        MASTER_PORT: "29500",
      };
      return new LaunchedRun(workspace, env, args, this.hosts.command(rank, process.execPath));
    };
    this.head = this.#start(0);
    this.member = this.#start(1);
  }

  /** As a launcher does in the place of one that has ended. */
  replaceMember(): void {
    this.member[Symbol.dispose]();
    this.member = this.#start(1);
  }

  async ended(): Promise<void> {
    const codes = [await this.head.ended, await this.member.ended];
    if (codes.some((code) => code !== 0))
      throw new Error(`ended with ${codes}: ${this.head.err}${this.member.err}`);
  }

  [Symbol.dispose](): void {
    for (const run of [this.head, this.member]) {
      for (const pid of startedBy(run.child.pid as number)) process.kill(pid, "SIGKILL");
      run[Symbol.dispose]();
    }
    this.hosts[Symbol.dispose]();
  }
}

function isSame(losses: readonly number[], others: readonly number[]): boolean {
  return losses.length === others.length && losses.every((loss, step) => Object.is(loss, others[step]));
}

function print(what: string, figure: string): void {
  console.log(`${what.padEnd(44)} ${figure}`);
}

const usage = `usage: npm run bench -- hosts [PART...]\n\nParts, all by default: ${Object.keys(parts).join(", ")}`;
const { positionals } = readArguments(usage, {}, Number.POSITIVE_INFINITY);
const unknown = positionals.filter((name) => !(name in parts));
if (unknown.length > 0) refuse(usage, Object.keys(parts).join(", "), unknown.join(", "));
if (reason === undefined) {
  using workspace = new Workspace();
  for (const [name, measure] of Object.entries(parts))
    if (positionals.length === 0 || positionals.includes(name)) await measure(workspace);
} else console.log(`hosts: SKIPPED, no hosts can be made here: ${reason}`);
