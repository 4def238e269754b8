import type { Tensor } from "../../../compute/tensor/index.ts";
import { TroupeError } from "../../../errors/index.ts";
import type { StateName } from "../../../library/checkpoint/index.ts";
import type { Batch, Rows, SampleRange } from "../../../library/data/index.ts";
import { disposeBatch } from "../../../library/data/index.ts";
import type { GeneratedText, GenerateOptions } from "../../../library/models/index.ts";
import type { HeldWeights, InitialState } from "../../protocols/index.ts";
import type { EvaluatedLoss } from "./evaluation.ts";
import type { SavedState } from "./run-control.ts";

/** A call of a program. */
export interface ProgramCall {
  readonly program: string;
  /** Plain data. */
  readonly args: unknown;
  /** Samples, which the log owns, or a range of the dataset's. */
  readonly batch: { readonly samples: Batch } | { readonly range: SampleRange };
  readonly numSamples: number;
}

/** The loss of the samples of one accumulation. */
export interface Accumulated {
  /** Mean over the samples, in nats; of several named losses their sum. */
  readonly lossNats: number;
  /** By name, if losses have names. */
  readonly losses?: Readonly<Record<string, number>>;
}

/** A step that a script has made. */
export interface SteppedModel {
  /** Number of steps made so far, this one included. */
  readonly step: number;
  /** Mean over everything accumulated, in nats. */
  readonly lossNats: number;
  readonly learningRate: number;
  /** L2 norm of the averaged gradient before clipping. */
  readonly gradientNorm: number;
  /** Whether nothing was updated. */
  readonly skipped: boolean;
}

/** A state that a script has loaded. */
export interface LoadedModel {
  /** Number of steps made so far; the load counts as one. */
  readonly step: number;
}

/** Calls by kind, with their results. */
export interface CallKinds {
  accumulate: { in: ProgramCall; out: Accumulated };
  call: { in: ProgramCall; out: Rows };
  generate: {
    in: { readonly prompts: readonly (string | readonly number[])[]; readonly options: GenerateOptions };
    out: readonly GeneratedText[];
  };
  parameters: { in: { readonly pattern: string }; out: Rows };
  step: { in: { readonly learningRate: number | undefined }; out: SteppedModel };
  evaluate: { in: undefined; out: Readonly<Record<string, EvaluatedLoss>> };
  save: { in: { readonly named: StateName | undefined }; out: SavedState };
  /** Reads all weights, for a frozen copy. */
  weights: { in: undefined; out: HeldWeights<Tensor> };
  load: { in: { readonly folder: string }; out: LoadedModel };
  /** Puts other weights in the place of a frozen copy's. */
  take: { in: { readonly weights: Promise<HeldWeights<Tensor>> }; out: LoadedModel };
}

/** Kinds of calls that lead to a later state, and so are made again. */
const CHANGING: readonly string[] = ["accumulate", "step", "load", "take"];

/** Kinds of calls that end a state: the next one follows. */
const isEndOfState = (kind: string) => kind === "step" || kind === "load" || kind === "take";

/** One call of a script. */
export type LiveCall = {
  [K in keyof CallKinds]: {
    readonly kind: K;
    /** Counted from 1. */
    readonly number: number;
    /** Steps called before it. */
    readonly step: number;
    readonly in: CallKinds[K]["in"];
    /** Gives the script the result; does nothing if it has one. */
    readonly answer: (out: CallKinds[K]["out"]) => void;
    /** Gives the script an error of this call alone. */
    readonly refuse: (error: unknown) => void;
  };
}[keyof CallKinds];

/** A call whose own work has failed: the ranks go back to the last kept state, and make the others again. */
export class FailedCall extends Error {
  readonly call: LiveCall;

  /** @param cause - the error of its work */
  constructor(call: LiveCall, cause: unknown) {
    super(`call ${call.number} has failed`, { cause });
    this.call = call;
  }
}

