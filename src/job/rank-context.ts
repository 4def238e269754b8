import type { Module } from "../compute/nn/index.ts";
import type { MeshAxis } from "../compute/parallel/index.ts";
import type { Tensor } from "../compute/tensor/index.ts";
import type { Batch, DatasetFacts, TensorBatch, TensorsOf } from "../library/data/index.ts";
import type { AskKind, AskOptions, In, Kind, Out } from "../runtime/index.ts";
import type { Axis } from "./axis.ts";
import type { JobConfig, SettingsOf } from "./job-config.ts";
import type { Losses } from "./losses.ts";

/** The result of a loop's forward: the loss, or an object with it and anything else that the loop needs of the pass. */
export type ForwardResult = Tensor | ({ readonly loss: Losses } & Readonly<Record<string, unknown>>);

/** An actor that a rank reaches by name. Calls block the rank's thread, as its other calls do. */
export interface ReachedActor<P> {
  /**
   * Sends a question and waits for its answer.
   * @throws {AskTimeout} if no answer came by the deadline
   * @throws {TroupeError} `ACTOR_LOST` as soon as the actor has ended, and the next call reaches its next incarnation; else the
   *   handler's error
   */
  ask<K extends AskKind<P>>(kind: K, message: In<P, K>, options: AskOptions): Out<P, K>;
  /** Sends a message without waiting for an answer. */
  tell<K extends Kind<P>>(kind: K, message: In<P, K>): void;
}

/** One of the ranks that train a model, as a loss or a loop sees it. Its own collectives are those of all ranks. */
export interface Rank extends Axis {
  /** This rank's group along each axis of the mesh: `dp` the replicas, `tp` the ranks that split a layer, … */
  readonly axes: Readonly<Record<MeshAxis, Axis>>;
  /** Steps made so far, which is the number of the current step, from 0; goes on counting after a resume. */
  readonly numSteps: number;
  /** Reports numbers of this micro-batch as `metrics` of the step: their mean over all micro-batches, weighted as the loss is. */
  log(metrics: Readonly<Record<string, number>>): void;
  /**
   * Reaches an actor that the script has started with `runtime.actors`, in whatever incarnation it is. Ranks that split a layer
   * must get the same answers.
   * @param name - as it was spawned
   * @throws {TroupeError} `ACTOR_UNKNOWN` when it is first called, with the nearest name
   */
  actor<P>(name: string): ReachedActor<P>;
  /** Prints a line from one rank only; by default the first. */
  print(text: unknown, rank?: number): void;
}

/** The name of a saved state. */
export interface SaveName {
  /** The name, such as `best`. */
  readonly as?: string;
  /** The metric of the state, kept with the name. */
  readonly metric?: number;
}

/** Options of `backward`. */
export interface BackwardOptions {
  /** Names of the parameters that get this loss's gradient. Default: all. */
  readonly only?: RegExp;
}

/**
 * A training loop's access to its rank. Every rank runs the same loop on its own share of the data, and all must make
 * the same calls in the same order. The loop is synchronous: asking for the next batch blocks until the run grants the
 * next step; evaluations and samples run there, between two steps.
 *
 * Tensors made in an iteration are released when the loop asks for the next batch, except those given to `keep`.
 */
export interface RankContext<
  Config extends JobConfig = JobConfig,
  B = TensorBatch,
  M extends Module = Module,
  F extends DatasetFacts = DatasetFacts,
> extends Rank {
  readonly config: SettingsOf<Config>;
  readonly facts: F;
  /** The declared model; its parameters are gathered only within {@link forward} and {@link evaluate}. */
  readonly model: M;
  /** Micro-batches of this rank in a step. */
  readonly accumulation: number;
  /** Index, from 0, of the micro-batch that a loop over {@link batches} is at. */
  readonly microBatch: number;
  /** Whether it is the step's last: {@link step} makes the update in it, and in no other. True in a loop over {@link steps}. */
  readonly isLastMicroBatch: boolean;

  /**
   * This rank's micro-batches, until the run's last step.
   * @throws {TroupeError} `LOOP_ORDER` if a step's last micro-batch is left without {@link step}
   */
  batches(): Iterable<B>;
  /** The numbers of the steps, from 0, as they are granted; for loops that use {@link trainStep}. */
  steps(): Iterable<number>;
  /**
   * Runs `body` on gathered parameters and records the graph. A step may have several forwards, of several models.
   * @param body - returns a scalar loss (a mean over the batch), or an object whose `loss` is that or several by name
   * @returns what `body` returns, with its tensors detached; other tensors made in it are released
   * @throws {TroupeError} `LOOP_ORDER`, `PIPELINE_LOOP`
   */
  forward<R extends ForwardResult>(body: () => R): R;
  /**
   * Adds a loss to the step's loss, and its gradient to the step's gradient. To be called once for each forward.
   * @throws {TroupeError} `LOOP_ORDER`, `PIPELINE_LOOP`
   */
  backward(loss: ForwardResult, options?: BackwardOptions): void;
  /**
   * Ends a micro-batch. The last one of a step also ends the step: gradients are averaged over all ranks' micro-batches and
   * clipped, and the optimizers update. It may be left out between the micro-batches of a step.
   * @throws {TroupeError} `LOOP_ORDER` without a backward before it
   */
  step(): void;
  /**
   * Makes a complete step: forward and backward of all its micro-batches in the order of the layout's schedule,
   * pipelines included, each gradient reduced as soon as it is complete, and the update.
   * @param body - the losses of one batch, as a job's `loss`
   * @param options.measure - called after the step on the updated parameters, as by {@link evaluate}; its numbers,
   * which must be the same on all ranks, are reported as `metrics` of the step
   * @throws {TroupeError} `LOOP_ORDER`; `PIPELINE_LOOP` for a measure with pipeline stages
   */
  trainStep(
    body: (batch: B) => Losses,
    options?: { readonly measure?: (() => Readonly<Record<string, number>>) | undefined },
  ): void;
  /**
   * Saves the present state: of the parameters as they are now, after {@link numSteps} updates. It returns once nothing can
   * overwrite that state, and training goes on while it is written. One rank's call is enough. The state after the last step
   * is always saved.
   * @param named - gives the checkpoint a name, which it keeps until another save takes it: pruning leaves it, and
   *   `FOLDER/NAME` opens it
   * @throws {TroupeError} `OPTION` for a run without a checkpoint folder, or for what is no name
   */
  save(named?: SaveName): void;
  /**
   * Ends the run after the step under way, or after the one just made; before a loop's first step, after that one. Loops get no further
   * batch, and the state is evaluated and saved as at a planned end. If only some ranks call it in a step, the run ends a few steps
   * later, after the granted ones.
   */
  stop(): void;
  /**
   * Reads samples of any split, a batch for each range; each batch is released at the end of its iteration. Tensor-parallel
   * ranks must read the same ranges.
   * @param ranges - positions below the split's number of samples
   */
  read(
    split: string,
    ranges: Iterable<{ readonly position: number; readonly numSamples: number }>,
  ): Iterable<B>;
  /** Runs `body` on gathered parameters in evaluation mode, without recording a graph. */
  evaluate<R>(body: () => R): R;
}

/**
 * A training loop: called once in every rank, and again after a restart. It may return before the run's last step, on all ranks after
 * the same step: the run then ends. It is synchronous; `undefined` in its type refuses an async function.
 */
export type Loop<Config extends JobConfig, B extends Batch, M extends Module, F extends DatasetFacts> = (
  rank: RankContext<Config, TensorsOf<B>, M, F>,
) => // biome-ignore lint/suspicious/noConfusingVoidType: void alone would take an async function
void | undefined;
