/** Events of a step: its results, evaluations, measurements and anomalies. */
export type StepEvent =
  | StepFinished
  | EvaluationFinished
  | BlockRecorded
  | BlockUnrecorded
  | LossesUnweighed
  | RolloutsJudged
  | TextGenerated
  | AnomalyDetected
  | MemoryMeasured
  | HistogramMeasured
  | ParametersUnused;

/** The model has trained parameters that no loss of the run's first step depends on, for instance a layer that forward never calls. */
export interface ParametersUnused {
  readonly kind: "parameters.unused";
  readonly step: number;
  /** Their names, in the order of the model. */
  readonly names: readonly string[];
}

/** Every rank has finished a step; its update is in progress. */
export interface StepFinished {
  readonly kind: "step.finished";
  /** Steps made so far, this one included. */
  readonly step: number;
  /** The step's loss before the update: a mean over all ranks, weighted as the job says; for several named losses their sum. */
  readonly lossNats: number;
  /** Each loss by its name, where the job names them. */
  readonly losses?: Readonly<Record<string, number>> | undefined;
  /** Numbers that the training loop logged, by name. */
  readonly metrics?: Readonly<Record<string, number>> | undefined;
  readonly learningRate: number;
  /** L2 norm over all parameters, before clipping; NaN where it was not measured. */
  readonly gradientNorm: number;
  /** Whether the step was skipped because its gradient was not finite: parameters and schedule stay as they were. */
  readonly skipped: boolean;
  /** Factor that the loss was multiplied by before backward; left out where it is not scaled. */
  readonly lossScale?: number | undefined;
  /** Samples of the step, over all ranks. */
  readonly numSamples: number;
  readonly samplesPerSecond: number;
  /** Tokens of the step, over all ranks, where the dataset counts them. */
  readonly numTokens?: number | undefined;
  readonly tokensPerSecond?: number | undefined;
  readonly durationMs: number;
  /** Share of the communication that computation hid, 0 to 1. */
  readonly overlap: number;
  /** Time that a rank waited for communication; a mean over the ranks, like the next four. */
  readonly exposedMs: number;
  /** Time in which parameters, activations or their gradients were in flight to the rank, waited for or not. */
  readonly gatherMs: number;
  /** Time in which gradients of parameters were in flight between the ranks or being summed. */
  readonly reduceMs: number;
  /** Time in which the optimizer was updating parameters. */
  readonly updateMs: number;
  /** Time that the rank waited for its batch. */
  readonly dataMs: number;
  /** Memory of all processes of the run; shared memory is counted once. */
  readonly residentBytes: number;
  /** With `graph`: calls of blocks since the step before, over all ranks. */
  readonly blockCalls?: BlockCalls | undefined;
}

/** Calls of blocks that were replayed as programs, or recorded to be. A steady run records none. */
export interface BlockCalls {
  readonly replayed: number;
  readonly recorded: number;
  /** Time of the recorded calls, their computation included; a mean over the ranks. */
  readonly recordMs: number;
}

/** The loss on held-out data was measured. */
export interface EvaluationFinished {
  readonly kind: "evaluation.finished";
  readonly step: number;
  /** The split that was read. */
  readonly split: string;
  /** As in {@link StepFinished}, over all samples that were read. */
  readonly lossNats: number;
  readonly losses?: Readonly<Record<string, number>> | undefined;
  /** The dataset's scores of the model's predictions, by name, where there are any. */
  readonly metrics?: Readonly<Record<string, number>> | undefined;
  readonly numSamples: number;
  /** Where the dataset counts them. */
  readonly numTokens?: number | undefined;
  /** Whether the state is the best so far, if the job's training sets `best`. */
  readonly isBest?: boolean | undefined;
}

/**
 * The micro-batches of a step have different numbers of labels that count, and the job has no `weigh`. Their losses
 * have equal weight, so the step's loss depends on how samples are dealt to ranks. Reported once.
 */
export interface LossesUnweighed {
  readonly kind: "losses.unweighed";
  readonly step: number;
  /** Labels other than -100 in each micro-batch, over all ranks. */
  readonly numCounted: readonly number[];
  /** The line to add to the job to weigh its losses. */
  readonly advice: string;
}

