import * as z from "zod";
import { DEVICE_KINDS } from "../../compute/tensor/index.ts";
import { DEFAULT_RULES } from "../anomalies/index.ts";
import { type EventSink, METRICS_PORT } from "../events/index.ts";
import { cadence, number, oneOf, options, text, toggle, whole, withHint } from "./kinds.ts";
import { grouped, named, option } from "./option.ts";

const MAX_RANKS = 256;
const LAST_PORT = 65_535;
const USUAL_SEED = 1337;
/**
 * Share of the optimizer state that `offload.optimizer` offloads without a `ratio`. No default of the schema: it needs
 * `offload.optimizer`.
 */
export const USUAL_RATIO = 1;

/** An option for the number of steps between two events that cost more than the figures of a step. */
const every = (interfaceName: string, flags: string, meaning: string, everySteps: number) =>
  named(
    interfaceName,
    "How often to emit figures that cost more than a step's own.",
    options({
      everySteps: option(cadence(), flags, meaning, {
        otherwise: Number.isFinite(everySteps) ? `${everySteps}` : "never",
      }),
    }),
  ).prefault({ everySteps });

const DEVICE = new RegExp(`^(?:cpu|auto|(?:${DEVICE_KINDS.join("|")})(?::\\d{1,3})?)$`);
const device = "cpu, auto, or a device such as cuda or cuda:1";

/** The option for the number of ranks. @param most - threads and processes are limited; a plan may have any number */
export function ranksUpTo(most: number) {
  const meaning = "number of ranks: replicas × tp × pp; each has a thread";
  return grouped("layout", { ranks: option(whole(1, most).default(1), "--ranks <n>", meaning) }).ranks;
}

// biome-ignore format: a table, with a row on each line
const layout = grouped("layout", {
  ranks: ranksUpTo(MAX_RANKS),
  tp: option(whole(1).default(1), "--tp <n>", "ranks that split each layer (tensor parallelism)"),
  sequenceParallel: option(toggle().default(false), "--sequence-parallel",
    "also split positions over the tp ranks between the split layers"),
  overlapChunks: option(whole(1).default(1), "--overlap-chunks <n>",
    "number of chunks in which positions are gathered and reduced, to overlap communication with the matrix products; 1: no overlap"),
  ep: option(whole(1).default(1), "--ep <n>",
    "replicas over which the experts are spread (expert parallelism); must divide the number of replicas"),
  pp: option(whole(1).default(1), "--pp <n>", "pipeline stages, which split the blocks"),
  schedule: option(oneOf(["gpipe", "1f1b", "interleaved"]).optional(), "--schedule <name>",
    "order of micro-batches in the pipeline: gpipe, 1f1b or interleaved", { otherwise: "1f1b, or interleaved with several chunks" }),
  chunks: option(whole(1).default(1), "--chunks <n>", "model chunks on each stage, for the interleaved schedule"),
  zero: option(z.union([z.literal([0, 1, 2, 3]), z.enum(["oss", "sdp", "fsdp"])], { error: "0, 1, 2 or 3, or oss, sdp or fsdp" }).default(3),
    "--zero <level>",
    "state that the replicas split: 0 none, 1 or oss optimizer state, 2 or sdp also gradients, 3 or fsdp also parameters; a block may have its own level",
    { type: 'number | "oss" | "sdp" | "fsdp"' }),
  device: option(z.string({ error: device }).regex(DEVICE, { error: device }).default("cpu"), "--device <name>",
    "device of the ranks: cpu; cuda (spread over all GPUs) or cuda:N (one of them); sim or sim:N (simulated devices); auto: the GPUs if there are any, else the CPU"),
  placement: option(oneOf(["thread", "process"]).default("thread"), "--placement <where>",
    "where each rank runs: on a thread of this process, or in its own process, which survives a native crash of another rank"),
  carrier: option(oneOf(["auto", "gloo", "nccl"]).default("auto"), "--carrier <what>",
    "transport of tensors between ranks: auto (references within a process, shared memory within a host, TCP between hosts), gloo (TCP between processes) or nccl (between processes that each have their own GPU)"),
  reduction: option(oneOf(["ordered", "hierarchical"]).default("ordered"), "--reduction <order>",
    "order of gradient sums when replicas do not all share memory: ordered, rank after rank, with the same bits as on one host; or hierarchical, within each host (or device) first, which sends less over the network and gives different bits, the same in every run"),
});

