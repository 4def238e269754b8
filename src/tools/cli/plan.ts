import { existsSync, writeFileSync } from "node:fs";
import { basename, resolve } from "node:path";
import { pathToFileURL } from "node:url";
import type { Command } from "commander";
import type * as z from "zod";
import { configure, trainingOf } from "../../actors/trainer/index.ts";
import { checkLayout, type Layout, parseZeroLevel } from "../../compute/parallel/index.ts";
import { deviceCount, numelOf } from "../../compute/tensor/index.ts";
import { TroupeError, whichPathWasMeant } from "../../errors/index.ts";
import { formatBytes } from "../../job/events/index.ts";
import { loadJob } from "../../job/index.ts";
import {
  commandSchema,
  Layers,
  options,
  optionsOf,
  ranksUpTo,
  read,
  runtimeSchema,
} from "../../job/options/index.ts";
import { autoModel, configOfFile } from "../../library/models/index.ts";
import * as planner from "../planner/index.ts";
import { bytes, number, print, quoted, readConfig, usage } from "./flags.ts";
import { addOptionFlags, typedOptions } from "./option-flags.ts";
import { type ConfigFlags, configFlag, givenAround, settingFlag } from "./run.ts";

const MAX_PLANNED_RANKS = 1 << 16;
const { tp, pp, schedule, chunks, zero, accumulation } = runtimeSchema.shape;
const { recompute, sequenceParallel, device, precision } = runtimeSchema.shape;
const ranks = ranksUpTo(MAX_PLANNED_RANKS);
const ofLayout = { ranks, tp, pp, schedule, chunks, zero, sequenceParallel, accumulation };
/** Options that a plan shares with a run, with the same names and defaults. */
const sharedSchema = options({ ...ofLayout, recompute, device, precision });
const shared = optionsOf(sharedSchema);

type Shared = z.output<typeof sharedSchema>;

/** Options of a plan, from flags, the environment and a file. */
interface PlanFlags extends Omit<Shared, "zero" | "precision" | "recompute" | "schedule"> {
  readonly schedule: NonNullable<Shared["schedule"]>;
  readonly zero: number;
  readonly precision: planner.PlannedPrecision;
  /** The precision as a run's option. */
  readonly runPrecision: string;
  readonly recompute?: boolean;
  /** Whether the user named a layout; else the best ones are looked for. */
  readonly asksForLayout: boolean;
  readonly set: Readonly<Record<string, string | number | boolean>>;
  readonly batch?: number;
  readonly offload: number;
  readonly offloadParameters: boolean;
  readonly cluster: planner.ClusterName;
  readonly memory?: number;
  readonly flops?: number;
  readonly simulate: boolean;
  readonly timeline?: string;
  readonly json: boolean;
}

type OwnFlags = Omit<PlanFlags, keyof Shared | "asksForLayout" | "runPrecision" | "set"> & ConfigFlags;

/** Options of a run that only a named layout has; each suggestion has its own. */
const FLAGS_OF_LAYOUT: ReadonlySet<string> = new Set(["--accumulation", "--schedule", "--chunks"]);

/** The most layouts that are suggested. */
const NUM_SUGGESTED = 8;

/** Adds `troupe plan JOB`. */
export function addPlanCommand(program: Command): void {
  const command = program
    .command("plan")
    .description("predict memory and step time of a layout, or suggest layouts that fit; nothing is trained")
    .argument("<job>", "a job's module, or a language model's config.json")
    .addOption(configFlag())
    .option("--batch <n>", "samples in a step (default: the job's, else one for each rank)", number)
    .option(
      "--offload <ratio>",
      "share of master weights and optimizer state in host memory, 0 to 1",
      number,
      0,
    )
    .option("--offload-parameters", "offload blocks' parameters between their uses (ZeRO-3)", false)
    .option("--cluster <name>", `kind of machines: ${Object.keys(planner.clusters).join(", ")}`, "h100")
    .option("--memory <size>", "memory of a rank, such as 80GB (default: the cluster's)", bytes)
    .option("--flops <n>", "measured FLOP/s of a rank's matrix products (default: the cluster's)", number)
    .option("--simulate", "simulate the schedules of all ranks in virtual time", false)
    .option("--timeline <file>", "simulate, and write a Chrome trace of one rank of each stage")
    .option("--json", "print one JSON object", false)
    .action(plan);
  addOptionFlags(command, shared).addOption(settingFlag());
}

