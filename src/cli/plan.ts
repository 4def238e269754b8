import { existsSync, readFileSync, writeFileSync } from "node:fs";
import { basename, resolve } from "node:path";
import { pathToFileURL } from "node:url";
import type { Command } from "commander";
import { TroupeError } from "../errors.ts";
import { loadJob } from "../job/index.ts";
import { GPT2LMHeadModel } from "../models/index.ts";
import { checkLayout, type Layout, type ScheduleName } from "../parallel/index.ts";
import {
  type ClusterName,
  calibrated,
  chromeTrace,
  clusters,
  describeBytes,
  describeCount,
  describeEstimate,
  describeLayout,
  describeMemory,
  describeSimulation,
  describeSuggestions,
  estimateStep,
  factsOf,
  isGpt,
  layoutFactsOf,
  type ModelFacts,
  type PlannedPrecision,
  type PlanOptions,
  planMemory,
  type Simulation,
  simulate,
  suggestLayouts,
} from "../planner/index.ts";
import { numelOf } from "../tensor/index.ts";
import { configure } from "../trainer/index.ts";
import { bytes, number, print, setting, usage } from "./flags.ts";

interface PlanFlags {
  readonly ranks: number;
  readonly zero?: number;
  readonly tp?: number;
  readonly pp?: number;
  readonly schedule: ScheduleName;
  readonly chunks: number;
  readonly batch?: number;
  readonly accumulation?: number;
  readonly precision: PlannedPrecision;
  readonly recompute?: boolean;
  readonly sequenceParallel: boolean;
  readonly offload: number;
  readonly offloadParameters: boolean;
  readonly cluster: ClusterName;
  readonly memory?: number;
  readonly flops?: number;
  readonly simulate: boolean;
  readonly timeline?: string;
  readonly json: boolean;
  readonly set: Record<string, string>;
}

/** How many layouts are suggested. */
const NUM_SUGGESTED = 8;

/** Adds `troupe plan JOB`. */
export function addPlanCommand(program: Command): void {
  program
    .command("plan")
    .description("predict memory and step time of a layout, or suggest layouts that fit; nothing is trained")
    .argument("<job>", "a job's module, or a GPT-2's config.json")
    .requiredOption("--ranks <n>", "ranks", number)
    .option("--zero <level>", "what is split over the replicas, as in troupe run (default: 3)", number)
    .option("--tp <n>", "ranks that split one layer", number)
    .option("--pp <n>", "pipeline stages", number)
    .option("--schedule <name>", "order of micro-batches in the pipeline: gpipe, 1f1b or interleaved", "1f1b")
    .option("--chunks <n>", "parts of the model on each stage, for an interleaved schedule", number, 1)
    .option("--batch <n>", "samples in one step (default: the job's, else one a rank)", number)
    .option("--accumulation <n>", "micro-batches of one replica in one step (default: the job's)", number)
    .option("--precision <name>", "fp32, bf16, fp16 or amp", "bf16")
    .option("--recompute", "blocks are computed again in backward (default: where suggestions need it)")
    .option("--sequence-parallel", "split along the sequence what tensor parallelism leaves whole", false)
    .option("--offload <ratio>", "part of masters and optimizer state in host memory, 0 to 1", number, 0)
    .option("--offload-parameters", "blocks' parameters elsewhere between their uses (ZeRO 3)", false)
    .option("--cluster <name>", `machines: ${Object.keys(clusters).join(", ")}`, "h100")
    .option("--memory <size>", "memory of a rank, such as 80GB (default: the cluster's)", bytes)
    .option(
      "--flops <n>",
      "FLOP/s that a rank's products reach, as measured (default: the cluster's)",
      number,
    )
    .option("--simulate", "run the schedules of all ranks in virtual time", false)
    .option("--timeline <file>", "simulate, and write a rank of each stage as a Chrome trace")
    .option("--json", "print one JSON object", false)
    .option("--set <key=value>", "a setting of the job; may be repeated", setting, {})
    .action(plan);
}

/** What is to be planned, whichever way it was named. */
interface Subject {
  readonly name: string;
  readonly facts: ModelFacts;
  readonly batchSize: number | undefined;
  readonly accumulation: number | undefined;
}

async function plan(path: string, flags: PlanFlags): Promise<void> {
  checkFlags(flags);
  const subject = await readSubject(resolve(path), flags);
  const batchSize = flags.batch ?? subject.batchSize ?? flags.ranks;
  const asksForLayout = flags.zero !== undefined || flags.tp !== undefined || flags.pp !== undefined;
  if (asksForLayout) planOne(subject, batchSize, flags);
  else suggest(subject, batchSize, flags);
}