/** Names of settings that a resumed run may change. */
const CHANGEABLE = /^(all|data|batchSize|rampUp|clip|calculatePerTokenLoss|optimizers?|schedule)(\.[^,]+)?$/;
const changeable = "names such as optimizer.lr, schedule, batchSize, clip or data, or all";

// biome-ignore format: a table, with a row on each line
const training = grouped("training", {
  steps: option(whole(0).optional(), "--steps <n>",
    "number of optimizer steps; ends the run earlier or later without changing its schedule", { otherwise: "the job's" }),
  accumulation: option(whole(1).optional(), "--accumulation <n>", "micro-batches of each replica in a step", { otherwise: "the job's" }),
  seed: option(whole(0).default(USUAL_SEED), "--seed <s>", "seed of every random number of the run",
    { otherwise: `${USUAL_SEED}, or the checkpoint's` }),
  resume: option(text("the folder of a checkpoint, or of a run's checkpoints, or auto").optional(), "--resume <dir>",
    "continue from a checkpoint, or from the newest undamaged one of a run; auto: from the newest in --checkpoint, or from the first step if there is none, so that one command starts and resumes a run",
    { otherwise: "start at the first step" }),
  change: option(z.array(z.string().regex(CHANGEABLE, { error: changeable }), { error: changeable }).readonly().default([]),
    "--change <names>",
    "settings that may differ from the checkpoint's run, such as optimizer.lr,data, or all; other differences are refused, and changes are reported",
    { otherwise: "nothing" }),
});

const ofScale = { scale: z.number({ error: "a positive number" }).optional() };
const optional = z.number({ error: "a number" }).optional();
const clamped = { max: number("a number", () => true).optional(), clamp: toggle().optional() };

// biome-ignore format: a table, with a row on each line
const lossScaleRule = z.discriminatedUnion("kind", [
  options({ kind: z.literal("static"), scale: z.number({ error: "a positive number" }) }),
  options({ kind: z.literal("bmtrain"), ...ofScale, factor: optional, goodSteps: optional, min: optional, ...clamped }),
  options({ kind: z.literal("megatron"), ...ofScale, min: optional, window: optional, hysteresis: optional }),
  options({ kind: z.literal("torch"), ...ofScale, growthFactor: optional, backoffFactor: optional, growthInterval: optional }),
], { error: "a rule of kind static, bmtrain, megatron or torch" });
const fixedScale = number("a positive number", (value) => value > 0 && value < Number.POSITIVE_INFINITY);
const lossScale = z.union([fixedScale, z.enum(["torch", "bmtrain", "megatron"]), lossScaleRule], {
  error: "a positive number, or torch, bmtrain, megatron or a rule",
});

// biome-ignore format: a table, with a row on each line
const precision = grouped("precision", {
  precision: option(oneOf(["fp32", "bf16", "fp16", "amp-bf16", "amp-fp16"]).default("fp32"), "--precision <name>",
    "dtype of the computation: fp32, bf16, fp16, or autocast over fp32 weights (amp-bf16, amp-fp16); master weights and optimizer state are always float32"),
  lossScale: option(lossScale.optional(), "--loss-scale <scale>",
    "loss scale: a fixed number, or a dynamic scale by the rules of torch, bmtrain or megatron",
    { otherwise: "torch in fp16, else none", type: '"torch" | "bmtrain" | "megatron" | number | LossScaleRule' }),
  rounding: option(oneOf(["nearest", "stochastic"]).default("nearest"), "--rounding <how>",
    "how master weights are rounded to low precision: to the nearest value, or stochastically (unbiased)"),
  invariant: option(toggle().default(false), "--invariant",
    "compute each row of a forward on its own, so that a token has the same log-probability, to the bit, in any batch, in training and in generation (not tried on a GPU yet)"),
});

