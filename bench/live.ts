// npm run bench -- live: a script that makes every step of a live model by accumulate and step, beside Runtime.run on the same batches.
//
// All stand ready in one process and make a few steps by turns, for many rounds; each round begins with another. Other work on the
// machine only slows a turn, so the fastest tenth of the turns is compared. What a step costs is printed beside: processor time, wake-ups
// (times that a thread of the process had to wait) and messages that actors handled, medians of the turns. Exits with 1 where the script
// that awaits nothing makes less than the limit of the run's tokens a second.
import { fileURLToPath } from "node:url";
import { countOf, numberOf, readArguments } from "../scripts/arguments.mjs";
import { type EventSink, type LiveModel, Runtime } from "../src/entries/index.ts";
import { load } from "./measure/machine.ts";
import { median } from "./measure/median.ts";

const usage = `
usage: npm run bench -- live [OPTIONS]

  --ranks N    (1)
  --zero N     (1)
  --steps N    that are timed in a turn (16)
  --rounds N   turns of each (60)
  --limit N    the least ratio of a script that awaits nothing (0.97)`;
const text = { type: "string" } as const;
const { values } = readArguments(usage, {
  ranks: { ...text, default: "1" },
  zero: { ...text, default: "1" },
  steps: { ...text, default: "16" },
  rounds: { ...text, default: "60" },
  limit: { ...text, default: "0.97" },
});
const [ranks, steps, rounds] = [
  countOf(usage, "ranks", values.ranks),
  countOf(usage, "steps", values.steps),
  countOf(usage, "rounds", values.rounds),
];
const zero = Number(values.zero);
const limit = numberOf(usage, "limit", values.limit);
/** Steps of a turn before those that are timed, and after them: then as many are under way at both ends. */
const AROUND = 4;
/** Turns that are not counted: in their seconds code is compiled, and the standbys of live models load. */
const WARM_UP_TURNS = 6;
const NUM_STEPS = 1_000_000;
const job = fileURLToPath(new URL("../examples/gpt/job.ts", import.meta.url));
const shape = { batch: 12, context: 64 };
const config = {
  ...shape,
  data: fileURLToPath(new URL("../README.md", import.meta.url)),
  tokenizer: "byte",
  evaluateEvery: NUM_STEPS + 1,
  evaluationSamples: shape.batch,
};

/** The cost of one step. */
interface Cost {
  readonly wallMs: number;
  readonly processorMs: number;
  readonly wakeUps: number;
  readonly messages: number;
}

const costs = ["wallMs", "processorMs", "wakeUps", "messages"] as const;

/** One way to make steps. */
abstract class Way {
  abstract readonly name: string;
  readonly turns: Cost[] = [];
  protected readonly runtime: Runtime;
  #onStep = () => {};

  constructor(runtime: Runtime) {
    this.runtime = runtime;
    const clock: EventSink = {
      write: ({ kind }) => {
        if (kind === "step.finished") this.#onStep();
      },
      close: async () => {},
    };
    runtime.addSink(clock);
  }

  /** Makes its steps until `done`, at least `numSteps`. */
  protected abstract make(numSteps: number, done: Promise<void>): Promise<unknown>;

  /** Makes steps and notes what those in the middle cost. */
  async turn(): Promise<void> {
    const done = Promise.withResolvers<void>();
    let numMade = 0;
    let begin: Cost | undefined;
    this.#onStep = () => {
      numMade += 1;
      if (numMade === AROUND) begin = this.#spent();
      if (numMade !== AROUND + steps || begin === undefined) return;
      const [from, to] = [begin, this.#spent()];
      const each = costs.map((kind) => [kind, (to[kind] - from[kind]) / steps]);
      this.turns.push(Object.fromEntries(each) as Cost);
      done.resolve();
    };
    await this.make(AROUND + steps + AROUND, done.promise);
  }

  #spent(): Cost {
    const { userCPUTime, systemCPUTime, voluntaryContextSwitches } = process.resourceUsage();
    return {
      wallMs: performance.now(),
      processorMs: (userCPUTime + systemCPUTime) / 1_000,
      wakeUps: voluntaryContextSwitches,
      messages: this.runtime.inspect().reduce((sum, { numHandled }) => sum + numHandled, 0),
    };
  }
}

class Run extends Way {
  override readonly name = "Runtime.run";
  #isBegun = false;

  protected override async make(_numSteps: number, done: Promise<void>): Promise<void> {
    if (this.#isBegun) this.runtime.resume();
    else this.runtime.run(job, config).catch(() => {}); // it is stopped in the end
    this.#isBegun = true;
    await done;
    await this.runtime.pause();
  }
}

class Script extends Way {
  readonly name: string;
  readonly #model: LiveModel;
  readonly #awaits: boolean;
  #numSteps = 0;

  constructor(runtime: Runtime, model: LiveModel, awaits: boolean) {
    super(runtime);
    this.name = awaits ? "a script that awaits each step" : "a script that awaits nothing";
    this.#model = model;
    this.#awaits = awaits;
  }

  protected override async make(numSteps: number): Promise<void> {
    const made: Promise<unknown>[] = [];
    for (let step = 0; step < numSteps; step++) {
      const position = this.#numSteps++ * shape.batch;
      made.push(
        this.#model.accumulate("loss", { split: "train", position, numSamples: shape.batch }),
        this.#model.step(),
      );
      if (this.#awaits) await Promise.all(made.splice(0));
    }
    await Promise.all(made);
  }
}

const spawn = () => Runtime.spawn({ ranks, zero: zero as 1, steps: NUM_STEPS });
await using ofRun = await spawn();
await using ofScript = await spawn();
await using ofPatient = await spawn();
const run = new Run(ofRun);
const script = new Script(ofScript, await ofScript.open(job, config), false);
const patient = new Script(ofPatient, await ofPatient.open(job, config), true);
const ways: readonly Way[] = [run, script, patient];
for (let round = -WARM_UP_TURNS; round < rounds; round++) {
  if (round === 0) for (const { turns } of ways) turns.length = 0;
  for (let turn = 0; turn < ways.length; turn++)
    await (ways[(Math.abs(round) + turn) % ways.length] as Way).turn();
}

/** Tokens a second in the fastest tenth of the turns. */
function fastestOf({ turns }: Way): number {
  const fastest = turns
    .map(({ wallMs }) => wallMs)
    .toSorted((left, right) => left - right)
    .slice(0, Math.ceil(turns.length / 10));
  const stepMs = fastest.reduce((sum, wallMs) => sum + wallMs, 0) / fastest.length;
  return (shape.batch * shape.context * 1_000) / stepMs;
}

const middle = ({ turns }: Way, cost: keyof Cost) => median(turns.map((turn) => turn[cost]));
const say = (line: string) => process.stdout.write(`${line}\n`);
for (const way of ways) {
  const ratio = fastestOf(way) / fastestOf(run);
  say(`${way.name}: ${fastestOf(way).toFixed(0)} tokens/s, ${ratio.toFixed(3)} of the run's`);
  say(
    `  a step, median: ${middle(way, "wallMs").toFixed(2)} ms, ${middle(way, "processorMs").toFixed(2)} ms of processor time, ${middle(way, "wakeUps").toFixed(0)} wake-ups, ${middle(way, "messages").toFixed(1)} messages`,
  );
}
const reached = fastestOf(script) / fastestOf(run);
say(`at least ${limit} was asked, ${reached.toFixed(3)} reached (load ${load()})`);
process.exitCode = reached < limit ? 1 : 0;
