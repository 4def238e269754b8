import type { Module } from "../../compute/nn/index.ts";
import type { NamedShapes, OptimizerSpec, Schedule } from "../../compute/optim/index.ts";
import { ops, type Tensor } from "../../compute/tensor/index.ts";
import * as data from "../../library/data/index.ts";
import { defineLoop, type ForwardResult, type Job, type Rank, type RankContext } from "../index.ts";
import { type Arguments, defaultArguments, setArgs } from "./arguments.ts";
import { currentRank, enterRank, outside } from "./current-rank.ts";
import type { SettingValue } from "./flag.ts";
import { epochSteps, optimizerOf, planOf, refuseShapes, scheduleOf } from "./run-parts.ts";

/** Makes an optimizer for the parameters; null: fused AdamW with the settings of the flags. */
export type OptimizerFn = ((parameters: NamedShapes) => OptimizerSpec) | null;

/** Makes a schedule for the optimizer; null: the schedule of the flags. */
export type LrSchedulerFn = ((optimizer: OptimizerSpec) => Schedule) | null;

/** Argument of {@link RapidformerEngine.compose}. */
export interface Composition<M extends Module> {
  /** Declares the model; called in every rank. */
  readonly modelObj: () => M;
  readonly optimizer?: OptimizerFn;
  readonly lrSchedulerFn?: LrSchedulerFn;
}

/** A model in a custom loop: sharded, gathered and in the precision of the run's options. */
export interface ComposedModel<M extends Module> {
  /** Recorded for `engine.backward` in training; after {@link eval} without a graph and without dropout. */
  forward(...inputs: Parameters<M["forward"]>): ReturnType<M["forward"]>;
  train(): void;
  eval(): void;
}

/** Result of {@link RapidformerEngine.compose}. */
export interface Composed<M extends Module> {
  readonly model: ComposedModel<M>;
  /** `step()` ends a micro-batch; the last one of a step also averages and clips the gradients, updates and zeroes them. */
  readonly optimizer: { step(): void };
  /** The rate of the next step; it follows the optimizer's steps by itself. */
  readonly lrScheduler: { getLastLr(): number };
}

interface Loader {
  readonly split: string;
  readonly samples: () => data.Awaitable<data.Samples<unknown>>;
  readonly collate: data.Collate<unknown, data.Batch>;
}

/** Batches of one split for this rank's replica. */
export interface DataLoader<B> extends Iterable<B> {
  readonly split: string;
}

/** Facts about the data that ranks need. */
export interface Facts {
  readonly source: string;
  /** By split. */
  readonly numSamples: Readonly<Record<string, number>>;
  readonly numTrain: number;
}

/** Rapidformer's `RapidformerEngine`: the base of a script's trainer or loop. A script has one. */
export class RapidformerEngine {
  /** Every setting of the run with its default, including the script's own. */
  readonly defaults: Arguments;
  readonly #loaders = new Map<string, Loader>();
  #composition: Composition<Module> | undefined;
  #batches: Iterator<data.TensorBatch> | undefined;
  #isTraining = true;
  /** Number of this replica's own rows in the current held-out batch; the others are padding. */
  #numReal: number | undefined;

  /** @param extraArgs - the script's own settings with their defaults, for `--set` and `getArgs()`: Rapidformer's extra_args_provider */
  constructor(extraArgs: Readonly<Record<string, SettingValue>> = {}) {
    this.defaults = { ...defaultArguments, ...extraArgs };
  }

  /** The running rank. @throws {TroupeError} `LOOP_ORDER` outside a run */
  get rank(): RankContext {
    return currentRank();
  }

  /** For trainers: sets the rank whose hooks are called next. */
  enter(rank: RankContext): void {
    enterRank(rank);
  }