// biome-ignore format: a table, with a row on each line
const execution = grouped("execution", {
  recompute: option(z.union([z.boolean(), z.array(z.string().min(1)).readonly()], { error: "true, false or names of modules" }).default(false),
    "--recompute", "recompute blocks in backward instead of keeping their activations; or only the named modules of each block",
    { also: { "--recompute-parts <names>": "recompute only these modules of each block, such as attn,mlp" } }),
  prefetchBytes: option(number("a size ≥ 0 such as 64MB", (value) => value >= 0).default(2 ** 28), "--prefetch <size>",
    "bytes of parameters to gather ahead of the computation, and of offloaded updates to leave behind it, such as 64MB; 0: gather on demand, Infinity: gather all at once",
    { unit: "bytes" }),
  graph: option(oneOf(["off", "exact", "fast"]).default("off"), "--graph <mode>",
    "how the operators of blocks are issued: off, one by one; exact, recorded once and replayed as programs, with the same bits (not tried on a GPU yet); fast, so too, and what follows a product in bfloat16 is computed with it (CPU), and elementwise operators in a row round once, with other bits"),
  threadsPerRank: option(whole(1).optional(), "--threads-per-rank <n>", "compute threads of each rank",
    { otherwise: "the machine's cores divided by its ranks" }),
  bind: option(oneOf(["none", "cores", "numa"]).default("none"), "--bind <what>",
    "where to pin each rank's threads (Linux): none; cores, the rank's share of the host's cores; numa, the cores of one NUMA node"),
});

/** On CPU, parameters are in host memory already: only files free any of it. */
const files = () =>
  z.enum(["nvme"], {
    error: ({ input }) =>
      input === "host" ? withHint("nvme", "on this device they already are in the host's memory") : "nvme",
  });

// biome-ignore format: a table, with a row on each line
const offload = grouped("offload", {
  offload: named("OffloadOptions", "State to keep outside the shards, and where.", options({
    optimizer: option(oneOf(["host", "nvme"]).optional(), "--offload-optimizer <where>",
      "an offload actor for each rank keeps and updates the optimizer state, in host memory (host) or in a file (nvme)",
      { otherwise: "within the shards" }),
    ratio: option(number("a share from 0 to 1", (value) => value >= 0 && value <= 1).optional(), "--offload-ratio <share>",
      "share of the optimizer state to offload, from 0 to 1, block by block from the last", { otherwise: `${USUAL_RATIO}` }),
    activations: option(oneOf(["host", "nvme"]).optional(), "--offload-activations <where>",
      "keep the inputs of recomputed blocks in files (nvme) or, on a device, in host memory (host)", { otherwise: "in memory" }),
    parameters: option(files().optional(), "--offload-parameters <where>",
      "keep the parameters of ZeRO-3 blocks in files between their uses (nvme)", { otherwise: "in memory" }),
    dir: option(text("a folder that can be written").optional(), "--offload-dir <dir>",
      "folder of the offload files, on a local disk; the files have no names and vanish with the process",
      { otherwise: "none; required with nvme" }),
  })).optional(),
});

const steps = (flags: string, meaning: string, otherwise: string) =>
  option(whole(1).optional(), flags, meaning, { otherwise });