/** A state has been found that a script loads: the ranks go on from there. */
export class LoadedState extends Error {
  readonly call: LiveCall;
  readonly initial: InitialState;

  constructor(call: LiveCall, initial: InitialState) {
    super(`call ${call.number} loads a state`);
    this.call = call;
    this.initial = initial;
  }
}

/**
 * The calls of a live model in the order of the script, from the last kept state on: when the ranks are restarted, these are made
 * again. Calls that read alone are forgotten once they are answered.
 */
export class CallLog {
  /** By number, those without a result. */
  readonly #open = new Map<number, (error: unknown) => void>();
  readonly #calls: LiveCall[] = [];
  #numCalls = 0;
  #step: number | undefined;
  /** The step of the earliest state that the calls here follow. */
  #from = 0;
  #reader: CallReader | undefined;
  #changed = Promise.withResolvers<void>();
  #isClosed = false;
  #failed: { readonly error: unknown } | undefined;

  /** @param step - of the first state; left out if the first {@link read} tells */
  constructor(step?: number) {
    this.#step = step;
    this.#from = step ?? 0;
  }

  /** Adds a call. @throws {TroupeError} `MODEL_CLOSED`; the error that ended the model */
  add<K extends keyof CallKinds>(kind: K, input: CallKinds[K]["in"]): Promise<CallKinds[K]["out"]> {
    if (this.#isClosed) return Promise.reject(this.ended);
    const { promise, resolve, reject } = Promise.withResolvers<CallKinds[K]["out"]>();
    // A script may await a later call alone: that one has the same error.
    promise.catch(() => {});
    const number = ++this.#numCalls;
    const settle = <T>(deliver: (given: T) => void) => {
      return (given: T) => {
        if (!this.#open.delete(number)) return;
        if (!CHANGING.includes(kind)) this.#forget((call) => call.number === number);
        deliver(given);
      };
    };
    const settled = { answer: settle(resolve), refuse: settle(reject) };
    const call = { kind, number, step: this.#step ?? 0, in: input, ...settled } as unknown as LiveCall;
    if (isEndOfState(kind)) this.#step = (this.#step ?? 0) + 1;
    this.#calls.push(call);
    this.#open.set(number, reject);
    this.wake();
    return promise;
  }

  /** Reads the calls that follow the state after `step` steps. @throws {TroupeError} `CALLS_LOST` if they are forgotten */
  read(step: number): CallReader {
    if (this.#step === undefined) {
      this.#step = step;
      this.#from = step;
    }
    if (step < this.#from) throw lost(step, this.#from);
    // The ranks ended when the checkpointer had taken the weights.
    for (const call of this.#calls)
      if (call.kind === "take" && call.step < step) call.answer({ step: call.step + 1 });
    this.#reader = new CallReader(this.#calls, step);
    return this.#reader;
  }

  /** The ranks will be restarted from a state that is still to be chosen: until {@link read} no step's calls are forgotten. */
  restart(): void {
    this.#reader = undefined;
  }

  /** A state is kept: the calls before it are forgotten, once the present reader has taken them. */
  keep(step: number): void {
    // Ranks that have ended may have saved it, after others went back to an older state.
    const from = Math.min(step, this.#reader?.step ?? 0);
    if (from <= this.#from) return;
    this.#from = from;
    this.#forget((call) => call.step < from);
  }

  /** Whether something is accumulated for the step that the script would call next. */
  get isAccumulated(): boolean {
    return this.#calls.findLast(({ kind }) => CHANGING.includes(kind))?.kind === "accumulate";
  }

  /**
   * Drops a call and gives the script its error; the ranks go on without it. A step goes with all that was
   * accumulated for it, and with the last of that goes the step.
   */
  refuse({ number, kind, step }: LiveCall, error: unknown): void {
    const isOfStep = (call: LiveCall) => call.step === step && call.kind === "accumulate";
    const isMeant = (call: LiveCall) => call.number === number || (kind === "step" && isOfStep(call));
    for (const call of this.#calls.filter(isMeant)) this.#open.get(call.number)?.(error);
    for (const call of this.#calls.filter(isMeant)) this.#open.delete(call.number);
    this.#forget(isMeant);
    if (isEndOfState(kind)) {
      this.#step = (this.#step ?? 0) - 1;
      for (const call of this.#calls) if (call.step > step) (call as { step: number }).step -= 1;
    }
    const ended = this.#calls.find((call) => call.step === step && call.kind === "step");
    if (kind === "accumulate" && ended !== undefined && !this.#calls.some(isOfStep))
      this.refuse(ended, error);
  }

  /** Resolves at the next call or {@link wake}, or at the end. */
  get changed(): Promise<void> {
    return this.#changed.promise;
  }

  /** The error of calls that come too late. */
  get ended(): unknown {
    return this.#failed === undefined ? modelClosed() : this.#failed.error;
  }

  /** Number of steps called so far. */
  get step(): number {
    return this.#step ?? 0;
  }

  /** Whether the script still waits for the result of a call. */
  isOpen({ number }: LiveCall): boolean {
    return this.#open.has(number);
  }

  /** Whether no more calls come. */
  get isClosed(): boolean {
    return this.#isClosed;
  }

  /** Takes no more calls; those added are still made. */
  close(): void {
    this.#isClosed = true;
    this.wake();
  }

  /** The run is over: rejects all calls, present and future. @param error - left out if it has ended in order */
  end(error?: unknown): void {
    this.#isClosed = true;
    if (error !== undefined) this.#failed = { error };
    for (const reject of this.#open.values()) reject(error ?? modelClosed());
    this.#open.clear();
    this.#forget(() => true);
    this.wake();
  }

  #forget(isMeant: (call: LiveCall) => boolean): void {
    for (let index = this.#calls.length - 1; index >= 0; index--) {
      const call = this.#calls[index] as LiveCall;
      if (!isMeant(call)) continue;
      this.#calls.splice(index, 1);
      if ("batch" in (call.in ?? {})) dropSamples((call.in as ProgramCall).batch);
    }
  }

  /** Ends the waits for a next call: there is something else to do. */
  wake(): void {
    this.#changed.resolve();
    this.#changed = Promise.withResolvers();
  }
}

/** The calls of a log, one after the other. */
export class CallReader {
  readonly #calls: readonly LiveCall[];
  /** Steps made before the next call. */
  step: number;
  #last = 0;

  constructor(calls: readonly LiveCall[], step: number) {
    this.#calls = calls;
    this.step = step;
  }

  /** The next call; undefined if it is not there yet. */
  get next(): LiveCall | undefined {
    return this.#calls.find(({ number, step }) => number > this.#last && step >= this.step);
  }

  /** Goes back to the calls after this one, which was taken before and is dropped. */
  rewind({ number, step }: LiveCall): void {
    this.#last = number;
    this.step = step;
  }

  /** The next call, which is taken. */
  take(): LiveCall | undefined {
    const call = this.next;
    if (call === undefined) return undefined;
    this.#last = call.number;
    if (isEndOfState(call.kind)) this.step = call.step + 1;
    return call;
  }
}

function dropSamples(batch: ProgramCall["batch"]): void {
  if ("samples" in batch) disposeBatch(batch.samples);
}

/** The error of calls of a model that is closed. */
export function modelClosed(): TroupeError {
  return new TroupeError("MODEL_CLOSED", {
    where: "model",
    expected: "a live model",
    got: "one that is closed",
    hint: "open it again",
  });
}

function lost(step: number, from: number): TroupeError {
  return new TroupeError("CALLS_LOST", {
    where: "model",
    expected: `the calls since step ${step}, the newest state that can be read`,
    got: `those since step ${from}`,
    hint: "the copy that they follow is lost; keep checkpoints in a folder, and open the newest",
  });
}
