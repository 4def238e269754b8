import { existsSync } from "node:fs";
import { basename, join, parse, resolve } from "node:path";
import { pathToFileURL } from "node:url";
import type { Command } from "commander";
import { TroupeError } from "../errors.ts";
import {
  type AnomalyOptions,
  type CarrierChoice,
  type Precision,
  type RankPlacement,
  type Rounding,
  Runtime,
  type RuntimeOptions,
  type ScheduleName,
  type ZeroName,
} from "../trainer/index.ts";
import { addCheckpointFlags, type CheckpointFlags, checkpointOf } from "./checkpoint-flags.ts";
import { addDashboardFlags, type DashboardFlags, dashboardOf, tellAddress } from "./dashboard.ts";
import { bytes, number, pair, setting, usage } from "./flags.ts";
import { addSinkFlags, type SinkFlags, sinksOf, telemetryOf } from "./sinks.ts";

interface RunFlags extends CheckpointFlags, DashboardFlags, SinkFlags {
  readonly ranks: number;
  readonly tp: number;
  readonly sequenceParallel: boolean;
  readonly overlapChunks: number;
  readonly ep: number;
  readonly pp: number;
  readonly schedule?: ScheduleName;
  readonly chunks: number;
  readonly accumulation?: number;
  readonly recompute: boolean;
  readonly recomputeParts?: readonly string[];
  readonly zero: number | ZeroName;
  readonly prefetch?: number;
  readonly placement: RankPlacement;
  readonly carrier: CarrierChoice;
  readonly precision: Precision;
  readonly lossScale?: NonNullable<RuntimeOptions["lossScale"]>;
  readonly rounding: Rounding;
  readonly steps?: number;
  readonly seed?: number;
  readonly set: Record<string, string>;
  readonly anomaly: Record<string, string>;
  readonly resume?: string;
  readonly offloadOptimizer?: "host" | "nvme";
  readonly offloadRatio?: number;
  readonly offloadActivations?: "nvme";
  readonly offloadParameters?: "nvme";
  readonly offloadDir?: string;
}

/** Adds `troupe run JOB`. */
export function addRunCommand(program: Command): void {
  const command = program
    .command("run")
    .description("train a job: a module whose default export is defineJob({ … })")
    .argument("<job>", "path of the job's module")
    .option("--ranks <n>", "ranks, a thread each", number, 1)
    .option("--tp <n>", "ranks that split one layer", number, 1)
    .option("--sequence-parallel", "ranks that split a layer also share the positions between layers", false)
    .option("--overlap-chunks <n>", "chunks in which their gathers overlap products", number, 1)
    .option("--ep <n>", "replicas among which a model's experts are dealt", number, 1)
    .option("--pp <n>", "pipeline stages, each with a part of the blocks", number, 1)
    .option("--schedule <name>", "order of micro-batches in the pipeline: gpipe, 1f1b or interleaved")
    .option("--chunks <n>", "parts of the model on each stage, for an interleaved schedule", number, 1)
    .option(
      "--accumulation <n>",
      "micro-batches of one replica in one step, in place of the job's own",
      number,
    )
    .option("--recompute", "compute blocks again in backward instead of keeping what they computed", false)
    .option("--recompute-parts <names>", "only these modules of each block, such as attn,mlp", parts)
    .option("--carrier <what>", "what carries tensors between ranks: auto, or gloo between processes", "auto")
    .option("--placement <where>", "where ranks live: thread, or process for one each", "thread")
    .option(
      "--zero <level>",
      "what is split over the replicas: 0 nothing, 1 or oss optimizer, 2 or sdp gradients, 3 or fsdp parameters",
      zeroLevel,
      3,
    )
    .option(
      "--precision <name>",
      "fp32, bf16, fp16, or autocast over fp32 weights: amp-bf16, amp-fp16",
      "fp32",
    )
    .option(
      "--loss-scale <scale>",
      "a number, or by whose rules it changes: torch, bmtrain or megatron (default: torch in float16)",
      lossScale,
    )
    .option("--rounding <how>", "of narrow weights: nearest, or stochastic", "nearest")
    .option("--steps <n>", "optimizer steps, in place of the job's own number", number)
    .option("--seed <s>", "all random numbers follow from it (default: 1337, or the checkpoint's)", number)
    .option("--set <key=value>", "a setting of the job; may be repeated", setting, {})
    .option(
      "--anomaly <what=policy>",
      "what is done about a loss, gradient, spike or straggler: tell, stop, skip or rewind; may be repeated",
      pair("--anomaly WHAT=POLICY", "--anomaly loss=skip"),
      {},
    )
    .option("--resume <dir>", "go on from a checkpoint, or from the newest whole one of a run")
    .option(
      "--offload-optimizer <where>",
      "keep the optimizer's state outside the shards: host (memory) or nvme (a file)",
    )
    .option("--offload-ratio <share>", "how much of it, from 0 to 1 (default: all)", number)
    .option("--offload-activations <where>", "keep what recomputed blocks keep for backward in a file: nvme")
    .option("--offload-parameters <where>", "keep blocks' parameters in a file between their uses: nvme")
    .option(
      "--prefetch <size>",
      "how far gathers of blocks run ahead, and updates of offloaded ones behind, such as 64MB (default: 256MiB)",
      bytes,
    )
    .option("--offload-dir <dir>", "a folder on the disk that is to hold what goes into files")
    .action(run);
  addCheckpointFlags(command);
  addDashboardFlags(command);
  addSinkFlags(command);
}

