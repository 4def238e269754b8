// Made from schema.ts by `npm run docs:options`. A test compares the two.
import type { EventSink } from "../events/index.ts";
import type { LossScaleRule } from "../optim/index.ts";

/** What ranks compute in. */
export type Precision = "fp32" | "bf16" | "fp16" | "amp-bf16" | "amp-fp16";

/** Where ranks live. */
export type RankPlacement = "thread" | "process";

/** What carries tensors between ranks. */
export type CarrierChoice = "auto" | "gloo" | "nccl";

/** How low-precision weights are made of their masters. */
export type Rounding = "nearest" | "stochastic";

/** How a run is spread and kept; the job itself says what is trained. Every one may be left out. */
export interface RuntimeOptions {
  /** Ranks in all: replicas × tp × pp; a thread each. Default: 1. */
  readonly ranks?: number | undefined;
  /** Ranks that split one layer. Default: 1. */
  readonly tp?: number | undefined;
  /** Ranks that split a layer also share the positions between the split layers. Default: false. */
  readonly sequenceParallel?: boolean | undefined;
  /**
   * Chunks in which the gathers and reductions of positions overlap the products beside them; 1: not at all. Default:
   * 1.
   */
  readonly overlapChunks?: number | undefined;
  /** Replicas among which a model's experts are dealt; divides the replicas. Default: 1. */
  readonly ep?: number | undefined;
  /** Pipeline stages, each with a part of the blocks. Default: 1. */
  readonly pp?: number | undefined;
  /**
   * Order of micro-batches in the pipeline: gpipe, 1f1b or interleaved. Default: 1f1b, with several chunks interleaved.
   */
  readonly schedule?: "gpipe" | "1f1b" | "interleaved" | undefined;
  /** Parts of the model on each stage, for an interleaved schedule. Default: 1. */
  readonly chunks?: number | undefined;
  /**
   * What is split over the replicas, of blocks that do not say otherwise: 0 nothing, 1 or oss optimizer, 2 or sdp
   * gradients, 3 or fsdp parameters. Default: 3.
   */
  readonly zero?: number | "oss" | "sdp" | "fsdp" | undefined;
  /**
   * What the ranks compute on: cpu; cuda, all GPUs, over which they are spread, or cuda:N, one of them; sim or sim:N,
   * pretend ones; auto: GPUs, or the host where there are none. Default: cpu.
   */
  readonly device?: string | undefined;
  /**
   * Where ranks live: on threads of this process, or in a process each, which a crash of native code in another leaves
   * alive. Default: thread.
   */
  readonly placement?: "thread" | "process" | undefined;
  /**
   * What carries tensors between ranks: auto, which is references within a process, shared memory between those of a
   * host and TCP between hosts; gloo, which is TCP between processes that share no memory; or nccl, which is NCCL
   * between processes of which each has a GPU of its own. Default: auto.
   */
  readonly carrier?: "auto" | "gloo" | "nccl" | undefined;
  /**
   * How replicas' gradients are added where these do not all share a memory: rank after rank, with the bits of one
   * host; or within each host (or device) first, then host after host, of which less crosses the network: bits of its
   * own, the same each time. Default: ordered.
   */
  readonly reduction?: "ordered" | "hierarchical" | undefined;
  /** Optimizer steps in all; cuts the job's run short or prolongs it, its schedule stays. Default: the job's. */
  readonly steps?: number | undefined;
  /** Micro-batches of one replica in one step. Default: the job's. */
  readonly accumulation?: number | undefined;
  /** Every random number of the run follows from it. Default: 1337, or the checkpoint's. */
  readonly seed?: number | undefined;
  /**
   * Go on from a checkpoint, or from the newest whole one of a run; auto: from that of --checkpoint, where it holds
   * any, so that the same command begins a run and goes on with it. Default: a run from its first step.
   */
  readonly resume?: string | undefined;
  /**
   * What may be other than in the run of the checkpoint, such as optimizer.lr,data; all: whatever it is. What is not
   * named is refused, what is changed is told. Default: nothing.
   */
  readonly change?: readonly string[] | undefined;
  /**
   * What ranks compute in: fp32, bf16, fp16, or autocast over fp32 weights: amp-bf16, amp-fp16; masters and optimizer
   * state are always float32. Default: fp32.
   */
  readonly precision?: "fp32" | "bf16" | "fp16" | "amp-bf16" | "amp-fp16" | undefined;
  /**
   * What the loss is multiplied by: a number, or by whose rules it changes: torch, bmtrain or megatron. Default: torch
   * in float16, else none.
   */
  readonly lossScale?: "torch" | "bmtrain" | "megatron" | number | LossScaleRule | undefined;
  /**
   * How low-precision weights are made of their masters: to the nearest, or up or down by chance, right in the mean.
   * Default: nearest.
   */
  readonly rounding?: "nearest" | "stochastic" | undefined;
  /**
   * Compute blocks again in backward instead of keeping what they computed, or only modules of each by their names.
   * Default: false.
   */
  readonly recompute?: boolean | readonly string[] | undefined;
  /**
   * How far gathers of blocks run ahead of the computation, and updates of offloaded ones behind, such as 64MB; 0: on
   * demand, Infinity: all at once. Default: 256 MiB.
   */
  readonly prefetchBytes?: number | undefined;
  /** Threads of one rank's arithmetic. Default: the machine's cores, divided by the ranks. */
  readonly threadsPerRank?: number | undefined;
  /**
   * To what the threads of a rank keep (Linux): none; cores, its share of the processors that its host may use; numa,
   * those of one NUMA node, over which a host's ranks are spread. Default: none.
   */
  readonly bind?: "none" | "cores" | "numa" | undefined;
  /** What is kept outside the ranks' shards, and where. */
  readonly offload?: OffloadOptions | undefined;
  /** Where a run's state is kept while it trains, how often, and what becomes of older ones. */
  readonly checkpoint?: CheckpointOptions | undefined;
  /**
   * How long one piece of work may take (a few steps, an evaluation, a save) before it counts as hung. Default: 600000.
   */
  readonly deadlineMs?: number | undefined;
  /**
   * How long an actor may show no progress in the middle of a step before it is named by actor.stalled and ended, so
   * that its group starts again; never less than five times what is long among the latest 100 steps. Default: 10000.
   */
  readonly stallMs?: number | undefined;
  /**
   * Whether each actor of the group has a warm standby once the group has made steps for 2 s: a thread, or process,
   * that has loaded its modules and waits to take its place, so that a restart is a matter of milliseconds; their
   * memory is the price. Default: true where the run saves, in files or in memory.
   */
  readonly warmStandby?: boolean | undefined;
  /**
   * Whether SIGINT, SIGTERM, SIGHUP, SIGUSR1 and SIGUSR2 end a run that is under way: the first saves after the steps
   * that are granted, the second ends the process at once; troupe run does so. Default: false.
   */
  readonly signals?: boolean | undefined;
  /**
   * How long the steps that are granted and the save may take after a signal, before the run is given up. Default: 60.
   */
  readonly graceSeconds?: number | undefined;
  /** How long the hosts that a launcher starts may take to find each other. Default: 300. */
  readonly hostDeadlineSeconds?: number | undefined;
  /**
   * After how long without a sign of life a host, or a process on one, counts as lost, whose connections do not close:
   * its network is cut, or it is down. Default: 1.8.
   */
  readonly hostSilenceSeconds?: number | undefined;
  /** How the hosts that a launcher starts know each other. */
  readonly hosts?: HostsOptions | undefined;
  /** How often the rank group may be restarted within five minutes before the run fails. Default: 3. */
  readonly maxRestarts?: number | undefined;
  /** What is done about a loss, gradient, spike or straggler: tell, stop, skip or rewind; may be repeated. */
  readonly anomalies?: AnomalyOptions | undefined;
  /**
   * Tell an error with every frame, this package's and Node's too, and with all its causes: else with the lines of
   * one's own that it has passed. Default: false.
   */
  readonly debug?: boolean | undefined;
  /** Tell what every actor does, as activity.finished, and every message, as message.handled. Default: false. */
  readonly trace?: boolean | undefined;
  /**
   * Of the steps and of other beginnings, each nth has its messages told, as message.handled; 0: none. Default: 1 with
   * trace, else 0.
   */
  readonly traceEvery?: number | undefined;
  /** Steps between two tellings of what each rank holds, as memory.measured. */
  readonly memory?: MemoryOptions | undefined;
  /** Steps between two tellings of how the values of parameters and gradients are spread, as histogram.measured. */
  readonly histograms?: HistogramOptions | undefined;
  /** Where events are written, from the first on; the runtime closes them when it stops. Default: none. */
  readonly sinks?: readonly EventSink[] | undefined;
  /** Whether a page is served that shows the run; its address is `runtime.dashboardUrl`. Default: false. */
  readonly dashboard?: boolean | DashboardOptions | undefined;
  /** Delays on purpose, to see what is hidden behind the computation: what a slower disk or link would cost. */
  readonly slowdown?: SlowdownOptions | undefined;
}

