import * as z from "zod";
import { DEFAULT_RULES } from "../anomalies/index.ts";
import type { EventSink } from "../events/index.ts";
import { DEVICE_KINDS } from "../tensor/index.ts";
import { cadence, number, oneOf, options, text, toggle, whole, withHint } from "./kinds.ts";
import { named, option } from "./option.ts";

const MAX_RANKS = 256;
const LAST_PORT = 65_535;

/** Steps between two tellings of something that costs more than a step's own figures. */
const every = (interfaceName: string, flags: string, meaning: string, standard: number) =>
  named(
    interfaceName,
    "How often something is told that costs more than a step's own figures.",
    options({
      everySteps: option(cadence(), flags, "telemetry", meaning, {
        otherwise: Number.isFinite(standard) ? `${standard}` : "never",
      }),
    }),
  );

const DEVICE = new RegExp(`^(?:cpu|auto|(?:${DEVICE_KINDS.join("|")})(?::\\d{1,3})?)$`);
const device = "cpu, auto, or a device such as cuda or cuda:1";

const layout = {
  ranks: option(
    whole(1, MAX_RANKS).default(1),
    "--ranks <n>",
    "layout",
    "ranks in all: replicas × tp × pp; a thread each",
  ),
  tp: option(whole(1).default(1), "--tp <n>", "layout", "ranks that split one layer"),
  sequenceParallel: option(
    toggle().default(false),
    "--sequence-parallel",
    "layout",
    "ranks that split a layer also share the positions between the split layers",
  ),
  overlapChunks: option(
    whole(1).default(1),
    "--overlap-chunks <n>",
    "layout",
    "chunks in which the gathers and reductions of positions overlap the products beside them; 1: not at all",
  ),
  ep: option(
    whole(1).default(1),
    "--ep <n>",
    "layout",
    "replicas among which a model's experts are dealt; divides the replicas",
  ),
  pp: option(whole(1).default(1), "--pp <n>", "layout", "pipeline stages, each with a part of the blocks"),
  schedule: option(
    oneOf(["gpipe", "1f1b", "interleaved"]).optional(),
    "--schedule <name>",
    "layout",
    "order of micro-batches in the pipeline: gpipe, 1f1b or interleaved",
    { otherwise: "1f1b, with several chunks interleaved" },
  ),
  chunks: option(
    whole(1).default(1),
    "--chunks <n>",
    "layout",
    "parts of the model on each stage, for an interleaved schedule",
  ),
  zero: option(
    z
      .union([z.literal([0, 1, 2, 3]), z.enum(["oss", "sdp", "fsdp"])], {
        error: "0, 1, 2 or 3, or oss, sdp or fsdp",
      })
      .default(3),
    "--zero <level>",
    "layout",
    "what is split over the replicas, of blocks that do not say otherwise: 0 nothing, 1 or oss optimizer, 2 or sdp gradients, 3 or fsdp parameters",
    { type: 'number | "oss" | "sdp" | "fsdp"' },
  ),
  device: option(
    z.string({ error: device }).regex(DEVICE, { error: device }).default("cpu"),
    "--device <name>",
    "layout",
    "what the ranks compute on: cpu; cuda, all GPUs, over which they are spread, or cuda:N, one of them; sim or sim:N, pretend ones; auto: GPUs, or the host where there are none",
  ),
  placement: option(
    oneOf(["thread", "process"]).default("thread"),
    "--placement <where>",
    "layout",
    "where ranks live: on threads of this process, or in a process each, which a crash of native code in another leaves alive",
  ),
  carrier: option(
    oneOf(["auto", "gloo", "nccl"]).default("auto"),
    "--carrier <what>",
    "layout",
    "what carries tensors between ranks: auto, which is references within a process, shared memory between those of a host and TCP between hosts; gloo, which is TCP between processes that share no memory; or nccl, which is NCCL between processes of which each has a GPU of its own",
  ),
  reduction: option(
    oneOf(["ordered", "hierarchical"]).default("ordered"),
    "--reduction <order>",
    "layout",
    "how replicas' gradients are added where these do not all share a memory: rank after rank, with the bits of one host; or within each host (or device) first, then host after host, of which less crosses the network: bits of its own, the same each time",
  ),
};

