import type { Batch, DatasetFacts, TensorBatch, TensorsOf } from "../data/index.ts";
import type { Module } from "../nn/index.ts";
import type { MeshAxis } from "../parallel/index.ts";
import type { Tensor } from "../tensor/index.ts";
import type { Axis } from "./axis.ts";
import type { JobConfig } from "./job-config.ts";
import type { Losses } from "./losses.ts";

/** What a loop may hand back from a forward: the loss alone, or with it what else of the pass is wanted. */
export type ForwardResult = Tensor | ({ readonly loss: Losses } & Readonly<Record<string, unknown>>);

/** One of the ranks that train a model, as a loss or a loop sees it; what it computes together, it computes with all of them. */
export interface Rank extends Axis {
  /** The ranks along each axis of the mesh, this one among them: `dp` the replicas, `tp` those that split a layer, … */
  readonly axes: Readonly<Record<MeshAxis, Axis>>;
  /** Steps made so far, in all: the number of the one that is under way, from 0; the same after a resume. */
  readonly numSteps: number;
  /** Numbers of this micro-batch, told with the step as `metrics`: their mean over all micro-batches, weighed as the loss is. */
  log(metrics: Readonly<Record<string, number>>): void;
  /** Writes a line from one rank alone, the first unless told otherwise. */
  print(text: unknown, rank?: number): void;
}

/** How a backward is made. */
export interface BackwardOptions {
  /** Names of the parameters that get this loss's gradient; all unless told otherwise. */
  readonly only?: RegExp;
}

/**
 * A rank in the hands of a training loop: one of several that run the same loop, each on its own share of the data. The
 * loop is synchronous; waiting for the next batch is waiting for the run to grant the next step, and what is asked
 * of the rank between two steps (evaluation, samples) is answered there. All ranks must call the same in the same order.
 *
 * Tensors made in a loop's turn are released when it asks for the next batch, save those given to `keep`.
 */
export interface RankContext<
  Config extends JobConfig = JobConfig,
  B = TensorBatch,
  M extends Module = Module,
  F extends DatasetFacts = DatasetFacts,
> extends Rank {
  readonly config: Config;
  readonly facts: F;
  /** As `model` declared it: its parameters are gathered while {@link forward} or {@link evaluate} computes with them. */
  readonly model: M;
  /** Micro-batches of this rank in one step. */
  readonly accumulation: number;

  /**
   * This rank's micro-batches, until the run's last step. Where the last of a step is passed without {@link step}, the
   * loop is refused.
   * @throws {TroupeError} `LOOP_ORDER`
   */
  batches(): Iterable<B>;
  /** Steps as they are granted, by their number from 0, for a loop that has {@link trainStep} go through the batches. */
  steps(): Iterable<number>;
  /**
   * Runs `body` recorded, on gathered parameters. Several forwards, of several models, may stand in one step.
   * @param body - returns a scalar loss, a mean over the batch, or an object with it, or with several by name, as `loss`
   * @returns what `body` returns, its tensors without their graph; others made in it are released
   * @throws {TroupeError} `LOOP_ORDER`, `PIPELINE_LOOP`
   */
  forward<R extends ForwardResult>(body: () => R): R;
  /**
   * Adds the gradient of a loss to the step's, and the loss to the step's loss. Once for each forward.
   * @throws {TroupeError} `LOOP_ORDER`, `PIPELINE_LOOP`
   */
  backward(loss: ForwardResult, options?: BackwardOptions): void;
  /**
   * Ends a micro-batch, and with the last one the step: gradients are averaged over all ranks' micro-batches, clipped, and
   * the optimizers update. Between micro-batches of one step it may be left out.
   * @throws {TroupeError} `LOOP_ORDER` where nothing was walked backwards
   */
  step(): void;
  /**
   * All of a step at once: its micro-batches forward and backward, in whatever order the layout wants, pipelines too, each
   * gradient on its way as soon as it is complete, and the step's end.
   * @param body - the losses of one batch, as a job's `loss`
   * @param options.measure - called once the step is made, on the updated parameters, as by {@link evaluate}: what it returns is
   *   told with the step, as `metrics`; the same on all ranks
   * @throws {TroupeError} `LOOP_ORDER`; `PIPELINE_LOOP` for a measure where there are stages
   */
  trainStep(
    body: (batch: B) => Losses,
    options?: { readonly measure?: (() => Readonly<Record<string, number>>) | undefined },
  ): void;
  /**
   * Has a state saved beside what the cadence asks for, as `runtime.save()` has: the one after the next step that is granted, which
   * is some steps ahead of the loop. One rank's call is enough. Behind the last step there is nothing to ask for: its state is saved.
   * @throws {TroupeError} `OPTION` for a run without a folder to save to
   */
  save(): void;
  /**
   * Samples of any split, batch by batch, as they are asked for; each batch is released behind the turn of the loop that reads
   * it. Tensor-parallel ranks must read the same.
   * @param ranges - a batch each, below the split's number of samples
   */
  read(
    split: string,
    ranges: Iterable<{ readonly position: number; readonly numSamples: number }>,
  ): Iterable<B>;
  /** Runs `body` without recording, with `training` off, on gathered parameters: for accuracies and the like. */
  evaluate<R>(body: () => R): R;
}

/** A training loop: called once in every rank, and again where the ranks start anew. */
export type Loop<Config extends JobConfig, B extends Batch, M extends Module, F extends DatasetFacts> = (
  rank: RankContext<Config, TensorsOf<B>, M, F>,
) => void;
