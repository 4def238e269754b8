import type { Job } from "../../../job/index.ts";
import type { GeneratedText } from "../../../library/models/index.ts";
import { type EvaluatedLoss, modelClosed } from "../../engine/conductor/index.ts";
import type { ArgsOf, BatchOf, ProgramsOf, ReadModel, RowsName, RowsOf, TextOptions } from "./live-types.ts";

/**
 * A model that stays as a live model was: a reference for what is trained. Its calls are those of `LiveModel`, which say what
 * they throw; each rejects with `MODEL_CLOSED` after {@link close} and after the end of the model that it was made from.
 */
export class FrozenModel<J = Job> implements ReadModel<J> {
  /** The model that it was made from, as long as that has not moved; then one of its own. */
  #model: ReadModel<J>;
  #isOwn = false;
  #isClosed = false;
  readonly #onClose: () => void;

  /** @see LiveModel.frozenCopy */
  constructor(of: ReadModel<J>, onClose: () => void) {
    this.#model = of;
    this.#onClose = onClose;
  }

  /** Whether it has ranks and memory of its own: the model that it was made from has moved. */
  get isApart(): boolean {
    return this.#isOwn;
  }

  /** Gives it a model of its own; ownership passes. */
  part(own: ReadModel<J>): void {
    this.#model = own;
    this.#isOwn = true;
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
    this.#onClose();
    if (this.#isOwn) await this.#model.close();
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.#isClosed = true;
    this.#onClose();
    if (this.#isOwn) await this.#model[Symbol.asyncDispose]();
  }

  #on<T>(call: (model: ReadModel<J>) => Promise<T>): Promise<T> {
    return this.#isClosed ? Promise.reject(modelClosed()) : call(this.#model);
  }
}
