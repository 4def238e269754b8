import type { Tensor } from "../../../compute/tensor/index.ts";
import type { Job } from "../../../job/index.ts";
import type { GeneratedText } from "../../../library/models/index.ts";
import { type EvaluatedLoss, type LoadedModel, modelClosed } from "../../engine/conductor/index.ts";
import type { HeldWeights } from "../../protocols/index.ts";
import type { ArgsOf, BatchOf, ProgramsOf, ReadModel, RowsName, RowsOf, TextOptions } from "./live-types.ts";
import type { OpenOptions } from "./open-options.ts";

/** The layout of a copy's own ranks. */
export type CopyLayout = Omit<OpenOptions, "name" | "checkpoint" | "resume">;

/** A model on ranks of its own that serves weights. */
export interface OwnModel<J> {
  readonly model: ReadModel<J>;
  /** Serves these weights after the calls made so far. */
  take(weights: Promise<HeldWeights<Tensor>>): Promise<LoadedModel>;
}

/** The weights of a model after `step` steps. */
export interface PresentWeights {
  readonly step: number;
  weights(): Promise<HeldWeights<Tensor>>;
}

/** The parts of the model that a copy is made from. */
interface CopySource {
  readonly layout: CopyLayout;
  readonly present: () => PresentWeights;
  readonly onClose: () => void;
}

/**
 * A model that stays as a live model was, until it follows it: a reference for what is trained, or its generator. Its calls are
 * those of `LiveModel`, which say what they throw; each rejects with `MODEL_CLOSED` after {@link close} and after the end of the
 * model that it was made from.
 */
export class FrozenModel<J = Job> implements ReadModel<J> {
  /** The model that it was made from, as long as that has not moved; then one of its own. */
  #model: ReadModel<J>;
  /** The model of its own, once it has one. */
  #own: OwnModel<J> | undefined;
  /** Steps that its weights have seen. */
  #step = Number.NaN;
  #isClosed = false;
  readonly #source: CopySource;

  /** @see LiveModel.frozenCopy */
  constructor(of: ReadModel<J>, source: CopySource) {
    this.#model = of;
    this.#source = source;
  }

  get layout(): CopyLayout {
    return this.#source.layout;
  }

  /** Whether it has ranks and memory of its own: the model that it was made from has moved. */
  get isApart(): boolean {
    return this.#own !== undefined;
  }

  /** Gives it a model of its own; ownership passes. @param step - steps that its weights have seen */
  part(own: OwnModel<J>, step: number): void {
    this.#model = own.model;
    this.#own = own;
    this.#step = step;
  }

  /**
   * Takes on the weights of the model that it was made from, after the calls made there so far. Calls made here before have the
   * former weights. That model goes on meanwhile; a copy that shares its memory has them already.
   * @returns how many steps they have seen
   * @throws {TroupeError} `OPTION` where the runtime keeps no copies in memory; the error that ended that model
   */
  follow(): Promise<LoadedModel> {
    return this.#on(async () => {
      const { step, weights } = this.#source.present();
      if (this.#own === undefined || this.#step === step) return { step };
      this.#step = step;
      const held = weights();
      await this.#own.take(held);
      // A step or load called before may have been refused since.
      const { step: seen } = await held;
      if (this.#step === step) this.#step = seen;
      return { step: seen };
    });
  }

  /** As `LiveModel.call`. */
  call<N extends RowsName<ProgramsOf<J>>>(
    program: N,
    batch: BatchOf<ProgramsOf<J>[N]>,
    ...args: ArgsOf<ProgramsOf<J>[N]>
  ): Promise<{ readonly rows: RowsOf<ProgramsOf<J>[N]> }> {
    return this.#on((model) => model.call(program, batch, ...args));
  }

  /** As `LiveModel.generate`. */
  generate(
    prompts: readonly (string | readonly number[])[],
    options: TextOptions,
  ): Promise<readonly GeneratedText[]> {
    return this.#on((model) => model.generate(prompts, options));
  }

  /** As `LiveModel.evaluate`. */
  evaluate(): Promise<Readonly<Record<string, EvaluatedLoss>>> {
    return this.#on((model) => model.evaluate());
  }

  /** Makes the calls that are left, and ends its ranks, if it has its own. */
  async close(): Promise<void> {
    this.#isClosed = true;
    this.#source.onClose();
    await this.#own?.model.close();
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.#isClosed = true;
    this.#source.onClose();
    await this.#own?.model[Symbol.asyncDispose]();
  }

  #on<T>(call: (model: ReadModel<J>) => Promise<T>): Promise<T> {
    return this.#isClosed ? Promise.reject(modelClosed()) : call(this.#model);
  }
}
