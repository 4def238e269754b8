import { hold, scope, type Tensor } from "../../../compute/tensor/index.ts";
import { nearestName, TroupeError } from "../../../errors/index.ts";
import type {
  EventKind,
  EventStream,
  EventStreamOptions,
  RolloutsJudged,
} from "../../../job/events/index.ts";
import { type Job, type JobConfig, programNames } from "../../../job/index.ts";
import { checkStateName, type StateName } from "../../../library/checkpoint/index.ts";
import { type Batch, mapBatch, type SampleRange, tensorsIn } from "../../../library/data/index.ts";
import { checkGenerateOptions, type GeneratedText } from "../../../library/models/index.ts";
import type {
  Accumulated,
  CallLog,
  EvaluatedLoss,
  LoadedModel,
  ProgramCall,
  SavedState,
  SteppedModel,
} from "../../engine/conductor/index.ts";
import { checkPattern } from "../../inspect/index.ts";
import type { HeldWeights } from "../../protocols/index.ts";
import type { RunData } from "../plan/run-data.ts";
import { type CopyLayout, FrozenModel, type OwnModel, type PresentWeights } from "./frozen-model.ts";
import type {
  ArgsOf,
  BatchOf,
  LossName,
  ProgramsOf,
  ReadModel,
  RowsName,
  RowsOf,
  TextOptions,
} from "./live-types.ts";

/** The parts of an open run that a live model works with. */
export interface LiveRun extends OpenedRun {
  readonly calls: CallLog;
  /** Settles once the run is over. */
  readonly over: Promise<unknown>;
  readonly events: <K extends EventKind>(options: EventStreamOptions<K>) => EventStream<K>;
  /**
   * Opens another model of the job, on ranks of its own, that serves a state after `step` steps and never trains it. Ownership of
   * the weights passes.
   */
  readonly openCopy: (step: number, state: Promise<FrozenState>, layout: CopyLayout) => OwnModel<never>;
  /** @throws {TroupeError} `OPTION` for a layout that no copy can have */
  readonly checkCopy: (layout: CopyLayout) => Promise<unknown>;
}

/** A state that is served and never trained: its weights, or the checkpoint that has them. */
export type FrozenState = HeldWeights<Tensor> | SavedState;

/** The facts of a run that is open. */
export interface OpenedRun {
  readonly job: Job;
  /** The job's settings, complete. */
  readonly config: JobConfig;
  readonly data: RunData;
  readonly seed: number;
  /** Replicas of the model. */
  readonly numReplicas: number;
  /** Micro-batches of each replica in an accumulation. */
  readonly accumulation: number;
  /** Whether held-out losses can be computed. */
  readonly canEvaluate: boolean;
  /** Whether states are saved to a folder. */
  readonly isSaved: boolean;
  /** Whether copies of states stay in memory. */
  readonly isCopied: boolean;
  readonly emit: (event: RolloutsJudged) => void;
}

/** Texts of a round that a script learns from. */
export interface JudgedRollouts {
  /** From 0. */
  readonly round: number;
  /** See `rollouts`. Default: 0. */
  readonly staleness?: number;
  /** As `generate` returns them, or their tokens. */
  readonly texts: readonly (GeneratedText | readonly number[])[];
  /** A reward for each text. */
  readonly rewards: readonly number[];
  /** A prompt for each text, to be read. */
  readonly prompts?: readonly string[];
  /** Divergence from a reference, in nats a token. */
  readonly klNats?: number;
}

/**
 * A model that stays up between a script's calls, on the ranks of its runtime. Calls are made in the order in which the script
 * makes them, and the ranks begin them without waiting for the script: a script that needs no result need not await. When a rank
 * dies, the model goes back to its last kept state and makes the calls since then again, to the same bits.
 *
 * Every call rejects with `LIVE_CALL` before any work where it cannot be made, with `MODEL_CLOSED` after {@link close}, and with
 * the error that ended the run, if one did.
 */
export class LiveModel<J = Job> implements ReadModel<J> {
  readonly #run: LiveRun;
  #isClosed = false;
  /** Frozen copies that share its memory. */
  readonly #sharing = new Set<FrozenModel<J>>();
  readonly #copies = new Set<FrozenModel<J>>();
  /** Calls that were made and rejected. */
  readonly #failed: { readonly result: WatchedPromise<unknown>; readonly error: unknown }[] = [];

  /** @see Runtime.open */
  constructor(run: LiveRun) {
    this.#run = run;
  }

  /**
   * This model's events, or a selection of them, for `for await`, as `runtime.events` has those of all. Ends with the runtime.
   * @throws {TroupeError} `OPTION`
   */
  events<K extends EventKind = EventKind>(options: EventStreamOptions<K> = {}): EventStream<K> {
    return this.#run.events(options);
  }