/** One half of a block's program. */
export interface BlockProgram {
  /** Operators that a call issues without the program, those that only make views included. */
  readonly numIssued: number;
  /** Operators that a replay runs, in order: a line each, with what it gives, its name, and what it reads. */
  readonly operators: readonly string[];
}

/**
 * A block was recorded as a program (`graph`), by which its calls are replayed from now on. Of programs alike, one is reported.
 */
export interface BlockRecorded {
  readonly kind: "block.recorded";
  readonly step: number;
  /** Name of the first such block. */
  readonly block: string;
  readonly forward: BlockProgram;
  readonly backward: BlockProgram;
  /** Why a device issues its operators singly, where graphs of the device were wanted (`TROUPE_DEVICE_GRAPHS`). */
  readonly uncaptured?: string | undefined;
}

/**
 * A block was to be recorded as a program (`graph`) and is issued one operator at a time instead. Reported once for each reason.
 */
export interface BlockUnrecorded {
  readonly kind: "block.unrecorded";
  readonly step: number;
  /** Name of the first such block. */
  readonly block: string;
  readonly reason: string;
  /** The line of the job's code that was in the way, as `file:line:column`, if one was. */
  readonly line?: string | undefined;
}

/** The job's `sample` has returned a text. */
export interface TextGenerated {
  readonly kind: "text.generated";
  readonly step: number;
  readonly text: string;
}

/** The script of a live model has reported what it learns from, by `report`: texts that the model wrote, and how good they are. */
export interface RolloutsJudged {
  readonly kind: "rollouts.judged";
  /** Updates called before. */
  readonly step: number;
  /** Number of the round, from 0. */
  readonly round: number;
  /** Rounds trained on between the parameters that wrote the texts and those that learn from them. */
  readonly staleness: number;
  readonly numTexts: number;
  readonly meanReward: number;
  /** Mean number of tokens written. */
  readonly meanTokens: number;
  /** Divergence from the reference, as the script computes it. */
  readonly klNats?: number;
  /** The first of the texts, cut to 2,000 characters. */
  readonly texts: readonly JudgedText[];
}

/** A text and its reward. */
export interface JudgedText {
  /** Empty if the script does not give it. */
  readonly prompt: string;
  readonly text: string;
  readonly reward: number;
}

/** A measured value was outside its limit; the event says what was done. */
export interface AnomalyDetected {
  readonly kind: "anomaly.detected";
  readonly step: number;
  readonly anomaly: "loss-not-finite" | "gradient-not-finite" | "loss-spike" | "straggler";
  /** The measured value: nats, a norm, or milliseconds. */
  readonly value: number;
  /** The limit that it exceeded. */
  readonly limit: number;
  /** The rank that it was measured on, if it concerns one. */
  readonly rank?: number | undefined;
  /** The configured reaction to such an anomaly. */
  readonly policy: "tell" | "stop" | "skip" | "rewind";
  /** The action that was taken. */
  readonly action: "told" | "stopped" | "skipped" | "rewound";
}

/** The memory held by one rank, its shard and its offload actor; reported every so many steps. */
export interface MemoryMeasured {
  readonly kind: "memory.measured";
  readonly step: number;
  readonly rank: number;
  /**
   * By kind, such as "parameters" or "activations": bytes that tensors asked the allocator for, now and at the peak
   * since the start.
   */
  readonly byKind: Readonly<Record<string, { readonly liveBytes: number; readonly peakBytes: number }>>;
}

/** A histogram of a parameter's values or averaged gradient; reported every so many steps, if asked for. */
export interface HistogramMeasured {
  readonly kind: "histogram.measured";
  readonly step: number;
  /** Name of the parameter. */
  readonly name: string;
  readonly of: "weights" | "gradients";
  /** Smallest finite value; 0 without any. */
  readonly min: number;
  readonly max: number;
  readonly sum: number;
  readonly sumOfSquares: number;
  /** Number of all values, including those that are not finite. */
  readonly numValues: number;
  /** Number of infinite and NaN values. */
  readonly numNotFinite: number;
  /** Upper bounds of the buckets, rising; each bucket begins at the bound before it, the first at `min`. */
  readonly limits: readonly number[];
  /** Number of finite values in each bucket. */
  readonly counts: readonly number[];
}
