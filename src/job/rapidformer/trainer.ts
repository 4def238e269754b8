import type { Module } from "../../compute/nn/index.ts";
import { Tensor } from "../../compute/tensor/index.ts";
import {
  type Awaitable,
  type Batch,
  type Collate,
  type Dataset,
  type LengthBuckets,
  type Samples,
  sampleDataset,
  stack,
  type TensorBatch,
} from "../../library/data/index.ts";
import { defineLoop, type Job, type Losses, type Rank, type RankContext } from "../index.ts";
import { type Arguments, setArgs } from "./arguments.ts";
import {
  type DataLoader,
  type Facts,
  factsOf,
  type LrSchedulerFn,
  type OptimizerFn,
  RapidformerEngine,
} from "./engine.ts";
import {
  argumentError,
  batchSizeOf,
  epochSteps,
  optimizerOf,
  planOf,
  refuseShapes,
  scheduleOf,
  stepsOf,
  stepWindow,
} from "./run-parts.ts";

/** Result of a model provider: the declared model, its optimizer and schedule; null: those of the flags. */
export type ModelProvided = readonly [model: Module, optimizer: OptimizerFn, lrScheduler: LrSchedulerFn];

/** Result of a forward step: the loss, or outputs with a function that computes the loss and metrics from them. */
export type ForwardStep =
  | Losses
  | readonly [
      output: Tensor,
      loss: (output: Tensor) => readonly [loss: Tensor, figures: Readonly<Record<string, Tensor | number>>],
    ];

type SamplesOrNone = Samples<unknown> | null;

/** Common base of {@link Finetuner} and {@link PreTrainer}: the hooks, and the job made of them. */
abstract class Trainer {
  readonly engine: RapidformerEngine;

  constructor(engine: RapidformerEngine = new RapidformerEngine()) {
    this.engine = engine;
  }

  /** Makes `export default MyTrainer` short for `export default new MyTrainer(new RapidformerEngine()).train()`. */
  static job(this: new (engine: RapidformerEngine) => Trainer): Job {
    return new this(new RapidformerEngine()).train();
  }

  /**
   * Rapidformer's `model_optimizer_lr_scheduler_provider`: declares the model, in every rank, as for one device. Weights come from the
   * folder of `--pretrained-model-name-or-path`, unless `--fresh` draws them.
   */
  modelOptimizerLrSchedulerProvider(): ModelProvided {
    throw hookMissing("modelOptimizerLrSchedulerProvider()");
  }

  /** Rapidformer's `run_forward_step`. `batchOrIterator`: a batch for {@link Finetuner}, an iterator of one for {@link PreTrainer}. */
  abstract runForwardStep(batchOrIterator: unknown, model: Module, rank: Rank): ForwardStep;

  /** Makes the job of the hooks, for `export default`; the call itself trains nothing. */
  train(): Job {
    return this.jobOf();
  }

  /** All replicas' rows, in order; see `RapidformerEngine.gather`. */
  gather(rows: Tensor): Tensor {
    return this.engine.gather(rows);
  }

  protected abstract jobOf(): Job;

  protected lossesOf(given: unknown, model: Module, rank: Rank): Losses {
    const step = this.runForwardStep(given, model, rank);
    if (!isPair(step)) return step;
    const [output, lossOf] = step;
    const [loss, figures] = lossOf(output);
    const numbers = Object.entries(figures).map(([name, value]) => [
      name,
      typeof value === "number" ? value : value.item(),
    ]);
    rank.log(Object.fromEntries(numbers) as Record<string, number>);
    return loss;
  }

  protected get commonParts() {
    return {
      config: this.engine.defaults,
      model: (config: Readonly<Record<string, string | number | boolean>>) => {
        setArgs(config);
        return this.modelOptimizerLrSchedulerProvider()[0];
      },
      optimizer: (parameters: Parameters<typeof optimizerOf>[0], config: Arguments) => {
        const args = setArgs(config);
        return this.modelOptimizerLrSchedulerProvider()[1]?.(parameters) ?? optimizerOf(parameters, args);
      },
      schedule: (optimizer: Parameters<typeof scheduleOf>[0], config: Arguments, facts: unknown) => {
        const args = setArgs(config);
        const { numTrain } = facts as { readonly numTrain: number };
        return (
          this.modelOptimizerLrSchedulerProvider()[2]?.(optimizer) ?? scheduleOf(optimizer, args, numTrain)
        );
      },
    };
  }
}