  /**
   * Runs a program of the job in evaluation mode, without gradients, on the parameters after the steps called so far.
   * @param batch - is copied; or a range of the dataset's samples
   * @returns the program's rows, in the order of the samples; the caller's
   */
  call<N extends RowsName<ProgramsOf<J>>>(
    program: N,
    batch: BatchOf<ProgramsOf<J>[N]>,
    ...[args]: ArgsOf<ProgramsOf<J>[N]>
  ): Promise<{ readonly rows: RowsOf<ProgramsOf<J>[N]> }> {
    return this.#made(() => {
      const call = this.#programCall("call", program, batch, args);
      return this.#run.calls.add("call", call).then((rows) => ({ rows: rows as RowsOf<ProgramsOf<J>[N]> }));
    });
  }

  /**
   * Forward and backward of a program's loss; {@link step} updates the parameters by all that was accumulated. Each replica takes
   * an equal, consecutive share of the samples, in as many micro-batches as the job accumulates.
   * @param batch - is copied; or a range of the dataset's samples. Batches of a step may differ in size: each sample counts alike
   * @returns the mean loss of the batch
   */
  accumulate<N extends LossName<ProgramsOf<J>>>(
    program: N,
    batch: BatchOf<ProgramsOf<J>[N]>,
    ...[args]: ArgsOf<ProgramsOf<J>[N]>
  ): Promise<Accumulated> {
    return this.#made(() => {
      const check = (numSamples: number) => this.#checkShares(numSamples);
      return this.#run.calls.add("accumulate", this.#programCall("accumulate", program, batch, args, check));
    });
  }

  #checkShares(numSamples: number): void {
    const { numReplicas, accumulation } = this.#run;
    const unit = numReplicas * accumulation;
    if (numSamples % unit === 0) return;
    const each = accumulation === 1 ? "" : ` × ${accumulation} micro-batches`;
    throw refuse("accumulate", `a multiple of ${unit} samples (${numReplicas} replicas${each})`, numSamples);
  }

  /**
   * Makes one update by the mean gradient of all that was accumulated since the last.
   * @param options.lr - the rate of every optimizer, before the factors of its groups. Default: the job's schedule
   */
  step(options: { readonly lr?: number } = {}): Promise<SteppedModel> {
    return this.#made(() => {
      const { lr } = options;
      const { calls } = this.#run;
      if (!calls.isClosed && !calls.isAccumulated)
        throw refuse(
          "step",
          "something accumulated since the last step",
          "nothing",
          "call accumulate before",
        );
      if (lr !== undefined && !(Number.isFinite(lr) && lr >= 0))
        throw refuse("step", "a rate of at least 0", lr);
      this.#move();
      return calls.add("step", { learningRate: lr });
    });
  }

  /**
   * Generates texts on the parameters after the steps called so far; the replicas share the prompts. A text depends on its place
   * among them, not on the number of ranks.
   * @param prompts - tokens, at least one each, or strings for the tokenizer of the job's dataset
   * @param options - as of `generate`
   * @returns what was written, the samples of a prompt one after the other, with its text if the dataset has a tokenizer
   * @throws {TroupeError} `GENERATE_OPTION`
   */
  generate(
    prompts: readonly (string | readonly number[])[],
    options: TextOptions,
  ): Promise<readonly GeneratedText[]> {
    return this.#made(() => {
      checkGenerateOptions(prompts, options);
      return this.#run.calls.add("generate", { prompts, options });
    });
  }

  /**
   * Reports texts that the model learns from, as the event `rollouts.judged`: the page and other outputs show rewards, lengths, divergence,
   * staleness, and the first texts. Changes nothing else.
   * @throws {TroupeError} `LIVE_CALL` unless there are texts, and a reward and a prompt for each
   */
  report({ round, staleness = 0, texts, rewards, prompts, klNats }: JudgedRollouts): void {
    // A script in JavaScript may leave them out.
    const given = { rewards: (rewards as typeof rewards | undefined) ?? [], ...(prompts && { prompts }) };
    for (const [name, { length }] of Object.entries(given))
      if (texts.length === 0 || length !== texts.length)
        throw refuse("report", `${Math.max(1, texts.length)} ${name}, one for each text`, length);
    const meanOf = (values: readonly number[]) =>
      values.reduce((sum, value) => sum + value, 0) / values.length;
    this.#run.emit({
      ...{ kind: "rollouts.judged", step: this.#run.calls.step, round, staleness, numTexts: texts.length },
      meanReward: meanOf(rewards),
      meanTokens: meanOf(texts.map((text) => ("tokens" in text ? text.tokens : text).length)),
      ...(klNats !== undefined && { klNats }),
      texts: texts.slice(0, MOST_SHOWN).map((text, index) => ({
        prompt: (prompts?.[index] ?? "").slice(0, MOST_CHARACTERS),
        text: shownOf(text).slice(0, MOST_CHARACTERS),
        reward: rewards[index] ?? Number.NaN,
      })),
    });
  }

  /** Computes the loss of each held-out split that the job names, else of `validation`, and reports `evaluation.finished`. */
  evaluate(): Promise<Readonly<Record<string, EvaluatedLoss>>> {
    return this.#made(() => {
      if (!this.#run.canEvaluate)
        throw refuse(
          "evaluate",
          "a loss of the job, and a held-out split that ends",
          "none",
          "evaluationSplits and evaluationSamples of the job's training; by default it is the split validation",
        );
      return this.#run.calls.add("evaluate", undefined);
    });
  }

  /**
   * Reads the parameters whose names match, complete and in float32, after the steps called so far.
   * @param pattern - with shell wildcards, such as `*.c_attn.*`. Default: all that a checkpoint has
   * @returns by name, in the order of the model; the caller's
   * @throws {TroupeError} `OPTION` for a pattern that cannot be read, and where the runtime keeps no copies in memory to read from
   */
  parameters(pattern = "*"): Promise<Readonly<Record<string, Tensor>>> {
    return this.#made(() => {
      checkPattern(pattern);
      if (!this.#run.isCopied) throw notCopied("parameters");
      return this.#run.calls.add("parameters", { pattern });
    });
  }

  /**
   * Takes on the state in a folder, after the calls made so far: all of a checkpoint of any layout, or the weights of a folder in
   * the format of transformers or peft, with moments zero. It counts as a step. The ranks are restarted for it.
   * @param folder - of a checkpoint, of a run's checkpoints (then its newest complete one), or of weights
   * @throws {TroupeError} errors of opening it; `RESUME_MISMATCH` or `MODEL_WEIGHTS` for another model's. The model then stays
   *   as it is
   */
  load(folder: string): Promise<LoadedModel> {
    return this.#made(() => {
      const { calls } = this.#run;
      if (!calls.isClosed && calls.isAccumulated)
        throw refuse("load", "a step for all that was accumulated", "none", "call step before");
      if (typeof folder !== "string" || folder === "") throw refuse("load", "the path of a folder", folder);
      this.#move();
      return calls.add("load", { folder });
    });
  }

  /**
   * A model that stays as this one is after the steps called so far. Until the next step or load it shares this model's ranks and
   * memory; then it becomes a copy on ranks of its own. It ends with this model, unless it is closed before.
   * @param layout - of its own ranks. Default: this model's; with fewer ranks the first ones of its hosts
   * @throws {TroupeError} `OPTION`
   */
  async frozenCopy(layout: CopyLayout = {}): Promise<FrozenModel<J>> {
    if (this.#run.calls.isClosed) throw this.#run.calls.ended;
    const copy = new FrozenModel<J>(this, {
      layout,
      present: () => this.#present(),
      onClose: () => {
        this.#copies.delete(copy);
        this.#sharing.delete(copy);
      },
    });
    this.#copies.add(copy);
    // Steps called from here on are not its own.
    this.#sharing.add(copy);
    try {
      await this.#run.checkCopy(layout);
    } catch (error) {
      await copy.close();
      throw error;
    }
    return copy;
  }

  /** Parts from the copies that share its memory, since a later call changes it. */
  #move(): void {
    const { calls, isCopied, openCopy } = this.#run;
    if (calls.isClosed) return;
    for (const copy of this.#sharing) {
      const state: Promise<FrozenState> = isCopied
        ? calls.add("weights", undefined)
        : calls.add("save", { named: { as: `frozen-${calls.step}` } });
      copy.part(openCopy(calls.step, state, copy.layout) as OwnModel<J>, calls.step);
    }
    this.#sharing.clear();
  }

  /** The weights after the steps called so far, for a copy that is apart. @throws {TroupeError} `OPTION`; `MODEL_CLOSED` */
  #present(): PresentWeights {
    const { calls, isCopied } = this.#run;
    if (!isCopied) throw notCopied("follow");
    return { step: calls.step, weights: () => calls.add("weights", undefined) };
  }

  /**
   * Saves the state after the steps called so far, as a run saves.
   * @param named - gives the checkpoint a name, as `rank.save`
   * @returns once it is durable
   * @throws {TroupeError} `OPTION` without a checkpoint folder; the error that the save failed with
   */
  save(named?: StateName): Promise<SavedState> {
    return this.#made(() => {
      if (!this.#run.isSaved)
        throw new TroupeError("OPTION", {
          where: "save",
          expected: "a folder to save to",
          got: "none",
          hint: "checkpoint of Runtime.spawn",
        });
      if (named !== undefined) checkStateName("save", named.as);
      return this.#run.calls.add("save", { named });
    });
  }

  /**
   * Makes the calls added so far, saves the last state if there is a checkpoint folder, and ends the ranks.
   * @throws the error that ended the run, if one did; the error of the first failed call, if the script has awaited none
   */
  async close(): Promise<void> {
    this.#isClosed = true;
    this.#run.calls.close();
    await Promise.allSettled([...this.#copies].map((copy) => copy.close()));
    await this.#run.over;
    const [first] = this.#failed;
    if (first !== undefined && !this.#isHeard) throw first.error;
  }

  /** Whether the script has awaited a failed call. */
  get #isHeard(): boolean {
    return this.#failed.some(({ result }) => result.isAwaited);
  }

  /** Closes the model. Throws the error that ended the run only if neither {@link close} nor an awaited call has thrown it. */
  async [Symbol.asyncDispose](): Promise<void> {
    const wasClosed = this.#isClosed;
    await this.close().catch((error: unknown) => {
      if (!wasClosed && !this.#isHeard) throw error;
    });
  }

  /** Gives the script the result of a call. A call that is refused throws wherever it is made; the end of a run does not. */
  #made<T>(call: () => Promise<T>): Promise<T> {
    let made: Promise<T>;
    try {
      made = call();
    } catch (error) {
      return Promise.reject(error);
    }
    const result: WatchedPromise<T> = new WatchedPromise((resolve, reject) => {
      made.then(resolve, (error: unknown) => {
        this.#failed.push({ result, error });
        reject(error);
      });
    });
    result.ignore();
    return result;
  }

  /** @param check - throws for a number of samples that the call cannot have, before they are copied */
  #programCall(
    where: string,
    program: string,
    batch: Batch | SampleRange,
    args: unknown,
    check: (numSamples: number) => void = () => {},
  ): ProgramCall {
    const { job, calls } = this.#run;
    if (calls.isClosed) throw calls.ended;
    const names = programNames(job);
    if (!names.includes(program)) {
      const nearest = nearestName(program, names);
      throw refuse(
        where,
        `a program of the job, such as ${names.join(", ")}`,
        program,
        nearest && `did you mean ${nearest}?`,
      );
    }
    const numSamples = isRange(batch) ? batch.numSamples : numSamplesOf(where, batch);
    check(numSamples);
    if (isRange(batch)) return { program, args, batch: { range: batch }, numSamples };
    const samples = scope(() => mapBatch(batch, (tensor) => hold(() => tensor.detach().clone())));
    return { program, args, batch: { samples: samples as Batch }, numSamples };
  }
}

