// Made from schema.ts by `npm run docs:write`. A test compares the two.
import type { EventSink } from "../events/index.ts";
import type { LossScaleRule } from "../../compute/optim/index.ts";

/** Dtype of the ranks' computation. */
export type Precision = "fp32" | "bf16" | "fp16" | "amp-bf16" | "amp-fp16";

/** Where each rank runs. */
export type RankPlacement = "thread" | "process";

/** Transport of tensors between ranks. */
export type CarrierChoice = "auto" | "gloo" | "nccl";

/** How master weights are rounded to low precision. */
export type Rounding = "nearest" | "stochastic";

/** How a run is distributed and saved; the job says what is trained. Every option may be left out. */
export interface RuntimeOptions {
  /** Number of ranks: replicas × tp × pp; each has a thread. Default: 1. */
  readonly ranks?: number | undefined;
  /** Ranks that split each layer (tensor parallelism). Default: 1. */
  readonly tp?: number | undefined;
  /** Also split positions over the tp ranks between the split layers. Default: false. */
  readonly sequenceParallel?: boolean | undefined;
  /**
   * Number of chunks in which positions are gathered and reduced, to overlap communication with the matrix products; 1:
   * no overlap. Default: 1.
   */
  readonly overlapChunks?: number | undefined;
  /**
   * Replicas over which the experts are spread (expert parallelism); must divide the number of replicas. Default: 1.
   */
  readonly ep?: number | undefined;
  /** Pipeline stages, which split the blocks. Default: 1. */
  readonly pp?: number | undefined;
  /**
   * Order of micro-batches in the pipeline: gpipe, 1f1b or interleaved. Default: 1f1b, or interleaved with several
   * chunks.
   */
  readonly schedule?: "gpipe" | "1f1b" | "interleaved" | undefined;
  /** Model chunks on each stage, for the interleaved schedule. Default: 1. */
  readonly chunks?: number | undefined;
  /**
   * State that the replicas split: 0 none, 1 or oss optimizer state, 2 or sdp also gradients, 3 or fsdp also
   * parameters; a block may have its own level. Default: 3.
   */
  readonly zero?: number | "oss" | "sdp" | "fsdp" | undefined;
  /**
   * Device of the ranks: cpu; cuda (spread over all GPUs) or cuda:N (one of them); sim or sim:N (simulated devices);
   * auto: the GPUs if there are any, else the CPU. Default: cpu.
   */
  readonly device?: string | undefined;
  /**
   * Where each rank runs: on a thread of this process, or in its own process, which survives a native crash of another
   * rank. Default: thread.
   */
  readonly placement?: "thread" | "process" | undefined;
  /**
   * Transport of tensors between ranks: auto (references within a process, shared memory within a host, TCP between
   * hosts), gloo (TCP between processes) or nccl (between processes that each have their own GPU). Default: auto.
   */
  readonly carrier?: "auto" | "gloo" | "nccl" | undefined;
  /**
   * Order of gradient sums when replicas do not all share memory: ordered, rank after rank, with the same bits as on
   * one host; or hierarchical, within each host (or device) first, which sends less over the network and gives
   * different bits, the same in every run. Default: ordered.
   */
  readonly reduction?: "ordered" | "hierarchical" | undefined;
  /** Number of optimizer steps; ends the run earlier or later without changing its schedule. Default: the job's. */
  readonly steps?: number | undefined;
  /** Micro-batches of each replica in a step. Default: the job's. */
  readonly accumulation?: number | undefined;
  /** Seed of every random number of the run. Default: 1337, or the checkpoint's. */
  readonly seed?: number | undefined;
  /**
   * Continue from a checkpoint, or from the newest undamaged one of a run; auto: from the newest in --checkpoint, or
   * from the first step if there is none, so that one command starts and resumes a run. Default: start at the first
   * step.
   */
  readonly resume?: string | undefined;
  /**
   * Settings that may differ from the checkpoint's run, such as optimizer.lr,data, or all; other differences are
   * refused, and changes are reported. Default: nothing.
   */
  readonly change?: readonly string[] | undefined;
  /**
   * Dtype of the computation: fp32, bf16, fp16, or autocast over fp32 weights (amp-bf16, amp-fp16); master weights and
   * optimizer state are always float32. Default: fp32.
   */
  readonly precision?: "fp32" | "bf16" | "fp16" | "amp-bf16" | "amp-fp16" | undefined;
  /**
   * Loss scale: a fixed number, or a dynamic scale by the rules of torch, bmtrain or megatron. Default: torch in fp16,
   * else none.
   */
  readonly lossScale?: "torch" | "bmtrain" | "megatron" | number | LossScaleRule | undefined;
  /**
   * How master weights are rounded to low precision: to the nearest value, or stochastically (unbiased). Default:
   * nearest.
   */
  readonly rounding?: "nearest" | "stochastic" | undefined;
  /**
   * Compute each row of a forward on its own, so that a token has the same log-probability, to the bit, in any batch,
   * in training and in generation (not tried on a GPU yet). Default: false.
   */
  readonly invariant?: boolean | undefined;
  /**
   * Recompute blocks in backward instead of keeping their activations; or only the named modules of each block.
   * Default: false.
   */
  readonly recompute?: boolean | readonly string[] | undefined;
  /**
   * Bytes of parameters to gather ahead of the computation, and of offloaded updates to leave behind it, such as 64MB;
   * 0: gather on demand, Infinity: gather all at once. Default: 256 MiB.
   */
  readonly prefetchBytes?: number | undefined;
  /**
   * How the operators of blocks are issued: off, one by one; exact, recorded once and replayed as programs, with the
   * same bits (not tried on a GPU yet); fast, so too, and what follows a product in bfloat16 is computed with it (CPU),
   * and elementwise operators in a row round once, with other bits. Default: off.
   */
  readonly graph?: "off" | "exact" | "fast" | undefined;
  /** Compute threads of each rank. Default: the machine's cores divided by its ranks. */
  readonly threadsPerRank?: number | undefined;
  /**
   * Where to pin each rank's threads (Linux): none; cores, the rank's share of the host's cores; numa, the cores of one
   * NUMA node. Default: none.
   */
  readonly bind?: "none" | "cores" | "numa" | undefined;
  /** State to keep outside the shards, and where. */
  readonly offload?: OffloadOptions | undefined;
  /** Where a run saves its state, how often, and which checkpoints it keeps. */
  readonly checkpoint?: CheckpointOptions | undefined;
  /**
   * Longest time for one piece of work (a few steps, an evaluation, a save) before it counts as hung. Default: 600000.
   */
  readonly deadlineMs?: number | undefined;
  /**
   * Longest time without progress within a step before actor.stalled names the actor and its group restarts; also the
   * longest time for a call into your own code (a batch, a loss, an import) before actor.stalled names it. At least
   * five times a long step of the last 100. Default: 10000.
   */
  readonly stallMs?: number | undefined;
  /**
   * Whether each actor but the feeder has a warm standby, started once steps have been made for 2 s, for a live model
   * at once: a thread or process that has loaded all modules and can take its place within milliseconds, at the cost of
   * its memory. Default: true if the run saves, to files or in memory, and for live models.
   */
  readonly warmStandby?: boolean | undefined;
  /**
   * Whether SIGINT, SIGTERM, SIGHUP, SIGUSR1 and SIGUSR2 end the run: the first lets the granted steps finish and
   * saves, the second ends the process at once. troupe run sets it. Default: false.
   */
  readonly signals?: boolean | undefined;
  /** Longest time for the granted steps and the save after a signal before the run is abandoned. Default: 60. */
  readonly graceSeconds?: number | undefined;
  /** Longest time for the launched hosts to find each other. Default: 300. */
  readonly hostDeadlineSeconds?: number | undefined;
  /**
   * Longest silence of a host, or of a process on it, before it counts as lost; for failures that do not close its
   * connections (a cut network, a host that is down). Default: 1.8.
   */
  readonly hostSilenceSeconds?: number | undefined;
  /** How the launched hosts authenticate each other. */
  readonly hosts?: HostsOptions | undefined;
  /** Restarts of the rank group allowed within five minutes before the run fails. Default: 3. */
  readonly maxRestarts?: number | undefined;
  /**
   * What to do about a loss, gradient, spike or straggler: tell (report only), stop, skip the update, or rewind; may be
   * repeated.
   */
  readonly anomalies?: AnomalyOptions | undefined;
  /** Show errors with every stack frame and all causes, instead of the user's own lines only. Default: false. */
  readonly debug?: boolean | undefined;
  /** Emit every activity of an actor (activity.finished) and every message (message.handled). Default: false. */
  readonly trace?: boolean | undefined;
  /**
   * Trace the messages of every nth step, or other root message, as message.handled; 0: none. Default: 1 with trace,
   * else 0.
   */
  readonly traceEvery?: number | undefined;
  /** Steps between events with each rank's memory (memory.measured). */
  readonly memory?: MemoryOptions | undefined;
  /** Steps between events with histograms of parameters and gradients (histogram.measured). */
  readonly histograms?: HistogramOptions | undefined;
  /** Sinks that write the events, from the first on; the runtime closes them when it stops. Default: none. */
  readonly sinks?: readonly EventSink[] | undefined;
  /** Whether the dashboard is served; its address is `runtime.dashboardUrl`. Default: false. */
  readonly dashboard?: boolean | DashboardOptions | undefined;
  /** Deliberate delays, to measure the cost of a slower disk or link. */
  readonly slowdown?: SlowdownOptions | undefined;
}