/** Takes from the options of a run those that a plan needs; the others do not change its predictions. */
function flagsOf(own: OwnFlags, command: Command): PlanFlags {
  const around = givenAround(own);
  const typed = typedOptions(command, shared);
  const layers = new Layers([...around, ...typed]);
  const by = (path: readonly string[]) => layers.sourceOf(path)?.by ?? "";
  const known = Object.entries(layers.values).filter(([name]) => name in sharedSchema.shape);
  read(commandSchema, new Layers(around).values, by);
  const { zero, precision, recompute, schedule, ...asked } = read(
    sharedSchema,
    Object.fromEntries(known),
    by,
  );
  const isGiven = (name: string) => layers.sourceOf([name]) !== undefined;
  if (!isGiven("ranks")) throw usage("--ranks <n>", "none", "a plan needs the number of ranks");
  const asksForLayout = isGiven("zero") || isGiven("tp") || isGiven("pp");
  // A file describes a run, which may have more options than a plan obeys; what is typed is for this plan.
  if (!asksForLayout) refuseFlagsOfLayout(own, typed);
  return {
    ...own,
    ...asked,
    zero: parseZeroLevel(zero),
    schedule: schedule ?? (asked.chunks > 1 ? "interleaved" : "1f1b"),
    precision: precision.startsWith("amp") ? "amp" : (precision as planner.PlannedPrecision),
    runPrecision: precision,
    ...(isGiven("recompute") ? { recompute: recompute !== false } : {}),
    asksForLayout,
    set: (layers.values.set ?? {}) as PlanFlags["set"],
  };
}

/** Refuses flags about one layout, where the best ones are looked for. @throws {TroupeError} `USAGE` */
function refuseFlagsOfLayout({ simulate, timeline }: OwnFlags, typed: ReturnType<typeof typedOptions>): void {
  const flag =
    typed.map(({ by }) => by).find((by) => FLAGS_OF_LAYOUT.has(by)) ??
    (simulate ? "--simulate" : timeline === undefined ? undefined : "--timeline");
  if (flag === undefined) return;
  throw usage(
    `--zero, --tp or --pp with ${flag}`,
    "none of them",
    "without a layout the best are looked for",
  );
}

/** The model or job to plan. */
interface Subject {
  readonly name: string;
  readonly facts: planner.ModelFacts;
  readonly batchSize: number | undefined;
  readonly accumulation: number | undefined;
}

async function plan(path: string, own: OwnFlags, command: Command): Promise<void> {
  const flags = flagsOf(own, command);
  checkFlags(flags);
  const subject = await readSubject(resolve(path), flags);
  const batchSize = flags.batch ?? subject.batchSize ?? flags.ranks;
  if (flags.asksForLayout) planOne(path, subject, batchSize, flags);
  else suggest(path, subject, batchSize, flags);
}