/** The most texts that a report shows, and the most characters of each. */
const [MOST_SHOWN, MOST_CHARACTERS] = [8, 2_000];

/** A text in words, or in its tokens without a tokenizer. */
function shownOf(text: GeneratedText | readonly number[]): string {
  if ("tokens" in text) return text.text ?? text.tokens.join(" ");
  return text.join(" ");
}

/** A promise that knows whether it is awaited. */
class WatchedPromise<T> extends Promise<T> {
  isAwaited = false;

  static override get [Symbol.species](): PromiseConstructor {
    return Promise;
  }

  // biome-ignore lint/suspicious/noThenProperty: this is how a promise is awaited
  override then<A = T, B = never>(...given: Parameters<Promise<T>["then"]>): Promise<A | B> {
    this.isAwaited = true;
    return super.then(...given) as Promise<A | B>;
  }

  /** Lets it be rejected though it is not awaited. */
  ignore(): void {
    super.then(undefined, () => {});
  }
}

/** The error of what is read from copies in memory. */
function notCopied(where: string): TroupeError {
  return new TroupeError("OPTION", {
    where,
    expected: "copies in memory",
    got: "none",
    hint: "inMemoryEverySteps, in the checkpoint of Runtime.spawn",
  });
}

function numSamplesOf(where: string, batch: Batch): number {
  const sizes = new Set([...tensorsIn(batch)].map(({ shape }) => shape[0] ?? 0));
  const [numSamples = 0] = sizes;
  if (sizes.size === 1 && numSamples > 0) return numSamples;
  throw refuse(
    where,
    "a batch of tensors with its samples along dim 0",
    sizes.size === 0 ? "none" : `${[...sizes].join(" and ")} samples`,
  );
}

function isRange(batch: Batch | SampleRange): batch is SampleRange {
  return typeof batch.split === "string" && typeof batch.position === "number";
}

function refuse(where: string, expected: string, got: unknown, hint?: string): TroupeError {
  return new TroupeError("LIVE_CALL", { where, expected, got: `${got}`, hint });
}