/** What a run is trained by, as a difference between two of them is named. */
const CHANGEABLE = /^(all|data|batchSize|rampUp|clip|calculatePerTokenLoss|optimizers?|schedule)(\.[^,]+)?$/;
const changeable = "names such as optimizer.lr, schedule, batchSize, clip or data, or all";

const training = {
  steps: option(
    whole(0).optional(),
    "--steps <n>",
    "training",
    "optimizer steps in all; cuts the job's run short or prolongs it, its schedule stays",
    { otherwise: "the job's" },
  ),
  accumulation: option(
    whole(1).optional(),
    "--accumulation <n>",
    "training",
    "micro-batches of one replica in one step",
    { otherwise: "the job's" },
  ),
  seed: option(
    whole(0).optional(),
    "--seed <s>",
    "training",
    "every random number of the run follows from it",
    {
      otherwise: "1337, or the checkpoint's",
    },
  ),
  resume: option(
    text("the folder of a checkpoint, or of a run's checkpoints, or auto").optional(),
    "--resume <dir>",
    "training",
    "go on from a checkpoint, or from the newest whole one of a run; auto: from that of --checkpoint, where it holds any, so that the same command begins a run and goes on with it",
    { otherwise: "a run from its first step" },
  ),
  change: option(
    z
      .array(z.string().regex(CHANGEABLE, { error: changeable }), { error: changeable })
      .readonly()
      .default([]),
    "--change <names>",
    "training",
    "what may be other than in the run of the checkpoint, such as optimizer.lr,data; all: whatever it is. What is not named is refused, what is changed is told",
    { otherwise: "nothing" },
  ),
};

const ofScale = { scale: z.number({ error: "a positive number" }).optional() };
const optional = z.number({ error: "a number" }).optional();

const precision = {
  precision: option(
    oneOf(["fp32", "bf16", "fp16", "amp-bf16", "amp-fp16"]).default("fp32"),
    "--precision <name>",
    "precision",
    "what ranks compute in: fp32, bf16, fp16, or autocast over fp32 weights: amp-bf16, amp-fp16; masters and optimizer state are always float32",
  ),
  lossScale: option(
    z
      .union(
        [
          number("a positive number", (value) => value > 0 && value < Number.POSITIVE_INFINITY),
          z.enum(["torch", "bmtrain", "megatron"]),
          z.discriminatedUnion(
            "kind",
            [
              options({ kind: z.literal("static"), scale: z.number({ error: "a positive number" }) }),
              options({
                kind: z.literal("bmtrain"),
                ...ofScale,
                factor: optional,
                goodSteps: optional,
                min: optional,
                max: number("a number", () => true).optional(),
                clamp: toggle().optional(),
              }),
              options({
                kind: z.literal("megatron"),
                ...ofScale,
                min: optional,
                window: optional,
                hysteresis: optional,
              }),
              options({
                kind: z.literal("torch"),
                ...ofScale,
                growthFactor: optional,
                backoffFactor: optional,
                growthInterval: optional,
              }),
            ],
            { error: "a rule of kind static, bmtrain, megatron or torch" },
          ),
        ],
        { error: "a positive number, or torch, bmtrain, megatron or a rule" },
      )
      .optional(),
    "--loss-scale <scale>",
    "precision",
    "what the loss is multiplied by: a number, or by whose rules it changes: torch, bmtrain or megatron",
    {
      otherwise: "torch in float16, else none",
      type: '"torch" | "bmtrain" | "megatron" | number | LossScaleRule',
    },
  ),
  rounding: option(
    oneOf(["nearest", "stochastic"]).default("nearest"),
    "--rounding <how>",
    "precision",
    "how low-precision weights are made of their masters: to the nearest, or up or down by chance, right in the mean",
  ),
};