/** State to keep outside the shards, and where. */
export interface OffloadOptions {
  /**
   * An offload actor for each rank keeps and updates the optimizer state, in host memory (host) or in a file (nvme).
   * Default: within the shards.
   */
  readonly optimizer?: "host" | "nvme" | undefined;
  /** Share of the optimizer state to offload, from 0 to 1, block by block from the last. Default: 1. */
  readonly ratio?: number | undefined;
  /**
   * Keep the inputs of recomputed blocks in files (nvme) or, on a device, in host memory (host). Default: in memory.
   */
  readonly activations?: "host" | "nvme" | undefined;
  /** Keep the parameters of ZeRO-3 blocks in files between their uses (nvme). Default: in memory. */
  readonly parameters?: "nvme" | undefined;
  /**
   * Folder of the offload files, on a local disk; the files have no names and vanish with the process. Default: none;
   * required with nvme.
   */
  readonly dir?: string | undefined;
}

/** Where a run saves its state, how often, and which checkpoints it keeps. */
export interface CheckpointOptions {
  /**
   * Folder of the checkpoints, or s3://BUCKET/PREFIX; must not hold those of another run. none on the command line, or
   * left out in a script: nothing is saved to disk. Default: auto on the command line: runs/<job>, numbered if that
   * folder holds another run.
   */
  readonly dir?: string | undefined;
  /** Remove another run's checkpoints from the folder; without this option such a folder is refused. Default: false. */
  readonly overwrite?: boolean | undefined;
  /** Steps between checkpoints; the last step is always saved. Default: 500. */
  readonly everySteps?: number | undefined;
  /** When a save is due while another is running: wait for it, or skip the new one and report that. Default: wait. */
  readonly whenBusy?: "wait" | "skip" | undefined;
  /**
   * Who writes a checkpoint of several hosts: head writes all of it; ranks: each host writes its own ranks' part, into
   * a local folder if it cannot see the shared one; auto: ranks if every host sees the folder, else head. Default:
   * auto.
   */
  readonly writers?: "auto" | "head" | "ranks" | undefined;
  /** Keep only the newest k checkpoints. Default: all. */
  readonly keepLast?: number | undefined;
  /** Of the older checkpoints, keep those whose step is a multiple of n. Default: none. */
  readonly keepEverySteps?: number | undefined;
  /**
   * Steps between in-memory copies of the state, from which a run recovers without reading a disk. Default: no copies.
   */
  readonly inMemoryEverySteps?: number | undefined;
  /** The most memory that one save may copy, such as 8GB; a run with a larger state is refused. Default: Infinity. */
  readonly maxStagedBytes?: number | undefined;
}

