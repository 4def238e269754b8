// A scripted session of a live model that prints what became of it; its argument says how its ranks are struck.
import { createHash } from "node:crypto";
import { Runtime, type Tensor } from "../../../src/entries/index.ts";
import type calledJob from "../../fixtures/jobs/called.ts";
import { Chance } from "../chance.ts";
import { ActorThreads } from "../faults.ts";

/** A session, and when ranks are killed in it. */
export interface SessionOrder {
  readonly data: string;
  readonly cache: string;
  readonly layout: {
    readonly ranks: number;
    readonly zero?: number;
    readonly tp?: number;
    readonly pp?: number;
  };
  readonly placement: "thread" | "process";
  readonly seed: number;
  /** How often a rank is killed, each time at a random moment. */
  readonly kills: number;
}

/** The end of a session. */
export interface SessionTold {
  /** The answer of each call, in the order of the script. */
  readonly answers: readonly string[];
  /** Hash of the bits of each parameter, by name. */
  readonly parameters: Readonly<Record<string, string>>;
  readonly numKills: number;
  readonly numRestarts: number;
}

const ROUNDS = 12;

/** Mean time between two kills, in ms: a restart takes about as long. */
const MEAN_MS = 700;

/** Not the checkpointer: with it the copies in memory are lost. */
const CAST = /^(rank|shard)-\d+$|^feeder$/;

const called = new URL("../../fixtures/jobs/called.ts", import.meta.url);

const order = JSON.parse(process.argv[2] ?? "{}") as SessionOrder;
const { data, cache, layout, placement, seed, kills } = order;
const chance = new Chance(seed);
using threads = new ActorThreads();
let [numKills, numRestarts] = [0, 0];
await using runtime = await Runtime.spawn({
  ...layout,
  placement,
  threadsPerRank: 1,
  seed: 5,
  maxRestarts: 1_000,
  warmStandby: false,
  checkpoint: { inMemoryEverySteps: 3 },
});
runtime.on("actor.restarted", ({ role }) => {
  if (role === "feeder") numRestarts += 1;
});
const config = { data, cache, ...(layout.pp === undefined ? {} : { accumulation: 2 }) };
await using model = await runtime.open<typeof calledJob>(called, config);

/** Kills ranks until the session is over: a process of theirs, or the thread of one of the cast. */
let timer: NodeJS.Timeout | undefined;
const strike = () => {
  if (kill()) numKills += 1;
  if (numKills < kills) timer = setTimeout(strike, chance.wait(MEAN_MS));
};
if (kills > 0) timer = setTimeout(strike, chance.wait(MEAN_MS));

const answers: Promise<string>[] = [];
const note = <T>(answer: Promise<T>, told: (value: T) => unknown = (value) => value) =>
  answers.push(answer.then((value) => JSON.stringify(told(value))));
const bitsOf = (tensor: Tensor) => Buffer.from(tensor.toTypedArray().buffer.slice(0)).toString("hex");
const draw = new Chance(3);
for (let round = 0; round < ROUNDS; round++) {
  const range = (numSamples: number) => ({ split: "train", position: draw.below(1_000), numSamples });
  note(model.accumulate("loss", range(4)));
  if (draw.below(2) === 0) note(model.accumulate("loss", range(4 * (1 + draw.below(3)))));
  const rows = model.call("logProbs", range(1 + draw.below(6)));
  note(rows, (told) => hashOf(bitsOf(told.rows.logProbs)));
  if (draw.below(3) === 0)
    note(model.generate([[40, 41], [42]], { maxNewTokens: 4, seed: round, samples: 2 }));
  note(model.step({ lr: 1e-2 / (round + 1) }));
  // Now and then the script waits, as one that judges does.
  if (draw.below(2) === 0) await rows;
}
const parameters = await model.parameters();
clearTimeout(timer);
const told: SessionTold = {
  answers: await Promise.all(answers),
  parameters: Object.fromEntries(
    Object.entries(parameters).map(([name, tensor]) => [name, hashOf(bitsOf(tensor))]),
  ),
  numKills,
  numRestarts,
};
await model.close();
await runtime.stop();
process.stdout.write(`\n${JSON.stringify(told)}\n`);

function kill(): boolean {
  if (placement === "thread") return threads.endOne(chance, CAST) !== undefined;
  const pids = runtime
    .inspect()
    .flatMap(({ pid, role }) => (role === "rank" && pid !== process.pid ? [pid] : []));
  if (pids.length === 0) return false;
  try {
    return process.kill(chance.pick(pids), "SIGKILL");
  } catch {
    return false; // it has ended meanwhile
  }
}

function hashOf(text: string): string {
  return createHash("sha256").update(text).digest("hex");
}
