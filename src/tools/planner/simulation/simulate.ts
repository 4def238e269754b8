import { checkLayout, type Layout } from "../../../compute/parallel/index.ts";
import { TroupeError } from "../../../errors/index.ts";
import { laneName, processName, slice, traceText } from "../../sinks/index.ts";
import type { ModelFacts } from "../cost/model-facts.ts";
import { SimulatedRanks } from "./simulated-ranks.ts";
import { SimulatedShards } from "./simulated-shards.ts";
import {
  type SimulatedRank,
  SimulatedWorld,
  type SimulationOptions,
  type Span,
  type StepTimes,
} from "./simulated-world.ts";

/** Result of one step in the middle of a simulated run: seconds, means over all ranks. */
export interface Simulation extends Readonly<StepTimes> {
  readonly numRanks: number;
  readonly stepS: number;
  /** Share of the step in which a rank neither computes nor reduces within its layers. */
  readonly idle: number;
  /** Model FLOPs per second and rank, without recomputation. */
  readonly flopsPerSecond: number;
  readonly numEvents: number;
  readonly timeline: readonly Span[];
}

/**
 * Runs the product's schedules on every rank of a layout in virtual time, without computing anything.
 * @throws {TroupeError} `LAYOUT`; `SIMULATION_ORDER` where something happens before its dependencies;
 * `SIMULATION_DEADLOCK` where ranks wait for ever, naming the reasons
 */
export function simulate(facts: ModelFacts, layout: Layout, options: SimulationOptions): Simulation {
  checkLayout(facts.layout, layout);
  return runWorld(new SimulatedWorld(facts, layout, options));
}

/** Runs every rank's program to its end. @throws as {@link simulate} */
export function runWorld(world: SimulatedWorld): Simulation {
  const ranks = new SimulatedRanks(world, new SimulatedShards(world));
  for (const rank of world.ranks) world.time.at(0, () => ranks.advance(rank));
  const numEvents = world.time.run();
  checkDone(world.ranks);
  return { ...measure(world), numEvents, timeline: world.timeline };
}

function checkDone(ranks: readonly SimulatedRank[]): void {
  const stuck = ranks.filter(({ step, plan }) => step < plan.program.length);
  if (stuck.length === 0) return;
  const named = stuck.slice(0, 3).map(({ rank, waitsFor }) => `rank ${rank} for ${waitsFor}`);
  throw new TroupeError("SIMULATION_DEADLOCK", {
    where: "simulation",
    expected: "every rank to end",
    got: `${stuck.length} that wait for ever, ${named.join("; ")}`,
    hint: "the simulator is wrong",
    fields: { numStuck: stuck.length },
  });
}

/** Measures the last step but one: the first has no record for prefetching, and nothing follows the last. */
function measure({ ranks, layout, facts }: SimulatedWorld) {
  const step = (ranks[0] as SimulatedRank).plan.program.length - 2;
  const mean = (value: (rank: SimulatedRank) => number) =>
    ranks.reduce((sum, rank) => sum + value(rank), 0) / ranks.length;
  const time = (kind: keyof StepTimes) => mean(({ times }) => times[step]?.[kind] ?? 0);
  const beganS = (index: number) => Math.max(...ranks.map(({ stepBeganS }) => stepBeganS[index] ?? 0));
  const stepS = beganS(step + 1) - beganS(step);
  const times = {
    computeS: time("computeS"),
    tensorParallelS: time("tensorParallelS"),
    exposedS: time("exposedS"),
    bubbleS: time("bubbleS"),
    communicationS: time("communicationS"),
    updateS: time("updateS"),
  };
  return {
    numRanks: ranks.length,
    stepS,
    ...times,
    idle: 1 - (times.computeS + times.tensorParallelS) / stepS,
    flopsPerSecond: (layout.batchSize * facts.flopsPerSample) / stepS / ranks.length,
  };
}

const LANES = ["compute", "communication", "update"] as const;
const MS_PER_SECOND = 1000;

/** A timeline as JSON for chrome://tracing and ui.perfetto.dev: a process for each rank, a thread for each lane. */
export function chromeTrace(timeline: readonly Span[]): string {
  const ranks = [...new Set(timeline.map(({ rank }) => rank))];
  const names = ranks.flatMap((pid) => [
    ...processName(pid, `rank ${pid}`),
    ...LANES.flatMap((lane, tid) => laneName({ pid, tid }, lane)),
  ]);
  const spans = timeline.map(({ rank, lane, name, step, beginS, endS }) => {
    const interval = { beginMs: beginS * MS_PER_SECOND, endMs: endS * MS_PER_SECOND };
    return slice({ pid: rank, tid: LANES.indexOf(lane) }, name, interval, { step });
  });
  return traceText([...names, ...spans]);
}