/** How the launched hosts authenticate each other. */
export interface HostsOptions {
  /** PEM files for mutual TLS between the hosts; all three are needed. */
  readonly tls?: TlsOptions | undefined;
  /**
   * File with the token that admits hosts to the run: the same on each host, readable by its owner only. Without it the
   * head makes a token, and anyone who can read the rendezvous store can join. Default: the head makes one.
   */
  readonly tokenFile?: string | undefined;
}

/** PEM files for mutual TLS between the hosts; all three are needed. */
export interface TlsOptions {
  /**
   * This host's certificate. Control messages between hosts then use mutual TLS; tensors go over Gloo, unencrypted.
   * Default: none.
   */
  readonly cert?: string | undefined;
  /** Private key of this host's certificate. Default: none. */
  readonly key?: string | undefined;
  /** Certificate of the authority that signed every host's. Default: none. */
  readonly ca?: string | undefined;
}

/** Reactions to anomalies; each anomaly is reported as `anomaly.detected`. */
export interface AnomalyOptions {
  /** A loss that is infinite or not a number. Default: stop. */
  readonly loss?: "stop" | "skip" | "rewind" | undefined;
  /** A gradient that is infinite or not a number, unless a loss scale handles it. Default: stop. */
  readonly gradient?: "stop" | "skip" | "rewind" | undefined;
  /** A loss far above those of the last 64 steps. Default: tell. */
  readonly spike?: "tell" | "stop" | "skip" | "rewind" | undefined;
  /**
   * How far above the median a loss counts as a spike, in deviations estimated by the median absolute deviation.
   * Default: 8.
   */
  readonly spikeDeviations?: number | undefined;
  /**
   * A rank that computes longer than ranks with the same work, or, if there are none, longer than before. Default:
   * tell.
   */
  readonly straggler?: "tell" | "stop" | undefined;
  /** How many times longer a rank must compute to count as a straggler. Default: 2. */
  readonly stragglerFactor?: number | undefined;
  /** How many such steps in a row make a rank a straggler. Default: 10. */
  readonly stragglerSteps?: number | undefined;
}

