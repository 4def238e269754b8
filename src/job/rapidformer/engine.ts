import type { Module } from "../../compute/nn/index.ts";
import type { NamedShapes, OptimizerSpec, Schedule } from "../../compute/optim/index.ts";
import { ops, type Tensor } from "../../compute/tensor/index.ts";
import {
  type Awaitable,
  type Batch,
  type Collate,
  type Samples,
  sampleDataset,
  type TensorBatch,
} from "../../library/data/index.ts";
import { defineLoop, type ForwardResult, type Job, type Rank, type RankContext } from "../index.ts";
import { type Arguments, defaultArguments, setArgs } from "./arguments.ts";
import { currentRank, enterRank, outside } from "./current-rank.ts";
import type { SettingValue } from "./flag.ts";
import { epochSteps, optimizerOf, planOf, refuseShapes, scheduleOf } from "./run-parts.ts";

/** How an optimizer is made of the parameters; null for the one of the flags, fused AdamW. */
export type OptimizerFn = ((parameters: NamedShapes) => OptimizerSpec) | null;

/** How a schedule is made of the optimizer; null for the one of the flags. */
export type LrSchedulerFn = ((optimizer: OptimizerSpec) => Schedule) | null;

/** What {@link RapidformerEngine.compose} is given. */
export interface Composition<M extends Module> {
  /** Declares the model: called in every rank. */
  readonly modelObj: () => M;
  readonly optimizer?: OptimizerFn;
  readonly lrSchedulerFn?: LrSchedulerFn;
}

/** A model in a loop of one's own: gathered, sharded, recorded and in mixed precision as the run's options say. */
export interface ComposedModel<M extends Module> {
  /** Recorded for `engine.backward` while training; after {@link eval} without a graph, dropout off. */
  forward(...inputs: Parameters<M["forward"]>): ReturnType<M["forward"]>;
  train(): void;
  eval(): void;
}

/** What {@link RapidformerEngine.compose} gives. */
export interface Composed<M extends Module> {
  readonly model: ComposedModel<M>;
  /** `step()` ends a micro-batch, and with the last one the step: gradients are averaged and clipped, then zero again. */
  readonly optimizer: { step(): void };
  /** What the next step is made with; it follows the optimizer's steps by itself. */
  readonly lrScheduler: { getLastLr(): number };
}

interface Loader {
  readonly split: string;
  readonly samples: () => Awaitable<Samples<unknown>>;
  readonly collate: Collate<unknown, Batch>;
}

/** A loader of one split, in a rank: its replica's batches. */
export interface DataLoader<B> extends Iterable<B> {
  readonly split: string;
}

interface Facts {
  readonly source: string;
  readonly numSamples: Readonly<Record<string, number>>;
  readonly numTrain: number;
}

/** The seed's `RapidformerEngine`: what a script builds its trainer or its loop on. A script has one. */
export class RapidformerEngine {
  /** Every setting of the run, with its default; those of the script's own among them. */
  readonly defaults: Arguments;
  readonly #loaders = new Map<string, Loader>();
  #composition: Composition<Module> | undefined;
  #batches: Iterator<TensorBatch> | undefined;
  #isTraining = true;
  /** Of the held-out batch at hand, the rows that are this replica's own; the rest only keep it company. */
  #numReal: number | undefined;

  /** @param extraArgs - settings of one's own with their defaults, for `--set` and `getArgs()`: the seed's extra_args_provider */
  constructor(extraArgs: Readonly<Record<string, SettingValue>> = {}) {
    this.defaults = { ...defaultArguments, ...extraArgs };
  }

  /** The rank that runs. @throws {TroupeError} `LOOP_ORDER` outside a run */
  get rank(): RankContext {
    return currentRank();
  }

  /** For trainers: the rank whose hooks are called from here on. */
  enter(rank: RankContext): void {
    enterRank(rank);
  }

  /**
   * What is trained by a loop of one's own, at the top of its module: the seed's `engine.compose(model_obj=, lr_scheduler_fn=)`.
   * The model's functions work in the loop alone.
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
   * A loader of samples that are dealt to the replicas: of `train` an epoch of micro-batches a time, in another order in every
   * epoch; of other splits every sample once, in order.
   * @param samples - opened where the data is fed from, once
   */
  buildDataLoader<T, B extends Batch>(
    split: string,
    samples: () => Awaitable<Samples<T>>,
    collate: Collate<T, B>,
  ): DataLoader<TensorBatch> {
    this.#loaders.set(split, { split, samples, collate: collate as Collate<unknown, Batch> });
    const iterate = () => (split === "train" ? this.#epoch() : this.heldOut(split));
    return { split, [Symbol.iterator]: iterate };
  }

  /** The loop as a job: `export default engine.loop(() => { … })`. */
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
          refuseShapes(args, "a loop of one's own, which lays its batches out by itself");
          const opened = await Promise.all(
            [...this.#loaders.values()].map(async ({ split, samples }) => [split, await samples()] as const),
          );
          const splits = Object.fromEntries(opened);
          const collateOf = (split: string) => (this.#loaders.get(split) as Loader).collate;
          const facts = factsOf(args.dataPath, splits);
          const parts = opened.map(
            ([split, of]) =>
              [
                split,
                sampleDataset({ facts, splits: { [split]: of }, collate: collateOf(split), seed }),
              ] as const,
          );
          const datasets = Object.fromEntries(parts);
          return {
            facts,
            splits: Object.fromEntries(parts.flatMap(([, of]) => Object.entries(of.splits))),
            batch: (split, position, numSamples) =>
              (datasets[split] as (typeof parts)[0][1]).batch(split, position, numSamples),
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
        // The run's last word is read where it has not been: at the end of an epoch the loop stops short of it.
        this.#batches.next();
      },
    );
    return job as unknown as Job;
  }

  /** Adds the gradient of a loss to the step's: the seed's `engine.backward`. */
  backward(loss: ForwardResult): void {
    this.rank.backward(loss);
  }

  /** Ends a micro-batch, and with the last one the step. */
  step(): void {
    this.rank.step();
  }

  /**
   * All replicas' rows along dim 0, in their order; of held-out batches each sample once, whatever their number.
   * The seed's `gather`.
   */
  gather(rows: Tensor): Tensor {
    const numRows = rows.shape[0] ?? 0;
    const own =
      this.#numReal === undefined || this.#numReal >= numRows ? rows : rows.narrow(0, 0, this.#numReal);
    const all = this.rank.axes.dp.gather(own).filter(({ shape }) => (shape[0] ?? 0) > 0);
    return ops.cat(all, 0);
  }

  /** Writes a line from the first rank. */
  print(text: unknown): void {
    (this.rank as Rank).print(text);
  }

  /** This replica's batches of a split that is held out: all replicas have equally many, so that they can gather. */
  *heldOut(split: string): Generator<TensorBatch> {
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

  *#epoch(): Generator<TensorBatch> {
    const { rank } = this;
    const { numTrain } = rank.facts as unknown as Facts;
    const steps = epochSteps(rank.config as Arguments, numTrain);
    // A run that goes on begins in the middle of an epoch.
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

/** @returns what ranks must know of the data */
export function factsOf(
  source: string,
  splits: Readonly<Record<string, { readonly length: number }>>,
): Facts {
  const numSamples = Object.fromEntries(Object.entries(splits).map(([name, { length }]) => [name, length]));
  return { source, numSamples, numTrain: numSamples.train ?? 0 };
}
