// Two hosts that are network namespaces of this machine: bits, bytes on the cable, and how soon a fault is told.
//
//   npm run bench -- hosts                  as root
//
// A link that is slow or drops packets is made by tc's token bucket, whose queue holds little; there is no delay without netem.
import { spawnSync } from "node:child_process";
import { readdirSync, readFileSync } from "node:fs";
import type { RuntimeOptions } from "../src/index.ts";
import { lossesOf, Workspace } from "../test/fixtures/run-tiny.ts";
import { LaunchedRun } from "../test/launch/launched-hosts.ts";
import { TwoHosts, whyNoNamespaces } from "../test/launch/namespaces.ts";

const STEPS = 12;
const WIDE = { width: 128, layers: 8 };
const reason = whyNoNamespaces();

async function measure(): Promise<void> {
  using workspace = new Workspace();
  for (const options of [
    { ranks: 2, zero: 0 },
    { ranks: 2, zero: 3 },
    { ranks: 4, tp: 2, pp: 2 },
  ] as const) {
    using run = new TwoRun(workspace, options);
    await run.ended();
    const alone = await lossesOf(workspace, { ...options, steps: STEPS });
    print(`bits, ${JSON.stringify(options)}`, isSame(run.head.losses, alone) ? "=== one host's" : "OTHER");
  }
  await measureBytes(workspace, "a cable");
  const tc = spawnSync("tc", ["-V"]).error;
  if (tc === undefined) {
    await measureBytes(workspace, "200 Mbit/s", ["200mbit", "64kb", "400ms"]);
    await measureBytes(workspace, "200 Mbit/s, 1 ms of queue", ["200mbit", "64kb", "1ms"]);
  } else console.log(`a slow link and one that drops packets: SKIPPED, no tc: ${tc.message}`);
  for (const [what, strike] of Object.entries(strikes)) await measureDetection(workspace, what, strike);
}

const strikes: Readonly<Record<string, (run: TwoRun) => void>> = {
  "a host's program killed": ({ member }) => void member.child.kill("SIGKILL"),
  "a host that stands still": ({ member }) => {
    for (const pid of [member.child.pid as number, ...childrenOf(member.child.pid as number)])
      process.kill(pid, "SIGSTOP");
  },
  "the cable pulled": ({ hosts }) => hosts.cut(),
};

/** Gradients go to their owners and parameters come back: between two replicas 4 bytes a parameter, host and step. */
async function measureBytes(
  workspace: Workspace,
  what: string,
  limit?: readonly [rate: string, burst: string, latency: string],
): Promise<void> {
  const options = { ranks: 2, zero: 2 } as const;
  const sets = Object.entries(WIDE).flatMap(([name, value]) => ["--set", `${name}=${value}`]);
  using run = new TwoRun(workspace, options, sets);
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
  const formula = 4 * (started?.kind === "run.started" ? started.numParameters : Number.NaN);
  const alone = await lossesOf(workspace, { ...options, steps: STEPS }, WIDE);
  const bits = isSame(run.head.losses, alone) ? "=== one host's" : "OTHER";
  const megabytes = (bytes: number) => `${(bytes / 1e6).toFixed(2)} MB`;
  const sent = (last.bytes - first.bytes) / steps;
  print(
    `bytes a step, ${what}`,
    `${megabytes(sent)} sent, ${megabytes(formula)} by formula (${(sent / formula).toFixed(2)} x), ` +
      `${((last.ms - first.ms) / steps).toFixed(0)} ms a step, ${dropped} packets dropped, bits ${bits}`,
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
  const told = performance.now() - begin;
  await run.head.until((event) => event.kind === "step.finished" && event.step === STEPS);
  const code = await run.head.ended;
  const alone = await lossesOf(workspace, { ...options, steps: STEPS });
  const bits = isSame(run.head.losses, alone) ? "=== one host's" : "OTHER";
  print(what, `told after ${(told / 1e3).toFixed(2)} s, the run ended with ${code}, losses ${bits}`);
}

/** A run over two hosts. */
class TwoRun implements Disposable {
  readonly hosts = new TwoHosts();
  readonly head: LaunchedRun;
  readonly member: LaunchedRun;

  constructor(workspace: Workspace, options: RuntimeOptions, more: readonly string[] = []) {
    const given = Object.entries(options).flatMap(([name, value]) => [`--${name}`, `${value}`]);
    const args = [...given, "--steps", `${STEPS}`, "--threads-per-rank", "1", "--no-warm-standby", ...more];
    const start = (rank: 0 | 1) => {
      const env = {
        RANK: `${rank}`,
        WORLD_SIZE: "2",
        MASTER_ADDR: this.hosts.addresses[0] as string,
        MASTER_PORT: "29500",
      };
      return new LaunchedRun(workspace, env, args, this.hosts.command(rank, process.execPath));
    };
    this.head = start(0);
    this.member = start(1);
  }

  async ended(): Promise<void> {
    const codes = [await this.head.ended, await this.member.ended];
    if (codes.some((code) => code !== 0))
      throw new Error(`ended with ${codes}: ${this.head.err}${this.member.err}`);
  }

  [Symbol.dispose](): void {
    for (const run of [this.head, this.member]) {
      for (const pid of childrenOf(run.child.pid as number)) process.kill(pid, "SIGKILL");
      run[Symbol.dispose]();
    }
    this.hosts[Symbol.dispose]();
  }
}

/** The processes that a program has started; none where it has ended. */
function childrenOf(pid: number): number[] {
  try {
    const tasks = readdirSync(`/proc/${pid}/task`);
    const lines = tasks.map((task) => readFileSync(`/proc/${pid}/task/${task}/children`, "utf8"));
    return lines.join(" ").split(/\s+/).filter(Boolean).map(Number);
  } catch {
    return [];
  }
}

function isSame(losses: readonly number[], others: readonly number[]): boolean {
  return losses.length === others.length && losses.every((loss, step) => Object.is(loss, others[step]));
}

function print(what: string, figure: string): void {
  console.log(`${what.padEnd(44)} ${figure}`);
}

if (reason === undefined) await measure();
else console.log(`hosts: SKIPPED, no hosts can be made here: ${reason}`);