// biome-ignore format: a table, with a row on each line
const checkpoint = grouped("checkpoint", {
  checkpoint: named("CheckpointOptions", "Where a run saves its state, how often, and which checkpoints it keeps.", options({
    dir: option(text("a folder").optional(), "--checkpoint <dir>",
      "folder of the checkpoints, or s3://BUCKET/PREFIX; must not hold those of another run. none on the command line, or left out in a script: nothing is saved to disk",
      { otherwise: "auto on the command line: runs/<job>, numbered if that folder holds another run" }),
    overwrite: option(toggle().default(false), "--overwrite",
      "remove another run's checkpoints from the folder; without this option such a folder is refused"),
    everySteps: option(whole(1).default(500), "--checkpoint-every <n>", "steps between checkpoints; the last step is always saved"),
    whenBusy: option(oneOf(["wait", "skip"]).default("wait"), "--checkpoint-when-busy <what>",
      "when a save is due while another is running: wait for it, or skip the new one and report that"),
    writers: option(oneOf(["auto", "head", "ranks"]).default("auto"), "--checkpoint-writers <who>",
      "who writes a checkpoint of several hosts: head writes all of it; ranks: each host writes its own ranks' part, into a local folder if it cannot see the shared one; auto: ranks if every host sees the folder, else head"),
    keepLast: steps("--checkpoint-keep-last <k>", "keep only the newest k checkpoints", "all"),
    keepEverySteps: steps("--checkpoint-keep-every <n>", "of the older checkpoints, keep those whose step is a multiple of n", "none"),
    inMemoryEverySteps: steps("--checkpoint-in-memory-every <n>",
      "steps between in-memory copies of the state, from which a run recovers without reading a disk", "no copies"),
    maxStagedBytes: option(number("a size > 0 such as 8GB", (value) => value > 0).default(Number.POSITIVE_INFINITY),
      "--checkpoint-max-staged <size>", "the most memory that one save may copy, such as 8GB; a run with a larger state is refused",
      { unit: "bytes" }),
  })).optional(),
});

const file = (flags: string, meaning: string, otherwise = "none") =>
  option(text("a file").optional(), flags, meaning, { otherwise });
// biome-ignore format: a table, with a row on each line
const supervision = grouped("supervision", {
  deadlineMs: option(whole(1).default(600_000), "--deadline <ms>",
    "longest time for one piece of work (a few steps, an evaluation, a save) before it counts as hung", { unit: "ms" }),
  stallMs: option(whole(1).default(10_000), "--stall <ms>",
    "longest time without progress within a step before actor.stalled names the actor and its group restarts; also the longest time for a call into your own code (a batch, a loss, an import) before actor.stalled names it. At least five times a long step of the last 100",
    { unit: "ms" }),
  warmStandby: option(toggle().optional(), "",
    "whether each actor but the feeder has a warm standby, started once steps have been made for 2 s, for a live model at once: a thread or process that has loaded all modules and can take its place within milliseconds, at the cost of its memory",
    { otherwise: "true if the run saves, to files or in memory, and for live models", also: { "--no-warm-standby": "keep no warm standbys: a restart takes a second longer" } }),
  signals: option(toggle().default(false), "",
    "whether SIGINT, SIGTERM, SIGHUP, SIGUSR1 and SIGUSR2 end the run: the first lets the granted steps finish and saves, the second ends the process at once. troupe run sets it"),
  graceSeconds: option(number("> 0", (value) => value > 0).default(60), "--grace <seconds>",
    "longest time for the granted steps and the save after a signal before the run is abandoned", { unit: "s" }),
  hostDeadlineSeconds: option(number("> 0", (value) => value > 0).default(300), "--host-deadline <seconds>",
    "longest time for the launched hosts to find each other", { unit: "s" }),
  hostSilenceSeconds: option(number("≥ 0.4", (value) => value >= 0.4).default(1.8), "--host-silence <seconds>",
    "longest silence of a host, or of a process on it, before it counts as lost; for failures that do not close its connections (a cut network, a host that is down)",
    { unit: "s" }),
  hosts: named("HostsOptions", "How the launched hosts authenticate each other.", options({
    tls: named("TlsOptions", "PEM files for mutual TLS between the hosts; all three are needed.", options({
      cert: file("--tls-cert <file>",
        "this host's certificate. Control messages between hosts then use mutual TLS; tensors go over Gloo, unencrypted"),
      key: file("--tls-key <file>", "private key of this host's certificate"),
      ca: file("--tls-ca <file>", "certificate of the authority that signed every host's"),
    })).optional(),
    tokenFile: file("--host-token-file <file>",
      "file with the token that admits hosts to the run: the same on each host, readable by its owner only. Without it the head makes a token, and anyone who can read the rendezvous store can join",
      "the head makes one"),
  })).prefault({}),
  maxRestarts: option(whole(0).default(3), "--max-restarts <n>",
    "restarts of the rank group allowed within five minutes before the run fails"),
});

