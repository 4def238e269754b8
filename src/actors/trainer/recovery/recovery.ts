import { errorTable, TroupeError } from "../../../errors/index.ts";
import { RewindRequest } from "../../../job/anomalies/index.ts";
import { type SamplerState, skipSamples } from "../../../library/data/index.ts";
import { ActorDown, type Failure, firstCause, fromFailure } from "../../../runtime/index.ts";
import type { CallLog, FailedCall, LoadedState } from "../../engine/conductor/index.ts";
import { ENDS } from "../../engine/rank/index.ts";
import type { InitialState } from "../../protocols/index.ts";
import { samplerStateOf } from "../plan/plan-run.ts";
import type { LastGood } from "./last-good.ts";
import type { SupervisedRanks } from "./supervised-ranks.ts";

/** The state from which a generation of the rank group continues the run. */
export interface RestartPoint {
  readonly initial: InitialState;
  /** The position in the data for its next step. */
  readonly sampler: SamplerState;
}

/** Waits for the rank group's next generation after one has ended, and decides from which state it continues. */
export class Recovery {
  readonly #ranks: SupervisedRanks;
  readonly #lastGood: LastGood;
  readonly #rewinds = new Rewinds();

  constructor(ranks: SupervisedRanks, lastGood: LastGood) {
    this.#ranks = ranks;
    this.#lastGood = lastGood;
  }

  /**
   * Decides how the run goes on after the error that ended `generation`, which had started `at`.
   * @throws the error itself where it would be thrown again; the first cause where the group was given up
   */
  async after(error: unknown, generation: number, at: RestartPoint): Promise<RestartPoint> {
    if (error instanceof RewindRequest) return await this.#goBack(error, at);
    // The state to begin with cannot be read.
    if (hasCode(error, UNREADABLE)) return await this.#passOver(error, at);
    // The first generation had room: it may become free.
    if (generation > 0 && hasCode(error, [OUT_OF_ROOM])) await this.#ranks.endFirst(error).catch(() => {});
    // An actor was lost, or work was aborted because one was.
    else if (!hasCode(error, ENDS)) throw error;
    // The ranks live on without an actor that is none of theirs, such as the checkpointer: no generation would follow.
    if (error instanceof ActorDown && !this.#ranks.has(error.down.actor)) {
      await this.#ranks.renew();
      return { ...at, initial: await this.#lastGood.newest() };
    }
    refuseDeliberate(await this.#ranks.generationAfter(generation), generation);
    return { ...at, initial: await this.#lastGood.newest() };
  }

  /** Goes back to the last kept state, without the failed call. @throws the error if no call is to blame; as {@link after} */
  async without({ call, cause }: FailedCall, calls: CallLog, generation: number, at: RestartPoint) {
    const isToBlame = call.kind === "load" ? !hasCode(cause, ENDS) : isOfCode(cause);
    if (!isToBlame) return await this.after(cause, generation, at);
    if (call.kind === "load" && !calls.isOpen(call)) throw cause;
    calls.refuse(call, cause);
    await this.#ranks.renew();
    return { ...at, initial: await this.#lastGood.newest() };
  }

  /** Goes on from a state that a script loads. */
  async load({ initial }: LoadedState, at: RestartPoint): Promise<RestartPoint> {
    await this.#ranks.renew();
    return { ...at, initial };
  }

  /** Goes back to a state before the failing step, and skips the batches since then. */
  async #goBack(request: RewindRequest, { sampler }: RestartPoint): Promise<RestartPoint> {
    const latestStep = this.#rewinds.latestStep(request);
    await this.#ranks.renew();
    const initial = await this.#lastGood.newest(latestStep);
    this.#rewinds.note(request.step, initial.step);
    return { initial, sampler: skipSamples(sampler, initial.step, request.step + 1) };
  }

  /** Goes back to an older state than the one that cannot be read. */
  async #passOver(error: TroupeError, { initial, sampler }: RestartPoint): Promise<RestartPoint> {
    const { start } = this.#lastGood;
    await this.#lastGood.reject(initial, error);
    const older = this.#lastGood.start;
    await this.#ranks.renew();
    return {
      initial: await this.#lastGood.newest(),
      sampler: older === start ? sampler : samplerStateOf(older, sampler),
    };
  }
}

function hasCode(error: unknown, codes: readonly string[]): error is TroupeError {
  return error instanceof TroupeError && codes.includes(error.code);
}

const UNREADABLE: readonly string[] = ["CHECKPOINT_DAMAGED", "CHECKPOINT_ELSEWHERE", "MEMORY_COPY_LOST"];

/** Whether a program, the data or an option of a call has thrown the error: not a lost, slow or stuck actor. */
export function isOfCode(error: unknown): boolean {
  return !hasCode(error, [...ENDS, ...UNREADABLE, ...ACCIDENTS, OUT_OF_ROOM, "ASK_TIMEOUT"]);
}

const OUT_OF_ROOM = "SHARED_MEMORY_FULL";

/** Throws an error with a code of ours again: it was thrown on purpose, and the same step would repeat it. */
function refuseDeliberate(failure: Failure | undefined, generation: number): void {
  const cause = failure && firstCause(failure);
  if (cause?.code === undefined || ACCIDENTS.includes(cause.code)) return;
  if (cause.code === OUT_OF_ROOM && generation > 0) return;
  if (cause.code in errorTable) throw fromFailure(cause);
}

/** Errors that no code throws on purpose: a slow or stuck actor, a lost message, a connection that closes before its end. */
const ACCIDENTS: readonly string[] = [
  "ACTOR_STALLED",
  "ACTOR_START_TIMEOUT",
  "COLLECTIVE_ABORTED",
  "FRAME_INVALID",
  "HOST_LOST",
  "PEER_SILENT",
  "PROCESS_START_FAILED",
];

/** A run that goes back this many times without progress fails. */
const MAX_IN_A_ROW = 3;

/** Decides how far a run goes back: further if the same step fails again before it is passed, as the state was bad already. */
export class Rewinds {
  #last: { readonly from: number; readonly to: number } | undefined;
  #numInARow = 0;

  /** @returns the most updates that the state to go back to may have seen @throws the reason if going back does not help */
  latestStep({ step, reason }: RewindRequest): number {
    const isAgain = this.#last !== undefined && step <= this.#last.from;
    this.#numInARow = isAgain ? this.#numInARow + 1 : 1;
    if (this.#numInARow > MAX_IN_A_ROW) throw reason;
    return isAgain ? (this.#last as { to: number }).to - 1 : step;
  }

  /** Notes that the run went back from before step `from` to before step `to`. */
  note(from: number, to: number): void {
    this.#last = { from: Math.max(from, this.#last?.from ?? 0), to };
  }
}
