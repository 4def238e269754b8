import { TroupeError } from "../../errors/index.ts";
import { type SettingValue, settingName } from "./flag.ts";
import { flags } from "./flags.ts";

/**
 * What was asked of a run, by the flags' names in camel case: `--lr-decay-style` is `args.lrDecayStyle`. All are texts, numbers
 * and booleans; what was left out stands at its default, of which 0 and "" mostly mean that something else decides.
 */
export interface Arguments {
  readonly task: string;
  /** The resolved folder, where a name was given. */
  readonly pretrainedModelNameOrPath: string;
  /** The same: what the seed's templates load their model from. */
  readonly load: string;
  /** Whether weights are drawn though the folder may have some. */
  readonly fresh: boolean;
  /** A dataset's resolved place; of indexed data the prefixes, with their weights, by spaces. */
  readonly dataPath: string;
  readonly dataName: string;
  /** What the seed calls the dataset in its templates: as typed. */
  readonly datasetPath: string;
  readonly datasetName: string;
  readonly dataDir: string;
  readonly epochs: number;
  readonly trainIters: number;
  readonly trainSamples: number;
  readonly keepLast: boolean;
  readonly microBatchSize: number;
  readonly globalBatchSize: number;
  /** Three numbers by spaces: where the batch begins, what it grows by, and in how many samples. */
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
  /** The checkpoint that `--finetune` begins with: its resolved folder. */
  readonly loadedWeights: string;
  /** As the seed's templates ask for it; nothing follows of it. */
  readonly mmapWarmup: boolean;
  /** Settings that a script's own engine adds. */
  readonly [name: string]: SettingValue;
}

/** What no flag gives, and templates read all the same. */
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

// Each rank, and the feeder, is a thread with modules of its own: what is kept here is that thread's alone.
let current: Arguments | undefined;

/**
 * What this run was asked for: the seed's `get_args()`. Inside the functions of a template or job; a module's top level is
 * read before anything is known.
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

/** Has {@link getArgs} give these in this thread. */
export function setArgs(args: Readonly<Record<string, SettingValue>>): Arguments {
  current = args as Arguments;
  return current;
}

/** What a flag is called, for messages about a setting: `--lr` of `lr`. */
export function flagOf(name: string): string {
  const found = flags.find(
    ({ flag, fate }) => (fate.is === "setting" ? fate.name : settingName(flag)) === name,
  );
  return found?.flag ?? name;
}
