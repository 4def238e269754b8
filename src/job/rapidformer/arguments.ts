import { TroupeError } from "../../errors/index.ts";
import { type SettingValue, settingName } from "./flag.ts";
import { flags } from "./flags.ts";

/**
 * The settings of a run, by the flags' names in camel case: `--lr-decay-style` is `args.lrDecayStyle`. Flags that were left out
 * have defaults, of which 0 and "" mostly mean that something else decides.
 */
export interface Arguments {
  readonly task: string;
  /** The folder of the model, also if a name was given. */
  readonly pretrainedModelNameOrPath: string;
  /** The same folder, under the name by which Rapidformer's templates read it. */
  readonly load: string;
  /** Whether initial weights are drawn even if the folder has some. */
  readonly fresh: boolean;
  /** Resolved path of the dataset; for indexed data prefixes, with their weights, separated by spaces. */
  readonly dataPath: string;
  readonly dataName: string;
  /** The dataset as given, under the name by which Rapidformer's templates read it. */
  readonly datasetPath: string;
  readonly datasetName: string;
  readonly dataDir: string;
  readonly epochs: number;
  readonly trainIters: number;
  readonly trainSamples: number;
  readonly keepLast: boolean;
  readonly microBatchSize: number;
  readonly globalBatchSize: number;
  /** Three numbers separated by spaces: first batch size, increment, and samples over which it grows. */
  readonly rampupBatchSize: string;
  readonly lr: number;
  readonly minLr: number;
  readonly lrDecayStyle: "constant" | "linear" | "cosine";
  readonly lrDecayIters: number;
  readonly lrDecaySamples: number;
  readonly lrWarmupIters: number;
  readonly lrWarmupSamples: number;
  readonly lrWarmupFraction: number;
  readonly weightDecay: number;
  readonly clipGrad: number;
  readonly optimizer: "adam" | "sgd";
  readonly adamBeta1: number;
  readonly adamBeta2: number;
  readonly adamEps: number;
  readonly sgdMomentum: number;
  readonly numLayers: number;
  readonly hiddenSize: number;
  readonly numAttentionHeads: number;
  readonly seqLength: number;
  readonly decoderSeqLength: number;
  readonly maxPositionEmbeddings: number;
  readonly ffnHiddenSize: number;
  readonly attentionDropout: number;
  readonly hiddenDropout: number;
  readonly layernormEpsilon: number;
  readonly initMethodStd: number;
  readonly makeVocabSizeDivisibleBy: number;
  readonly tensorModelParallelSize: number;
  readonly bertBinaryHead: boolean;
  readonly numExperts: number;
  readonly topk: number;
  readonly moeLossCoeff: number;
  readonly moeTrainCapacityFactor: number;
  readonly moeEvalCapacityFactor: number;
  readonly moeMinCapacity: number;
  readonly moeTokenDropping: boolean;
  readonly mlpType: "standard" | "residual";
  readonly tokenizerType: string;
  readonly vocabFile: string;
  readonly mergeFile: string;
  readonly dataImpl: string;
  readonly split: string;
  readonly maskProb: number;
  readonly shortSeqProb: number;
  readonly eodMaskLoss: boolean;
  readonly vocabExtraIds: number;
  readonly dynamicShapes: boolean;
  readonly packing: boolean;
  readonly padToMultipleOf: number;
  readonly evalInterval: number;
  readonly earlyStoppingPatience: number;
  readonly metricForBestModel: string;
  readonly greaterIsBetter: boolean;
  readonly evalIters: number;
  readonly resetPositionIds: boolean;
  readonly resetAttentionMask: boolean;
  readonly seed: number;
  /** Folder of the checkpoint that `--finetune` takes initial weights from. */
  readonly loadedWeights: string;
  /** Read by Rapidformer's templates; without effect. */
  readonly mmapWarmup: boolean;
  /** Settings added by a script's engine. */
  readonly [name: string]: SettingValue;
}

/** Defaults of settings without a flag, which templates read. */
const ofCode = {
  microBatchSize: 0,
  tensorModelParallelSize: 1,
  seed: 1234,
  load: "",
  loadedWeights: "",
  datasetPath: "",
  datasetName: "",
  mmapWarmup: false,
} as const;

/** Every setting with its default. */
export const defaultArguments: Arguments = {
  ...Object.fromEntries(
    flags.flatMap(({ fate }) => (fate.is === "setting" ? [[fate.name, fate.standard] as const] : [])),
  ),
  ...ofCode,
} as unknown as Arguments;

// Each rank, and the feeder, is a thread with its own modules: this variable is per thread.
let current: Arguments | undefined;

/**
 * Returns the settings of this run: Rapidformer's `get_args()`. Call it inside the functions of a template or job; the top level of
 * a module runs before the settings are known.
 * @throws {TroupeError} `ARGUMENTS_UNREAD`
 */
export function getArgs(): Arguments {
  if (current !== undefined) return current;
  throw new TroupeError("ARGUMENTS_UNREAD", {
    where: "getArgs",
    expected: "a call inside a function of the template",
    got: "one while its module is loaded",
    hint: "the same module is read by the command line and by every rank, before the run has arguments",
  });
}

/** Sets the result of {@link getArgs} in this thread. */
export function setArgs(args: Readonly<Record<string, SettingValue>>): Arguments {
  current = args as Arguments;
  return current;
}

/** @returns the flag of a setting, for messages: `--lr` for `lr` */
export function flagOf(name: string): string {
  const found = flags.find(
    ({ flag, fate }) => (fate.is === "setting" ? fate.name : settingName(flag)) === name,
  );
  return found?.flag ?? name;
}