/**
 * Rapidformer's `Finetuner`: subclass it, implement the hooks, and make `new MyFinetuner(engine).train()` the module's default
 * export. It trains by epochs; the results of {@link runComputeMetrics} after each are reported with the epoch's last step.
 */
export class Finetuner extends Trainer {
  /**
   * Rapidformer's `train_valid_test_datasets_provider`: returns samples by index, and a function that collates them. Called once, in
   * the feeder; it may be slow.
   */
  trainValidTestDatasetsProvider(): Awaitable<
    readonly [
      train: Samples<unknown>,
      valid: Samples<unknown> | null,
      test: Samples<unknown> | null,
      collate: Collate<never, Batch>,
    ]
  > {
    throw hookMissing("trainValidTestDatasetsProvider()");
  }

  runForwardStep(_batch: TensorBatch, _model: Module, _rank?: Rank): ForwardStep {
    throw hookMissing("runForwardStep(batch, model)");
  }

  /**
   * Rapidformer's `run_compute_metrics`, called on every rank after each epoch, without recording and dropout: rows combined by
   * {@link gather} are the same on all ranks. If missing, the validation loss is reported instead.
   * @param model - in a list, as Rapidformer passes it
   */
  runComputeMetrics?(
    model: readonly [Module],
    evalDataloader: Iterable<TensorBatch>,
  ): Readonly<Record<string, number>>;

  /**
   * Length of a training sample, for `--dynamic-shapes`: a step's samples are sorted into its batches by length, so that padding each
   * batch to its longest sample adds little.
   */
  lengthOf?(sample: unknown): number;

  /** Makes the job, as {@link train} does. */
  finetune(): Job {
    return this.train();
  }

  /** Rapidformer's `build_data_loader`, for a custom loop; see `RapidformerEngine.buildDataLoader`. */
  buildDataLoader<T, B extends Batch>(
    split: string,
    samples: () => Awaitable<Samples<T>>,
    collate: Collate<T, B>,
  ): DataLoader<TensorBatch> {
    return this.engine.buildDataLoader(split, samples, collate);
  }

  protected jobOf(): Job {
    const job = defineLoop(
      {
        ...this.commonParts,
        data: async (config, { seed }) => {
          const args = setArgs({ ...config, seed });
          const [train, valid, test, collate] = await this.trainValidTestDatasetsProvider();
          const splits = { train, validation: valid, test };
          const dealt = args.dynamicShapes ? await this.#byLength(args, train) : {};
          return opened(args, splits, packedIfAsked(args, collate as Collate<unknown, Batch>), {
            ...{ seed, shuffle: true },
            ...dealt,
          });
        },
        training: (config, facts: Facts) => {
          const args = setArgs(config);
          const steps = epochSteps(args, facts.numTrain);
          const isJudged = this.runComputeMetrics === undefined && (facts.numSamples.validation ?? 0) > 0;
          return { ...planOf(args, facts.numTrain), ...(isJudged && { evaluateEverySteps: steps }) };
        },
        loss: (model: Module, batch: TensorBatch, rank: Rank) => this.lossesOf(batch, model, rank),
      },
      (rank) => this.#loop(rank as unknown as RankContext),
    );
    return job as unknown as Job;
  }

  async #byLength(args: Arguments, train: Samples<unknown>): Promise<{ readonly buckets: LengthBuckets }> {
    if (this.lengthOf === undefined)
      throw argumentError("--dynamic-shapes with a template that has a lengthOf(sample)", "none");
    const lengths: number[] = [];
    for (let index = 0; index < train.length; index++) lengths.push(this.lengthOf(await train.at(index)));
    return { buckets: { ...stepWindow(args), lengthOf: (index) => lengths[index] ?? 0 } };
  }

  #loop(rank: RankContext): void {
    this.engine.enter(rank);
    setArgs(rank.config);
    const { numTrain } = rank.facts as unknown as Facts;
    const steps = epochSteps(rank.config as Arguments, numTrain);
    const measure = () => this.runComputeMetrics?.([rank.model], this.engine.heldOut("validation")) ?? {};
    for (const step of rank.steps()) {
      const isLast = this.runComputeMetrics !== undefined && (step + 1) % steps === 0;
      rank.trainStep((batch) => this.lossesOf(batch, rank.model, rank), isLast ? { measure } : {});
    }
  }
}

/**
 * Rapidformer's `PreTrainer`: like {@link Finetuner}, but it trains by steps on samples in the dataset's order, and evaluates only
 * the loss, every `--eval-interval` steps on `--eval-iters` batches.
 */
