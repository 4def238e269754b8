/** What a step came to: its figures, what the model made of other data, what was measured, what was wrong with it. */
export type StepEvent =
  | StepFinished
  | EvaluationFinished
  | LossesUnweighed
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

/** Every rank has finished a step; its update is on the way. */
export interface StepFinished {
  readonly kind: "step.finished";
  /** Steps done so far, this one included. */
  readonly step: number;
  /** Mean over what the job's losses are over, on all ranks, before the update; of several named losses their sum. */
  readonly lossNats: number;
  /** Each loss by its name, where the job names them. */
  readonly losses?: Readonly<Record<string, number>> | undefined;
  /** What the training loop measured besides, by name. */
  readonly metrics?: Readonly<Record<string, number>> | undefined;
  readonly learningRate: number;
  /** L2 norm over all parameters, before clipping; NaN where it was not measured. */
  readonly gradientNorm: number;
  /** Whether the gradient was not finite, and every rank left its parameters and the schedule as they were. */
  readonly skipped: boolean;
  /** What the loss was multiplied by before backward; left out where it is not scaled. */
  readonly lossScale?: number | undefined;
  /** Samples of the step, over all ranks. */
  readonly numSamples: number;
  readonly samplesPerSecond: number;
  /** The same in tokens, where the dataset counts them. */
  readonly numTokens?: number | undefined;
  readonly tokensPerSecond?: number | undefined;
  readonly durationMs: number;
  /** Share of all communication that computation hid, 0 to 1. */
  readonly overlap: number;
  /** Time a rank waited for communication; a mean over the ranks, as are the next four. */
  readonly exposedMs: number;
  /** Parameters, activations and their gradients were under way to the rank, waited for or not. */
  readonly gatherMs: number;
  /** Gradients of parameters were under way between the ranks or being summed. */
  readonly reduceMs: number;
  /** The optimizer was updating parameters. */
  readonly updateMs: number;
  /** The rank waited for its batch. */
  readonly dataMs: number;
  /** Memory of all processes of the run; what they share is counted once. */
  readonly residentBytes: number;
}

/** The loss on held-out data was measured. */
export interface EvaluationFinished {
  readonly kind: "evaluation.finished";
  readonly step: number;
  /** The part of the data that was read. */
  readonly split: string;
  /** As of {@link StepFinished}, over all samples that were read. */
  readonly lossNats: number;
  readonly losses?: Readonly<Record<string, number>> | undefined;
  /** The dataset's scores of what the model predicts, by name, where there are any. */
  readonly metrics?: Readonly<Record<string, number>> | undefined;
  readonly numSamples: number;
  /** Where the dataset counts them. */
  readonly numTokens?: number | undefined;
  /** Whether the state is the best so far, if the job's training sets `best`. */
  readonly isBest?: boolean | undefined;
}

/**
 * The micro-batches of a step have different numbers of labels that count, and the job has no `weigh`. Their losses weigh the same, so
 * the step's loss depends on how samples are dealt to ranks. Reported once.
 */
export interface LossesUnweighed {
  readonly kind: "losses.unweighed";
  readonly step: number;
  /** Labels other than -100 in each micro-batch, over all ranks. */
  readonly numCounted: readonly number[];
  /** The line to add to the job, which weighs them. */
  readonly advice: string;
}

/** The model wrote a sample. */
export interface TextGenerated {
  readonly kind: "text.generated";
  readonly step: number;
  readonly text: string;
}

/** What a run looked like was outside what it should; what was done about it. */
export interface AnomalyDetected {
  readonly kind: "anomaly.detected";
  readonly step: number;
  readonly anomaly: "loss-not-finite" | "gradient-not-finite" | "loss-spike" | "straggler";
  /** What was measured: nats, a norm, or milliseconds. */
  readonly value: number;
  /** What it should not have passed. */
  readonly limit: number;
  /** The rank it was seen on, where it is of one rank. */
  readonly rank?: number | undefined;
  /** What the run was told to do about such a thing. */
  readonly policy: "tell" | "stop" | "skip" | "rewind";
  /** What was done. */
  readonly action: "told" | "stopped" | "skipped" | "rewound";
}

/** What one rank holds was counted, its shard and its offload actor with it; told every so many steps. */
export interface MemoryMeasured {
  readonly kind: "memory.measured";
  readonly step: number;
  readonly rank: number;
  /** By kind, such as "parameters" or "activations": bytes that tensors asked for, now and at most since the start. */
  readonly byKind: Readonly<Record<string, { readonly liveBytes: number; readonly peakBytes: number }>>;
}

/** The values of a parameter or of its averaged gradient were sorted into buckets; told every so many steps, where asked. */
export interface HistogramMeasured {
  readonly kind: "histogram.measured";
  readonly step: number;
  /** Of the parameter. */
  readonly name: string;
  readonly of: "weights" | "gradients";
  /** Of the finite values; of none, 0. */
  readonly min: number;
  readonly max: number;
  readonly sum: number;
  readonly sumOfSquares: number;
  /** Values in all, those that are not finite included. */
  readonly numValues: number;
  /** Infinite, or not a number. */
  readonly numNotFinite: number;
  /** Upper bounds of the buckets, rising; each bucket begins where the one before it ends, the first with `min`. */
  readonly limits: readonly number[];
  /** Finite values in each bucket. */
  readonly counts: readonly number[];
}