const ends = () => oneOf(["stop", "skip", "rewind"]);
const above = (least: number) =>
  z.number({ error: `a number > ${least}` }).gt(least, { error: `a number > ${least}` });
// biome-ignore format: a table, with a row on each line
const anomalies = grouped("anomalies", {
  anomalies: option(
    named("AnomalyOptions", "Reactions to anomalies; each anomaly is reported as `anomaly.detected`.", options({
      loss: option(ends().default("stop"), "", "a loss that is infinite or not a number"),
      gradient: option(ends().default("stop"), "", "a gradient that is infinite or not a number, unless a loss scale handles it"),
      spike: option(oneOf(["tell", "stop", "skip", "rewind"]).default("tell"), "", "a loss far above those of the last 64 steps"),
      spikeDeviations: option(above(0).default(DEFAULT_RULES.spikeDeviations), "--spike-deviations <n>",
        "how far above the median a loss counts as a spike, in deviations estimated by the median absolute deviation"),
      straggler: option(oneOf(["tell", "stop"]).default("tell"), "",
        "a rank that computes longer than ranks with the same work, or, if there are none, longer than before"),
      stragglerFactor: option(above(1).default(DEFAULT_RULES.stragglerFactor), "--straggler-factor <n>",
        "how many times longer a rank must compute to count as a straggler"),
      stragglerSteps: option(whole(1).default(DEFAULT_RULES.stragglerSteps), "--straggler-steps <n>",
        "how many such steps in a row make a rank a straggler"),
    })).prefault({}),
    "--anomaly <what=policy>",
    "what to do about a loss, gradient, spike or straggler: tell (report only), stop, skip the update, or rewind; may be repeated",
  ),
});

const sink = z.custom<EventSink>(isSink, { error: "a sink with write(event) and close()" });
const sinks = z.array(sink, { error: "a list of sinks" });

// biome-ignore format: a table, with a row on each line
const telemetry = grouped("telemetry", {
  debug: option(toggle().default(false), "--debug",
    "show errors with every stack frame and all causes, instead of the user's own lines only"),
  trace: option(toggle().default(false), "--trace",
    "emit every activity of an actor (activity.finished) and every message (message.handled)"),
  traceEvery: option(whole(0).optional(), "--trace-every <n>",
    "trace the messages of every nth step, or other root message, as message.handled; 0: none", { otherwise: "1 with trace, else 0" }),
  // Counting takes about 60 µs for eight ranks; every tenth step makes that negligible.
  memory: every("MemoryOptions", "--memory-every <n>", "steps between events with each rank's memory (memory.measured)", 10),
  histograms: every("HistogramOptions", "--histograms <n>",
    "steps between events with histograms of parameters and gradients (histogram.measured)", Number.POSITIVE_INFINITY),
  sinks: option(sinks.readonly().default([]), "",
    "sinks that write the events, from the first on; the runtime closes them when it stops",
    { otherwise: "none", type: "readonly EventSink[]" }),
});

// biome-ignore format: a table, with a row on each line
const dashboardPlace = named("DashboardOptions", "Where the dashboard is served.", options({
  port: option(whole(0, LAST_PORT).optional(), "--dashboard [port]", "serve the dashboard on this port; 0: any free one",
    { otherwise: "4747, or any free one if it is taken" }),
  host: option(text("an address").optional(), "--dashboard-host <address>",
    "address to serve the dashboard on; other machines that can reach it need the token", { otherwise: "127.0.0.1" }),
  tokenFile: file("--dashboard-token-file <file>",
    "file that keeps the token between runs, so that an open page finds the next run",
    "dashboard.token beside the checkpoints"),
}));
const isServed = z.union([z.boolean(), dashboardPlace], { error: "true, false or where to serve it" });
const dashboard = grouped("dashboard", {
  dashboard: option(
    isServed.default(false),
    "",
    "whether the dashboard is served; its address is `runtime.dashboardUrl`",
  ),
});