export class PreTrainer extends Trainer {
  /**
   * Rapidformer's `train_valid_test_datasets_provider`.
   * @param _trainValTestNumSamples - samples that the run reads of each split
   * @returns samples by index, null for a missing split; records of numbers and tensors are stacked unless a fourth entry collates
   *   them
   */
  trainValidTestDatasetsProvider(
    _trainValTestNumSamples: readonly [train: number, valid: number, test: number],
  ): Awaitable<
    readonly [
      train: Samples<unknown>,
      valid: Samples<unknown> | null,
      test: Samples<unknown> | null,
      collate?: Collate<never, Batch>,
    ]
  > {
    throw hookMissing("trainValidTestDatasetsProvider(trainValTestNumSamples)");
  }

  runForwardStep(_iterator: Iterator<TensorBatch>, _model: Module, _rank?: Rank): ForwardStep {
    throw hookMissing("runForwardStep(iterator, model)");
  }

  /** Makes the job, as {@link train} does. */
  pretrain(): Job {
    return this.train();
  }

  protected jobOf(): Job {
    const lossOf = (model: Module, batch: TensorBatch, rank: Rank) =>
      this.lossesOf([batch][Symbol.iterator](), model, rank);
    const job = defineLoop(
      {
        ...this.commonParts,
        data: async (config, { seed }) => {
          const args = setArgs({ ...config, seed });
          refuseShapes(args, "a PreTrainer, whose samples are of one length");
          const numSamples = numSamplesOf(args);
          const [train, valid, test, collate = stack()] =
            await this.trainValidTestDatasetsProvider(numSamples);
          const splits = { train, validation: valid, test };
          return opened(args, splits, collate as Collate<unknown, Batch>, { seed, shuffle: false });
        },
        training: (config, facts: Facts) => {
          const args = setArgs(config);
          return { ...planOf(args, facts.numTrain), ...evaluationOf(args, facts) };
        },
        loss: lossOf,
      },
      (rank) => {
        this.engine.enter(rank as unknown as RankContext);
        setArgs(rank.config);
        for (const _ of rank.steps())
          rank.trainStep((batch) => lossOf(rank.model as unknown as Module, batch as TensorBatch, rank));
      },
    );
    return job as unknown as Job;
  }
}

/** Samples that a pre-training run reads of each split: training, all evaluations, and one test. */
export function numSamplesOf(args: Arguments): readonly [number, number, number] {
  const { evalInterval, evalIters } = args;
  const steps = stepsOf(args, 0);
  const evaluations = evalInterval === 0 ? 0 : (Math.floor(steps / evalInterval) + 1) * evalIters;
  const batchSize = batchSizeOf(args);
  return [args.trainSamples || steps * batchSize, evaluations * batchSize, evalIters * batchSize];
}

/** Evaluations in pre-training: none without held-out data or if no evaluation falls due. */
export function evaluationOf(args: Arguments, { numSamples }: Pick<Facts, "numSamples">) {
  const { evalInterval, evalIters } = args;
  if ((numSamples.validation ?? 0) === 0 || evalInterval === 0 || evalIters === 0) return {};
  return { evaluateEverySteps: evalInterval, evaluationSamples: evalIters * batchSizeOf(args) };
}

function opened(
  args: Arguments,
  splits: Readonly<Record<string, SamplesOrNone>>,
  collate: Collate<unknown, Batch>,
  order: { readonly seed: number; readonly shuffle: boolean; readonly buckets?: LengthBuckets },
): Dataset<Batch, Facts> {
  const present = Object.fromEntries(
    Object.entries(splits).filter(
      (entry): entry is [string, Samples<unknown>] => (entry[1]?.length ?? 0) > 0,
    ),
  );
  const { dataPath, datasetPath } = args;
  return sampleDataset({
    facts: factsOf(datasetPath || dataPath || "the script's data", present),
    splits: present,
    collate,
    ...order,
  });
}

/** With `--packing`, checks that a template's training batches are packed rows. */
function packedIfAsked(args: Arguments, collate: Collate<unknown, Batch>): Collate<unknown, Batch> {
  if (!args.packing) return collate;
  return (samples, place) => {
    const batch = collate(samples, place);
    if (place.split === "train" && !(batch.segments instanceof Tensor))
      throw argumentError(
        "--packing with a template whose batches of training have segments",
        `batches of ${Object.keys(batch).join(", ")}`,
        "collate with packTexts where getArgs().packing",
      );
    return batch;
  };
}

const isPair = (step: ForwardStep): step is Extract<ForwardStep, readonly unknown[]> => Array.isArray(step);

const hookMissing = (hook: string) => argumentError(`the template to have a ${hook}`, "none");