function planOne(subject: Subject, batchSize: number, flags: PlanFlags): void {
  const { facts } = subject;
  const layout: Layout = {
    ranks: flags.ranks,
    tp: flags.tp ?? 1,
    pp: flags.pp ?? 1,
    ep: 1,
    zero: flags.zero ?? 3,
    schedule: flags.schedule,
    numChunks: flags.chunks,
    batchSize,
    accumulation: flags.accumulation ?? subject.accumulation ?? 1,
  };
  checkLayout(layoutFactsOf(facts), layout);
  const options = optionsOf(flags);
  const memory = planMemory(facts, layout, options);
  const estimate = estimateStep(facts, layout, options);
  const simulation = simulated(facts, layout, flags);
  if (flags.json) {
    print(JSON.stringify({ layout, memory, estimate, ...(simulation && { simulation }) }));
    return;
  }
  print(headline(subject, flags));
  print(describeLayout(layout));
  print(describeMemory(memory));
  print(
    simulation === undefined ? describeEstimate(estimate) : describeSimulation(simulation, options.cluster),
  );
}

/** Runs the schedules where that is asked for, and writes the timeline. */
function simulated(
  facts: ModelFacts,
  layout: Layout,
  flags: PlanFlags,
): Omit<Simulation, "timeline"> | undefined {
  if (!flags.simulate && flags.timeline === undefined) return undefined;
  const firstOfStages = Array.from({ length: layout.pp }, (_, stage) => (stage * layout.ranks) / layout.pp);
  const timelineOf = flags.timeline === undefined ? [] : firstOfStages;
  const { timeline, ...simulation } = simulate(facts, layout, { ...optionsOf(flags), timelineOf });
  if (flags.timeline !== undefined) writeFileSync(flags.timeline, chromeTrace(timeline));
  return simulation;
}

function suggest(subject: Subject, batchSize: number, flags: PlanFlags): void {
  const options = optionsOf(flags);
  const memoryBytes = flags.memory ?? options.cluster.memoryBytes;
  const suggestions = suggestLayouts(subject.facts, {
    ...options,
    ranks: flags.ranks,
    batchSize,
    memoryBytes,
  });
  const best = suggestions.slice(0, NUM_SUGGESTED);
  if (flags.json) {
    print(JSON.stringify({ suggestions: best }));
    return;
  }
  print(headline(subject, flags));
  if (best.length === 0) {
    throw new TroupeError(
      "LAYOUT",
      `[troupe plan] expected a layout of ${flags.ranks} ranks that fits ${describeBytes(memoryBytes)} with a batch of ${batchSize}: got none (use more ranks, --offload 1, or a batch that more ranks divide)`,
    );
  }
  print(
    `what fits ${describeBytes(memoryBytes)} a rank, the best of each split; fastest first, times estimated`,
  );
  print(describeSuggestions(best));
}

function headline({ name, facts }: Subject, { ranks, cluster, precision }: PlanFlags): string {
  const parameters = [
    ...facts.blocks.flatMap((block) => block.parameters),
    ...facts.root.map((use) => use.parameter),
  ];
  const count = parameters.reduce((sum, { shape }) => sum + numelOf(shape), 0);
  return `${name}: ${describeCount(count)} parameters on ${ranks} ranks of ${cluster}, ${precision}`;
}

function optionsOf(flags: PlanFlags): PlanOptions & { readonly cluster: ReturnType<typeof calibrated> } {
  const { flops, recompute, precision, sequenceParallel, offload, offloadParameters } = flags;
  return {
    precision,
    sequenceParallel,
    offloadRatio: offload,
    offloadParameters,
    cluster: calibrated(clusters[flags.cluster], flops === undefined ? {} : { flopsPerSecond: flops }),
    ...(recompute === undefined ? {} : { recompute }),
  };
}

async function readSubject(path: string, flags: PlanFlags): Promise<Subject> {
  if (!existsSync(path)) throw usage("a job's module or a config.json", path, "give its path");
  const name = basename(path);
  if (path.endsWith(".json")) {
    const model = new GPT2LMHeadModel(JSON.parse(readFileSync(path, "utf8")));
    return { name, facts: factsOf(model), batchSize: undefined, accumulation: undefined };
  }
  const job = await loadJob(String(pathToFileURL(path)));
  const config = configure(job, flags.set);
  const { facts } = await job.data(config, { seed: 0 });
  const model = job.model(config, facts);
  if (!isGpt(model)) {
    throw usage("a job whose model has the sizes of a GPT-2", name, "the planner knows no other family yet");
  }
  const { batchSize, accumulation } = job.training(config, facts);
  return { name, facts: factsOf(model), batchSize, accumulation };
}

function checkFlags({ cluster, precision, offload, offloadParameters, zero, ranks }: PlanFlags): void {
  const one = (flag: string, value: string, choices: readonly string[]) => {
    if (!choices.includes(value)) throw usage(`${flag} ${choices.join(", ")}`, value, "choose one of them");
  };
  one("--cluster", cluster, Object.keys(clusters));
  one("--precision", precision, ["fp32", "bf16", "fp16", "amp"]);
  if (!(offload >= 0 && offload <= 1)) throw usage("--offload from 0 to 1", String(offload), "a part");
  if (offloadParameters && (zero ?? 3) !== 3)
    throw usage("--zero 3 with --offload-parameters", String(zero), "others need them throughout");
  if (!Number.isSafeInteger(ranks) || ranks < 1) throw usage("--ranks ≥ 1", String(ranks), "a whole number");
}