const execution = {
  recompute: option(
    z
      .union([z.boolean(), z.array(z.string().min(1)).readonly()], {
        error: "true, false or names of modules",
      })
      .default(false),
    "--recompute",
    "execution",
    "compute blocks again in backward instead of keeping what they computed, or only modules of each by their names",
    { also: { "--recompute-parts <names>": "only these modules of each block, such as attn,mlp" } },
  ),
  prefetchBytes: option(
    number("a size ≥ 0 such as 64MB", (value) => value >= 0).default(2 ** 28),
    "--prefetch <size>",
    "execution",
    "how far gathers of blocks run ahead of the computation, and updates of offloaded ones behind, such as 64MB; 0: on demand, Infinity: all at once",
    { unit: "bytes" },
  ),
  threadsPerRank: option(
    whole(1).optional(),
    "--threads-per-rank <n>",
    "execution",
    "threads of one rank's arithmetic",
    { otherwise: "the machine's cores, divided by the ranks" },
  ),
  bind: option(
    oneOf(["none", "cores", "numa"]).default("none"),
    "--bind <what>",
    "execution",
    "to what the threads of a rank keep (Linux): none; cores, its share of the processors that its host may use; numa, those of one NUMA node, over which a host's ranks are spread",
  ),
};

/** What ranks compute with lies in the host's memory already: only a file takes any of it off. */
const files = () =>
  z.enum(["nvme"], {
    error: ({ input }) =>
      input === "host" ? withHint("nvme", "on this device they are in the host's memory anyway") : "nvme",
  });

const offload = {
  offload: named(
    "OffloadOptions",
    "What is kept outside the ranks' shards, and where.",
    options({
      optimizer: option(
        oneOf(["host", "nvme"]).optional(),
        "--offload-optimizer <where>",
        "offload",
        "keep the optimizer's state, and update it, with an actor of its own a rank: in its memory (host) or in a file (nvme)",
        { otherwise: "within the shards" },
      ),
      ratio: option(
        number("a share from 0 to 1", (value) => value >= 0 && value <= 1).optional(),
        "--offload-ratio <share>",
        "offload",
        "how much of the optimizer's state, from 0 to 1; by whole blocks, the last ones first",
        { otherwise: "1" },
      ),
      activations: option(
        oneOf(["host", "nvme"]).optional(),
        "--offload-activations <where>",
        "offload",
        "keep what recomputed blocks keep for backward in files (nvme), or, of a device, in the host's memory (host)",
        { otherwise: "in memory" },
      ),
      parameters: option(
        files().optional(),
        "--offload-parameters <where>",
        "offload",
        "keep the parameters of blocks at ZeRO level 3 in files between their uses: nvme; in memory is where they are anyway",
        { otherwise: "in memory" },
      ),
      dir: option(
        text("a folder that can be written").optional(),
        "--offload-dir <dir>",
        "offload",
        "a folder on the disk that is to hold what goes into files; nothing is ever seen in it, and nothing is left",
        { otherwise: "none; must be given with nvme" },
      ),
    }),
  ).optional(),
};

const steps = (flags: string, meaning: string, otherwise: string) =>
  option(whole(1).optional(), flags, "checkpoint", meaning, { otherwise });

const checkpoint = {
  checkpoint: named(
    "CheckpointOptions",
    "Where a run's state is kept while it trains, how often, and what becomes of older ones.",
    options({
      dir: option(
        text("a folder").optional(),
        "--checkpoint <dir>",
        "checkpoint",
        "where checkpoints go, a folder that holds no other run or s3://BUCKET/PREFIX; a script that leaves it out has none on the disk",
        { otherwise: "auto on the command line: runs/<job>, numbered where that holds another run" },
      ),
      overwrite: option(
        toggle().default(false),
        "--overwrite",
        "checkpoint",
        "remove the checkpoints of another run that lie there; without it such a folder is refused",
      ),
      everySteps: steps(
        "--checkpoint-every <n>",
        "steps between checkpoints, the last of them after the last step",
        "500",
      ),
      whenBusy: option(
        oneOf(["wait", "skip"]).default("wait"),
        "--checkpoint-when-busy <what>",
        "checkpoint",
        "what becomes of a save that falls due while another is under way: training waits for that one, or it is left out (skip), which is told",
      ),
      writers: option(
        oneOf(["auto", "head", "ranks"]).default("auto"),
        "--checkpoint-writers <who>",
        "checkpoint",
        "who writes a checkpoint of several hosts: the head all of it; each rank's host what that rank keeps, where it cannot see the folder into one of its own (ranks); ranks if all see the folder, else head (auto)",
      ),
      keepLast: steps("--checkpoint-keep-last <k>", "keep the newest k checkpoints only", "all are kept"),
      keepEverySteps: steps(
        "--checkpoint-keep-every <n>",
        "of older ones, keep those whose step is a multiple of n",
        "none of them",
      ),
      inMemoryEverySteps: steps(
        "--checkpoint-in-memory-every <n>",
        "steps between copies of the state that stay in memory, to go back to without reading a disk",
        "no copies",
      ),
      maxStagedBytes: option(
        number("a size > 0 such as 8GB", (value) => value > 0).default(Number.POSITIVE_INFINITY),
        "--checkpoint-max-staged <size>",
        "checkpoint",
        "the most that one save may copy, such as 8GB: a run whose state is larger is refused",
        { unit: "bytes" },
      ),
    }),
  ).optional(),
};