const delay = (flags: string, meaning: string) =>
  option(
    number("≥ 0", (value) => value >= 0 && value < Number.POSITIVE_INFINITY).default(0),
    flags,
    meaning,
    { unit: "ms" },
  );

// biome-ignore format: a table, with a row on each line
const slowdown = grouped("slowdown", {
  slowdown: named("SlowdownOptions", "Deliberate delays, to measure the cost of a slower disk or link.", options({
    updateMs: delay("--slow-update <ms>", "delay each offloaded update"),
    reduceMs: delay("--slow-reduce <ms>", "delay each reduction of a block's gradient"),
    transferMs: delay("--slow-transfer <ms>", "delay each transfer of a block's offloaded parameters to or from its file"),
  })).prefault({}),
});

/** The runtime's options by group, see `RuntimeSettings`. */
export const shapes = {
  layout,
  training,
  precision,
  execution,
  offload,
  checkpoint,
  supervision,
  anomalies,
  telemetry,
  dashboard,
  slowdown,
};

/** The options of `Runtime.spawn`: how a run is distributed and saved. The job says what is trained. */
export const runtimeSchema = named(
  "RuntimeOptions",
  "How a run is distributed and saved; the job says what is trained. Every option may be left out.",
  options({
    ...layout,
    ...training,
    ...precision,
    ...execution,
    ...offload,
    ...checkpoint,
    ...supervision,
    ...anomalies,
    ...telemetry,
    ...dashboard,
    ...slowdown,
  }),
);

// biome-ignore format: a table, with a row on each line
const output = grouped("output", {
  json: option(toggle().default(false), "--json", "print events as JSON lines on standard output"),
  pino: option(toggle().default(false), "--pino", "print events as JSON lines with pino's fields, for pino-pretty"),
  logEverySteps: option(whole(1).optional(), "--log-every <n>", "steps between progress lines when the output is not a terminal",
    { otherwise: "one every five seconds" }),
  events: option(z.union([z.boolean(), z.string().min(1)], { error: "a file, true or false" }).default(true), "--events <file>",
    "file to write the events to, as JSON lines; true: events.jsonl beside the checkpoints, false: none",
    { otherwise: "events.jsonl beside the checkpoints", also: { "--no-events": "write no event file" } }),
  tensorboard: option(text("a folder").optional(), "--tensorboard <dir>", "write TensorBoard event files into this folder",
    { otherwise: "none" }),
  mlflow: option(text("the address of a server").optional(), "--mlflow <url>",
    "track the run on this MLflow server; experiment and credentials by MLflow's environment variables", { otherwise: "none" }),
  mlflowCheckpoints: option(toggle().default(false), "--mlflow-checkpoints", "send each checkpoint's files to MLflow as artifacts"),
  wandb: option(text("a folder").optional(), "--wandb <dir>", "write Weights & Biases' offline files into this folder, for wandb sync",
    { otherwise: "none" }),
  prometheus: option(z.union([z.boolean(), options({
    port: option(whole(0, LAST_PORT).optional(), "--prometheus [port]",
      "serve metrics for Prometheus on this port of the loopback address", { otherwise: `${METRICS_PORT}` }),
  })], { error: "true, false or a port to serve them on" }).default(false), "", "whether metrics are served for Prometheus"),
  traceFile: file("--trace-file <file>", "write a trace of every actor and message for ui.perfetto.dev"),
});

/** The options of `troupe run`: those of the runtime, its outputs, and the job's settings. */
export const commandSchema = options({
  ...runtimeSchema.shape,
  output: options(output)
    .refine(({ mlflow, mlflowCheckpoints }) => mlflow !== undefined || !mlflowCheckpoints, {
      path: ["mlflowCheckpoints"],
      error: "false without mlflow, the server that takes the files",
    })
    .prefault({}),
  set: z
    .record(
      z.string(),
      z.union([z.string(), z.number(), z.boolean()], { error: "a text, a number, true or false" }),
      { error: "settings of the job" },
    )
    .prefault({}),
});

function isSink(value: unknown): boolean {
  const sink = value as Partial<EventSink> | null;
  return typeof sink === "object" && typeof sink?.write === "function" && typeof sink.close === "function";
}