/** What is kept outside the ranks' shards, and where. */
export interface OffloadOptions {
  /**
   * Keep the optimizer's state, and update it, with an actor of its own a rank: in its memory (host) or in a file
   * (nvme). Default: within the shards.
   */
  readonly optimizer?: "host" | "nvme" | undefined;
  /** How much of the optimizer's state, from 0 to 1; by whole blocks, the last ones first. Default: 1. */
  readonly ratio?: number | undefined;
  /**
   * Keep what recomputed blocks keep for backward in files (nvme), or, of a device, in the host's memory (host).
   * Default: in memory.
   */
  readonly activations?: "host" | "nvme" | undefined;
  /**
   * Keep the parameters of blocks at ZeRO level 3 in files between their uses: nvme; in memory is where they are
   * anyway. Default: in memory.
   */
  readonly parameters?: "nvme" | undefined;
  /**
   * A folder on the disk that is to hold what goes into files; nothing is ever seen in it, and nothing is left.
   * Default: none; must be given with nvme.
   */
  readonly dir?: string | undefined;
}

/** Where a run's state is kept while it trains, how often, and what becomes of older ones. */
export interface CheckpointOptions {
  /**
   * Where checkpoints go, a folder that holds no other run or s3://BUCKET/PREFIX; a script that leaves it out has none
   * on the disk. Default: auto on the command line: runs/<job>, numbered where that holds another run.
   */
  readonly dir?: string | undefined;
  /** Remove the checkpoints of another run that lie there; without it such a folder is refused. Default: false. */
  readonly overwrite?: boolean | undefined;
  /** Steps between checkpoints, the last of them after the last step. Default: 500. */
  readonly everySteps?: number | undefined;
  /**
   * What becomes of a save that falls due while another is under way: training waits for that one, or it is left out
   * (skip), which is told. Default: wait.
   */
  readonly whenBusy?: "wait" | "skip" | undefined;
  /**
   * Who writes a checkpoint of several hosts: the head all of it; each rank's host what that rank keeps, where it
   * cannot see the folder into one of its own (ranks); ranks if all see the folder, else head (auto). Default: auto.
   */
  readonly writers?: "auto" | "head" | "ranks" | undefined;
  /** Keep the newest k checkpoints only. Default: all are kept. */
  readonly keepLast?: number | undefined;
  /** Of older ones, keep those whose step is a multiple of n. Default: none of them. */
  readonly keepEverySteps?: number | undefined;
  /**
   * Steps between copies of the state that stay in memory, to go back to without reading a disk. Default: no copies.
   */
  readonly inMemoryEverySteps?: number | undefined;
  /** The most that one save may copy, such as 8GB: a run whose state is larger is refused. Default: Infinity. */
  readonly maxStagedBytes?: number | undefined;
}