function planOne(path: string, subject: Subject, batchSize: number, flags: PlanFlags): void {
  const { facts } = subject;
  const layout: Layout = {
    ranks: flags.ranks,
    tp: flags.tp,
    pp: flags.pp,
    ep: 1,
    zero: flags.zero,
    schedule: flags.schedule,
    chunks: flags.chunks,
    batchSize,
    accumulation: flags.accumulation ?? subject.accumulation ?? 1,
  };
  checkLayout(facts.layout, layout);
  const options = planOptionsOf(flags);
  const memory = planner.planMemory(facts, layout, options);
  const estimate = planner.estimateStep(facts, layout, options);
  const simulation = simulated(facts, layout, flags);
  if (flags.json) {
    const bytes = memory.map(({ passes: _, ...most }) => most);
    print(JSON.stringify({ layout, memory: bytes, estimate, ...(simulation && { simulation }) }));
    return;
  }
  const size = { samples: batchSize, tokens: facts.tokensPerSample };
  print(headline(subject, flags));
  print(planner.describeLayout(layout));
  print(planner.describeMemory(memory));
  const { unruled } = facts.trace(planner.traceOptions(layout, options));
  if (unruled.length > 0)
    print(`operators without a memory rule, their inputs and outputs counted as kept: ${unruled.join(", ")}`);
  print(
    simulation === undefined
      ? planner.describeEstimate(estimate, size)
      : planner.describeSimulation(simulation, planner.productRate(options.cluster, options.precision), size),
  );
  printCommand(path, layout, flags.recompute === true, flags);
}

/** Simulates the schedules if asked to, and writes the timeline. */
function simulated(
  facts: planner.ModelFacts,
  layout: Layout,
  flags: PlanFlags,
): Omit<planner.Simulation, "timeline"> | undefined {
  if (!flags.simulate && flags.timeline === undefined) return undefined;
  const firstOfStages = Array.from({ length: layout.pp }, (_, stage) => (stage * layout.ranks) / layout.pp);
  const timelineOf = flags.timeline === undefined ? [] : firstOfStages;
  const { timeline, ...simulation } = planner.simulate(facts, layout, {
    ...planOptionsOf(flags),
    timelineOf,
  });
  if (flags.timeline !== undefined) writeFileSync(flags.timeline, planner.chromeTrace(timeline));
  return simulation;
}