/** How often to emit figures that cost more than a step's own. */
export interface MemoryOptions {
  /** Steps between events with each rank's memory (memory.measured). Default: 10. */
  readonly everySteps: number;
}

/** How often to emit figures that cost more than a step's own. */
export interface HistogramOptions {
  /** Steps between events with histograms of parameters and gradients (histogram.measured). Default: never. */
  readonly everySteps: number;
}

/** Where the dashboard is served. */
export interface DashboardOptions {
  /** Serve the dashboard on this port; 0: any free one. Default: 4747, or any free one if it is taken. */
  readonly port?: number | undefined;
  /** Address to serve the dashboard on; other machines that can reach it need the token. Default: 127.0.0.1. */
  readonly host?: string | undefined;
  /**
   * File that keeps the token between runs, so that an open page finds the next run. Default: dashboard.token beside
   * the checkpoints.
   */
  readonly tokenFile?: string | undefined;
}

/** Deliberate delays, to measure the cost of a slower disk or link. */
export interface SlowdownOptions {
  /** Delay each offloaded update. Default: 0. */
  readonly updateMs?: number | undefined;
  /** Delay each reduction of a block's gradient. Default: 0. */
  readonly reduceMs?: number | undefined;
  /** Delay each transfer of a block's offloaded parameters to or from its file. Default: 0. */
  readonly transferMs?: number | undefined;
}