/** How the hosts that a launcher starts know each other. */
export interface HostsOptions {
  /** PEM files by which every host proves itself to the others, and hides what they say; all three. */
  readonly tls?: TlsOptions | undefined;
  /**
   * What opens the run to its hosts, in a file that its owner alone can read, the same on each; else the head makes
   * one, and whoever can read the store in which hosts meet can join. Default: one is made.
   */
  readonly tokenFile?: string | undefined;
}

/** PEM files by which every host proves itself to the others, and hides what they say; all three. */
export interface TlsOptions {
  /**
   * This host's certificate: control between hosts goes by TLS then, of which each end proves itself; tensors' bytes go
   * over Gloo, which hides nothing. Default: none.
   */
  readonly cert?: string | undefined;
  /** The private key of this host's certificate. Default: none. */
  readonly key?: string | undefined;
  /** The certificate that has signed those of all hosts. Default: none. */
  readonly ca?: string | undefined;
}

/** What is done where a run's figures are out of the ordinary; all of it is told, as `anomaly.detected`. */
export interface AnomalyOptions {
  /** A loss that is infinite or not a number. Default: stop. */
  readonly loss?: "stop" | "skip" | "rewind" | undefined;
  /** A gradient that is infinite or not a number, where no loss scale knows what to do then. Default: stop. */
  readonly gradient?: "stop" | "skip" | "rewind" | undefined;
  /** A loss that stands out above those of the last 64 steps. Default: tell. */
  readonly spike?: "tell" | "stop" | "skip" | "rewind" | undefined;
  /** How far a spike stands out: in deviations, by the median absolute one, over the median. Default: 8. */
  readonly spikeDeviations?: number | undefined;
  /**
   * A rank that computes for longer than the ranks that do the same work, or where there are none, than before.
   * Default: tell.
   */
  readonly straggler?: "tell" | "stop" | undefined;
  /** How many times as long a straggler computes. Default: 2. */
  readonly stragglerFactor?: number | undefined;
  /** In how many steps in a row. Default: 10. */
  readonly stragglerSteps?: number | undefined;
}