function suggest(path: string, subject: Subject, batchSize: number, flags: PlanFlags): void {
  const options = planOptionsOf(flags);
  const memoryBytes = flags.memory ?? options.cluster.memoryBytes;
  const suggestions = planner.suggestLayouts(subject.facts, {
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
  if (best.length === 0)
    throw new TroupeError("LAYOUT", {
      where: "troupe plan",
      expected: `a layout of ${flags.ranks} ranks that fits ${formatBytes(memoryBytes)} with a batch of ${batchSize}`,
      got: "none",
      hint: "use more ranks, --offload 1, or a batch that more ranks divide",
    });
  print(
    `layouts that fit ${formatBytes(memoryBytes)} per rank, the best of each split, fastest first (times are estimates)`,
  );
  print(planner.describeSuggestions(best, subject.facts.tokensPerSample));
  if (best[0] !== undefined) printCommand(path, best[0].layout, best[0].recompute, flags);
}

/** Prints the command that runs the planned layout; nothing for a config.json, which is no job. */
function printCommand(path: string, layout: Layout, recompute: boolean, flags: PlanFlags): void {
  if (path.endsWith(".json")) return;
  const numbers = {
    ranks: layout.ranks,
    tp: layout.tp,
    pp: layout.pp,
    zero: layout.zero,
    chunks: layout.chunks,
  };
  const words = [
    ...Object.entries(numbers).flatMap(([name, value]) =>
      value === 1 && name !== "zero" ? [] : [`--${name} ${value}`],
    ),
    ...(layout.pp > 1 ? [`--schedule ${layout.schedule}`] : []),
    `--accumulation ${layout.accumulation}`,
    `--precision ${flags.runPrecision}`,
    ...(flags.sequenceParallel && layout.tp > 1 ? ["--sequence-parallel"] : []),
    ...(flags.device === "cpu" ? [] : [`--device ${flags.device}`]),
    ...(recompute ? ["--recompute"] : []),
    ...(flags.offload > 0 ? [`--offload-optimizer host --offload-ratio ${flags.offload}`] : []),
    ...(flags.offloadParameters ? ["--offload-parameters nvme --offload-dir DIR"] : []),
    ...Object.entries(flags.set).map(([name, value]) => `--set ${quoted(`${name}=${value}`)}`),
  ];
  print(`\ntroupe run ${quoted(path)} ${words.join(" ")}`);
}

function headline({ name, facts }: Subject, { ranks, cluster, precision }: PlanFlags): string {
  const parameters = [
    ...facts.blocks.flatMap((block) => block.parameters),
    ...facts.root.map((use) => use.parameter),
  ];
  const count = parameters.reduce((sum, { shape }) => sum + numelOf(shape), 0);
  return `${name}: ${planner.describeCount(count)} parameters on ${ranks} ranks of ${cluster}, ${precision}`;
}

function planOptionsOf(
  flags: PlanFlags,
): planner.PlanOptions & { readonly cluster: ReturnType<typeof planner.calibrated> } {
  const { flops, recompute, precision, sequenceParallel, offload, offloadParameters, device } = flags;
  const isOnGpu = device.startsWith("cuda") || (device === "auto" && deviceCount("cuda") > 0);
  return {
    precision,
    device: isOnGpu ? "cuda" : "cpu",
    sequenceParallel,
    offloadRatio: offload,
    offloadParameters,
    cluster: planner.calibrated(
      planner.clusters[flags.cluster],
      flops === undefined
        ? {}
        : { [precision === "fp32" ? "float32FlopsPerSecond" : "flopsPerSecond"]: flops },
    ),
    ...(recompute === undefined ? {} : { recompute }),
  };
}

async function readSubject(path: string, flags: PlanFlags): Promise<Subject> {
  if (!existsSync(path))
    throw usage("a job's module or a config.json", path, whichPathWasMeant(path) ?? "give its path");
  const name = basename(path);
  if (path.endsWith(".json")) {
    const fields = readConfig(path, "a model's config.json", "give a file that can be read");
    const length = Number(fields.n_positions ?? fields.max_position_embeddings);
    const planned = planner.languageModel(() => autoModel("causal_lm", configOfFile(fields)), length);
    return { name, facts: planner.factsOf(planned), batchSize: undefined, accumulation: undefined };
  }
  const job = await loadJob(String(pathToFileURL(path)));
  const config = configure(job, flags.set);
  let training: Awaited<ReturnType<typeof trainingOf>> | undefined;
  const planned = await planner.plannedJob(job, config, async (facts) => {
    training = await trainingOf(job, config, facts);
    return microBatchSizes(
      flags,
      flags.batch ?? training.batchSize,
      flags.accumulation ?? training.accumulation,
    );
  });
  const { batchSize, accumulation } = training ?? {};
  return { name, facts: planner.factsOf(planned), batchSize, accumulation };
}

/** Micro-batch sizes to trace: those of the named layout, or of every layout considered. */
function microBatchSizes(flags: PlanFlags, batchSize: number, accumulation: number | undefined): number[] {
  const { ranks, tp, pp } = flags;
  if (flags.asksForLayout)
    return [Math.max(1, Math.floor((batchSize * tp * pp) / (ranks * (accumulation ?? 1))))];
  const replicas = Array.from({ length: ranks }, (_, index) => index + 1).filter((dp) => ranks % dp === 0);
  return replicas.flatMap((dp) => {
    const sizes = [];
    for (let size = batchSize / dp; Number.isInteger(size); size /= 2) sizes.push(size);
    return sizes;
  });
}

function checkFlags({ batch, cluster, offload, offloadParameters, zero }: PlanFlags): void {
  const one = (flag: string, value: string, choices: readonly string[]) => {
    if (!choices.includes(value)) throw usage(`${flag} ${choices.join(", ")}`, value, "choose one of them");
  };
  one("--cluster", cluster, Object.keys(planner.clusters));
  if (batch !== undefined && !(Number.isSafeInteger(batch) && batch >= 1))
    throw usage("--batch to be a whole number of at least 1", String(batch), "samples in a step");
  if (!(offload >= 0 && offload <= 1)) throw usage("--offload from 0 to 1", String(offload), "a fraction");
  if (offloadParameters && zero !== 3)
    throw usage(
      "--zero 3 with --offload-parameters",
      String(zero),
      "other levels need the parameters at all times",
    );
}