  /**
   * Declares a model that a custom loop trains, at the top of the module: Rapidformer's `engine.compose(model_obj=, lr_scheduler_fn=)`.
   * The model's functions work only in the loop.
   */
  compose<M extends Module>(composition: Composition<M>): Composed<M> {
    this.#composition = composition as unknown as Composition<Module>;
    const forward = (...inputs: unknown[]) => {
      const { rank } = this;
      const model = rank.model as { forward(...inputs: unknown[]): unknown };
      if (!this.#isTraining) return rank.evaluate(() => model.forward(...inputs));
      return rank.forward(() => model.forward(...inputs) as ForwardResult);
    };
    return {
      model: {
        forward: forward as ComposedModel<M>["forward"],
        train: () => {
          this.#isTraining = true;
        },
        eval: () => {
          this.#isTraining = false;
        },
      },
      optimizer: { step: () => this.rank.step() },
      lrScheduler: { getLastLr: () => this.#nextRate() },
    };
  }

  /**
   * Makes a loader of samples, which are divided among the replicas. `train` yields the micro-batches of one epoch, in another order
   * each epoch; other splits yield every sample once, in order.
   * @param samples - opened once, in the feeder
   */
  buildDataLoader<T, B extends data.Batch>(
    split: string,
    samples: () => data.Awaitable<data.Samples<T>>,
    collate: data.Collate<T, B>,
  ): DataLoader<data.TensorBatch> {
    this.#loaders.set(split, { split, samples, collate: collate as data.Collate<unknown, data.Batch> });
    const iterate = () => (split === "train" ? this.#epoch() : this.heldOut(split));
    return { split, [Symbol.iterator]: iterate };
  }

  /** Makes the job of a custom loop: `export default engine.loop(() => { … })`. */
  loop(body: (args: Arguments) => void): Job {
    const composition = () => {
      if (this.#composition !== undefined) return this.#composition;
      throw outside("engine.compose({ modelObj }) at the top of the module");
    };
    const { defaults } = this;
    const job = defineLoop(
      {
        config: defaults,
        data: async (config, { seed }) => {
          const args = setArgs({ ...config, seed });
          refuseShapes(args, "a custom loop, which makes its own batches");
          const opened = await Promise.all(
            [...this.#loaders.values()].map(async ({ split, samples }) => [split, await samples()] as const),
          );
          const collateOf = (split: string) => (this.#loaders.get(split) as Loader).collate;
          const facts = factsOf(args.dataPath, Object.fromEntries(opened));
          const datasets = opened.map(([split, of]) =>
            data.sampleDataset({ facts, splits: { [split]: of }, collate: collateOf(split), seed }),
          );
          const withSplit = (split: string) =>
            datasets.find(({ splits }) => split in splits) as (typeof datasets)[0];
          return {
            facts,
            splits: Object.assign({}, ...datasets.map(({ splits }) => splits)),
            batch: (split, position, numSamples) => withSplit(split).batch(split, position, numSamples),
          };
        },
        training: (config, { numTrain }: Facts) => planOf(setArgs(config), numTrain),
        model: (config) => {
          setArgs(config);
          return composition().modelObj();
        },
        optimizer: (parameters, config) =>
          composition().optimizer?.(parameters) ?? optimizerOf(parameters, setArgs(config)),
        schedule: (optimizer, config, { numTrain }) =>
          composition().lrSchedulerFn?.(optimizer) ?? scheduleOf(optimizer, setArgs(config), numTrain),
      },
      (rank) => {
        this.enter(rank as unknown as RankContext);
        const args = setArgs(rank.config);
        this.#batches = (rank as unknown as RankContext).batches()[Symbol.iterator]();
        body(args);
        // Reads the end of the run if the loop has not: it stops short of it at the end of an epoch.
        this.#batches.next();
      },
    );
    return job as unknown as Job;
  }

  /** Adds the gradient of a loss to the step's gradient: Rapidformer's `engine.backward`. */
  backward(loss: ForwardResult): void {
    this.rank.backward(loss);
  }

  /** Ends a micro-batch; the last one also ends the step. */
  step(): void {
    this.rank.step();
  }

  /** All replicas' rows along dim 0, in order; each sample of a held-out split once. Rapidformer's `gather`. */
  gather(rows: Tensor): Tensor {
    const numRows = rows.shape[0] ?? 0;
    const own =
      this.#numReal === undefined || this.#numReal >= numRows ? rows : rows.narrow(0, 0, this.#numReal);
    const all = this.rank.axes.dp.gather(own).filter(({ shape }) => (shape[0] ?? 0) > 0);
    return ops.cat(all, 0);
  }

  /** Prints a line from the first rank. */
  print(text: unknown): void {
    (this.rank as Rank).print(text);
  }

  /** This replica's batches of a held-out split: equally many for all replicas, so that they can gather. */
  *heldOut(split: string): Generator<data.TensorBatch> {
    const { rank } = this;
    const { numSamples } = rank.facts as unknown as Facts;
    const total = numSamples[split] ?? 0;
    const { index, size } = rank.axes.dp;
    const { microBatchSize, globalBatchSize } = rank.config as Arguments;
    const each = microBatchSize || Math.max(1, Math.floor(globalBatchSize / (size * rank.accumulation)));
    const shares = Array.from({ length: Math.ceil(total / (each * size)) }, (_, round) => {
      const first = round * each * size;
      const count = Math.ceil(Math.min(each * size, total - first) / size);
      const begin = first + index * count;
      const real = Math.max(0, Math.min(count, total - begin));
      return { real, range: { position: Math.min(begin, total - 1), numSamples: Math.max(1, real) } };
    });
    let round = 0;
    try {
      for (const batch of rank.read(
        split,
        shares.map(({ range }) => range),
      )) {
        this.#numReal = shares[round++]?.real;
        yield batch;
      }
    } finally {
      this.#numReal = undefined;
    }
  }

  *#epoch(): Generator<data.TensorBatch> {
    const { rank } = this;
    const { numTrain } = rank.facts as unknown as Facts;
    const steps = epochSteps(rank.config as Arguments, numTrain);
    // A resumed run starts in the middle of an epoch.
    const numBatches = (steps - (rank.numSteps % steps)) * rank.accumulation;
    for (let batch = 0; batch < numBatches; batch++) {
      const next = this.#batches?.next();
      if (next === undefined || next.done === true) return;
      yield next.value;
    }
  }

  #nextRate(): number {
    const { rank } = this;
    const { numTrain } = rank.facts as unknown as Facts;
    const args = rank.config as Arguments;
    const { optimizer, lrSchedulerFn } = this.#composition ?? {};
    const parameters = rank.model.namedParameters();
    const spec = optimizer?.(parameters) ?? optimizerOf(parameters, args);
    return (lrSchedulerFn?.(spec) ?? scheduleOf(spec, args, numTrain)).lrAt(rank.numSteps + 1);
  }
}

/** @returns facts about the data that ranks need */
export function factsOf(
  source: string,
  splits: Readonly<Record<string, { readonly length: number }>>,
): Facts {
  const numSamples = Object.fromEntries(Object.entries(splits).map(([name, { length }]) => [name, length]));
  return { source, numSamples, numTrain: numSamples.train ?? 0 };
}