/** How often something is told that costs more than a step's own figures. */
export interface MemoryOptions {
  /** Steps between two tellings of what each rank holds, as memory.measured. Default: 10. */
  readonly everySteps: number;
}

/** How often something is told that costs more than a step's own figures. */
export interface HistogramOptions {
  /**
   * Steps between two tellings of how the values of parameters and gradients are spread, as histogram.measured.
   * Default: never.
   */
  readonly everySteps: number;
}

/** Where the page that shows a run is served. */
export interface DashboardOptions {
  /** Serve a page that shows the run, on this port; 0: any free one. Default: 4747, or any free one. */
  readonly port?: number | undefined;
  /**
   * An address other than one of this machine's own opens the page to others, who need the token. Default: 127.0.0.1.
   */
  readonly host?: string | undefined;
  /**
   * Keeps the token from one run to the next, so that a page that is open finds the next. Default: dashboard.token
   * beside the checkpoints.
   */
  readonly tokenFile?: string | undefined;
}

/** Delays on purpose, to see what is hidden behind the computation: what a slower disk or link would cost. */
export interface SlowdownOptions {
  /** Delays each offloaded update on purpose. Default: 0. */
  readonly updateMs?: number | undefined;
  /** Delays each reduction of a block's gradient on purpose. Default: 0. */
  readonly reduceMs?: number | undefined;
  /** Delays each way of a block's offloaded parameters from the file or into it on purpose. Default: 0. */
  readonly transferMs?: number | undefined;
}