const supervision = {
  deadlineMs: option(
    whole(1).default(600_000),
    "--deadline <ms>",
    "supervision",
    "how long one piece of work may take (a few steps, an evaluation, a save) before it counts as hung",
    { unit: "ms" },
  ),
  stallMs: option(
    whole(1).default(10_000),
    "--stall <ms>",
    "supervision",
    "how long an actor may show no progress in the middle of a step before it is named by actor.stalled and ended, so that its group starts again; never less than five times what is long among the latest 100 steps",
    { unit: "ms" },
  ),
  warmStandby: option(
    toggle().optional(),
    "",
    "supervision",
    "whether each actor of the group has a warm standby once the group has made steps for 2 s: a thread, or process, that has loaded its modules and waits to take its place, so that a restart is a matter of milliseconds; their memory is the price",
    {
      otherwise: "true where the run saves, in files or in memory",
      also: {
        "--no-warm-standby":
          "keep no thread or process ready to take an actor's place: a restart takes a second longer",
      },
    },
  ),
  signals: option(
    toggle().default(false),
    "",
    "supervision",
    "whether SIGINT, SIGTERM, SIGHUP, SIGUSR1 and SIGUSR2 end a run that is under way: the first saves after the steps that are granted, the second ends the process at once; troupe run does so",
  ),
  graceSeconds: option(
    number("> 0", (value) => value > 0).default(60),
    "--grace <seconds>",
    "supervision",
    "how long the steps that are granted and the save may take after a signal, before the run is given up",
    { unit: "s" },
  ),
  hostDeadlineSeconds: option(
    number("> 0", (value) => value > 0).default(300),
    "--host-deadline <seconds>",
    "supervision",
    "how long the hosts that a launcher starts may take to find each other",
    { unit: "s" },
  ),
  hostSilenceSeconds: option(
    number("≥ 0.4", (value) => value >= 0.4).default(1.8),
    "--host-silence <seconds>",
    "supervision",
    "after how long without a sign of life a host, or a process on one, counts as lost, whose connections do not close: its network is cut, or it is down",
    { unit: "s" },
  ),
  hosts: named(
    "HostsOptions",
    "How the hosts that a launcher starts know each other.",
    options({
      tls: named(
        "TlsOptions",
        "PEM files by which every host proves itself to the others, and hides what they say; all three.",
        options({
          cert: option(
            text("a file").optional(),
            "--tls-cert <file>",
            "supervision",
            "this host's certificate: control between hosts goes by TLS then, of which each end proves itself; tensors' bytes go over Gloo, which hides nothing",
            { otherwise: "none" },
          ),
          key: option(
            text("a file").optional(),
            "--tls-key <file>",
            "supervision",
            "the private key of this host's certificate",
            { otherwise: "none" },
          ),
          ca: option(
            text("a file").optional(),
            "--tls-ca <file>",
            "supervision",
            "the certificate that has signed those of all hosts",
            { otherwise: "none" },
          ),
        }),
      ).optional(),
      tokenFile: option(
        text("a file").optional(),
        "--host-token-file <file>",
        "supervision",
        "what opens the run to its hosts, in a file that its owner alone can read, the same on each; else the head makes one, and whoever can read the store in which hosts meet can join",
        { otherwise: "one is made" },
      ),
    }),
  ).prefault({}),
  maxRestarts: option(
    whole(0).default(3),
    "--max-restarts <n>",
    "supervision",
    "how often the rank group may be restarted within five minutes before the run fails",
  ),
};