async function run(job: string, flags: RunFlags): Promise<void> {
  const path = resolve(job);
  if (!existsSync(path))
    throw usage(`a job's module at ${job}`, "no such file", "give its path, as in examples/gpt/job.ts");
  const checkpoint = checkpointOf(flags, join("runs", nameOf(path)));
  await using runtime = await Runtime.spawn({
    ranks: flags.ranks,
    tp: flags.tp,
    sequenceParallel: flags.sequenceParallel,
    overlapChunks: flags.overlapChunks,
    ep: flags.ep,
    pp: flags.pp,
    chunks: flags.chunks,
    recompute: flags.recomputeParts ?? flags.recompute,
    zero: flags.zero,
    ...(flags.prefetch === undefined ? {} : { prefetchBytes: flags.prefetch }),
    ...(flags.schedule === undefined ? {} : { schedule: flags.schedule }),
    ...(flags.accumulation === undefined ? {} : { accumulation: flags.accumulation }),
    placement: flags.placement,
    carrier: flags.carrier,
    precision: flags.precision,
    rounding: flags.rounding,
    ...(flags.lossScale === undefined ? {} : { lossScale: flags.lossScale }),
    checkpoint,
    ...(flags.steps === undefined ? {} : { steps: flags.steps }),
    ...(flags.seed === undefined ? {} : { seed: flags.seed }),
    ...(flags.resume === undefined ? {} : { resume: flags.resume }),
    ...telemetryOf(flags),
    anomalies: flags.anomaly as AnomalyOptions,
    ...offloadOf(flags),
    ...dashboardOf(flags),
  });
  tellAddress(runtime.dashboardUrl);
  for (const sink of await sinksOf(flags, checkpoint.dir)) runtime.addSink(sink);
  const { saveError } = await runtime.run(pathToFileURL(path), flags.set);
  if (saveError !== undefined) throw new TroupeError("CHECKPOINT_SAVE_FAILED", saveError.message);
}

/** A job is called by its file, or by its folder where the file is just `job.ts`. */
function nameOf(path: string): string {
  const { name, dir } = parse(path);
  return name === "job" ? basename(dir) : name;
}

function lossScale(text: string): NonNullable<RuntimeOptions["lossScale"]> {
  if (text === "torch" || text === "bmtrain" || text === "megatron") return { kind: text };
  return number(text);
}

function parts(text: string): string[] {
  return text.split(",").map((part) => part.trim());
}

/** What is no number may be a name; the runtime says which there are. */
function zeroLevel(text: string): RunFlags["zero"] {
  return text.trim() !== "" && Number.isFinite(Number(text)) ? Number(text) : (text as RunFlags["zero"]);
}

/** The flags of one subject as one option, where any is given. */
function offloadOf(flags: RunFlags): Pick<RuntimeOptions, "offload"> {
  const given = Object.entries({
    optimizer: flags.offloadOptimizer,
    ratio: flags.offloadRatio,
    activations: flags.offloadActivations,
    parameters: flags.offloadParameters,
    dir: flags.offloadDir,
  }).filter(([, value]) => value !== undefined);
  return given.length === 0 ? {} : { offload: Object.fromEntries(given) };
}