const anomalies = {
  anomalies: option(
    named(
      "AnomalyOptions",
      "What is done where a run's figures are out of the ordinary; all of it is told, as `anomaly.detected`.",
      options({
        loss: option(
          oneOf(["stop", "skip", "rewind"]).default("stop"),
          "",
          "anomalies",
          "a loss that is infinite or not a number",
        ),
        gradient: option(
          oneOf(["stop", "skip", "rewind"]).default("stop"),
          "",
          "anomalies",
          "a gradient that is infinite or not a number, where no loss scale knows what to do then",
        ),
        spike: option(
          oneOf(["tell", "stop", "skip", "rewind"]).default("tell"),
          "",
          "anomalies",
          "a loss that stands out above those of the last 64 steps",
        ),
        spikeDeviations: option(
          z
            .number({ error: "a number > 0" })
            .gt(0, { error: "a number > 0" })
            .default(DEFAULT_RULES.spikeDeviations),
          "--spike-deviations <n>",
          "anomalies",
          "how far a spike stands out: in deviations, by the median absolute one, over the median",
        ),
        straggler: option(
          oneOf(["tell", "stop"]).default("tell"),
          "",
          "anomalies",
          "a rank that computes for longer than the ranks that do the same work, or where there are none, than before",
        ),
        stragglerFactor: option(
          z
            .number({ error: "a number > 1" })
            .gt(1, { error: "a number > 1" })
            .default(DEFAULT_RULES.stragglerFactor),
          "--straggler-factor <n>",
          "anomalies",
          "how many times as long a straggler computes",
        ),
        stragglerSteps: option(
          whole(1).default(DEFAULT_RULES.stragglerSteps),
          "--straggler-steps <n>",
          "anomalies",
          "in how many steps in a row",
        ),
      }),
    ).prefault({}),
    "--anomaly <what=policy>",
    "anomalies",
    "what is done about a loss, gradient, spike or straggler: tell, stop, skip or rewind; may be repeated",
  ),
};

const telemetry = {
  debug: option(
    toggle().default(false),
    "--debug",
    "telemetry",
    "tell an error with every frame, this package's and Node's too, and with all its causes: else with the lines of one's own that it has passed",
  ),
  trace: option(
    toggle().default(false),
    "--trace",
    "telemetry",
    "tell what every actor does, as activity.finished, and every message, as message.handled",
  ),
  traceEvery: option(
    whole(0).optional(),
    "--trace-every <n>",
    "telemetry",
    "of the steps and of other beginnings, each nth has its messages told, as message.handled; 0: none",
    { otherwise: "1 with trace, else 0" },
  ),
  memory: every(
    "MemoryOptions",
    "--memory-every <n>",
    "steps between two tellings of what each rank holds, as memory.measured",
    10,
  ).optional(),
  histograms: every(
    "HistogramOptions",
    "--histograms <n>",
    "steps between two tellings of how the values of parameters and gradients are spread, as histogram.measured",
    Number.POSITIVE_INFINITY,
  ).optional(),
  sinks: option(
    z
      .array(z.custom<EventSink>(isSink, { error: "a sink with write(event) and close()" }), {
        error: "a list of sinks",
      })
      .readonly()
      .default([]),
    "",
    "telemetry",
    "where events are written, from the first on; the runtime closes them when it stops",
    { otherwise: "none", type: "readonly EventSink[]" },
  ),
};

const dashboard = {
  dashboard: option(
    z
      .union(
        [
          z.boolean(),
          named(
            "DashboardOptions",
            "Where the page that shows a run is served.",
            options({
              port: option(
                whole(0, LAST_PORT).optional(),
                "--dashboard [port]",
                "dashboard",
                "serve a page that shows the run, on this port; 0: any free one",
                { otherwise: "4747, or any free one" },
              ),
              host: option(
                text("an address").optional(),
                "--dashboard-host <address>",
                "dashboard",
                "an address other than one of this machine's own opens the page to others, who need the token",
                { otherwise: "127.0.0.1" },
              ),
              tokenFile: option(
                text("a file").optional(),
                "--dashboard-token-file <file>",
                "dashboard",
                "keeps the token from one run to the next, so that a page that is open finds the next",
                { otherwise: "dashboard.token beside the checkpoints" },
              ),
            }),
          ),
        ],
        { error: "true, false or where to serve it" },
      )
      .default(false),
    "",
    "dashboard",
    "whether a page is served that shows the run; its address is `runtime.dashboardUrl`",
  ),
};

const delay = (flags: string, meaning: string) =>
  option(
    number("≥ 0", (value) => value >= 0 && value < Number.POSITIVE_INFINITY).default(0),
    flags,
    "slowdown",
    meaning,
    { unit: "ms" },
  );

const slowdown = {
  slowdown: named(
    "SlowdownOptions",
    "Delays on purpose, to see what is hidden behind the computation: what a slower disk or link would cost.",
    options({
      updateMs: delay("--slow-update <ms>", "delays each offloaded update on purpose"),
      reduceMs: delay("--slow-reduce <ms>", "delays each reduction of a block's gradient on purpose"),
      transferMs: delay(
        "--slow-transfer <ms>",
        "delays each way of a block's offloaded parameters from the file or into it on purpose",
      ),
    }),
  ).prefault({}),
};

/** What `Runtime.spawn` takes: how a run is spread and kept; the job itself says what is trained. */
export const runtimeSchema = named(
  "RuntimeOptions",
  "How a run is spread and kept; the job itself says what is trained. Every one may be left out.",
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

const output = {
  json: option(toggle().default(false), "--json", "output", "print events as JSON lines on standard output"),
  pino: option(
    toggle().default(false),
    "--pino",
    "output",
    "the same with the fields of pino, for pino-pretty",
  ),
  logEverySteps: option(
    whole(1).optional(),
    "--log-every <n>",
    "output",
    "steps between two lines of progress, where none is redrawn",
    { otherwise: "five seconds" },
  ),
  events: option(
    z.union([z.boolean(), z.string().min(1)], { error: "a file, true or false" }).default(true),
    "--events <file>",
    "output",
    "keep events as JSON lines in a file; true: events.jsonl beside the checkpoints, false: none",
    { otherwise: "events.jsonl beside the checkpoints", also: { "--no-events": "keep none" } },
  ),
  tensorboard: option(
    text("a folder").optional(),
    "--tensorboard <dir>",
    "output",
    "write event files for TensorBoard into this folder",
    { otherwise: "none" },
  ),
  prometheus: option(
    z
      .union(
        [
          z.boolean(),
          options({
            port: option(
              whole(0, LAST_PORT).optional(),
              "--prometheus [port]",
              "output",
              "serve metrics on loopback for Prometheus, on this port",
              { otherwise: "9464" },
            ),
          }),
        ],
        { error: "true, false or a port to serve them on" },
      )
      .default(false),
    "",
    "output",
    "whether metrics are served for Prometheus",
  ),
  traceFile: option(
    text("a file").optional(),
    "--trace-file <file>",
    "output",
    "write a trace of every actor and message for ui.perfetto.dev",
    { otherwise: "none" },
  ),
};

/** What `troupe run` takes beside its job: the runtime's options, and where it writes what happens. */
export const commandSchema = options({
  ...runtimeSchema.shape,
  output: options(output).prefault({}),
  set: z
    .record(
      z.string(),
      z.union([z.string(), z.number(), z.boolean()], { error: "a text, a number, true or false" }),
      {
        error: "settings of the job",
      },
    )
    .prefault({}),
});

function isSink(value: unknown): boolean {
  const sink = value as Partial<EventSink> | null;
  return typeof sink === "object" && typeof sink?.write === "function" && typeof sink.close === "function";
}
