import { errorTable, TroupeError } from "../../../errors/index.ts";
import { RewindRequest } from "../../../job/anomalies/index.ts";
import { passOver, type SamplerState } from "../../../library/data/index.ts";
import { type Failure, firstCause, fromFailure } from "../../../runtime/index.ts";
import type { InitialState } from "../../protocols/index.ts";
import { samplerStateOf } from "../plan/plan-run.ts";
import type { LastGood } from "./last-good.ts";
import type { SupervisedRanks } from "./supervised-ranks.ts";

/** Where a generation of the rank group takes the run up. */
export interface TakeUp {
  readonly initial: InitialState;
  /** Which samples its steps read. */
  readonly sampler: SamplerState;
}

/** Has the rank group live anew after a generation of it has ended, and says where that takes the run up. */
export class Recovery {
  readonly #ranks: SupervisedRanks;
  readonly #lastGood: LastGood;
  readonly #rewinds = new Rewinds();

  constructor(ranks: SupervisedRanks, lastGood: LastGood) {
    this.#ranks = ranks;
    this.#lastGood = lastGood;
  }

  /**
   * @param error - what ended generation number `generation`, which took the run up `at`
   * @throws the error itself where it would only come back; the first cause where the group was given up
   */
  async after(error: unknown, generation: number, at: TakeUp): Promise<TakeUp> {
    if (error instanceof RewindRequest) return await this.#goBack(error, at);
    if (isUnreadable(error)) return await this.#passOver(error, at);
    if (isOutOfRoom(error, generation)) await this.#ranks.end({ actor: "rank-0" }, error).catch(() => {});
    else if (!isLoss(error)) throw error;
    refuseDeliberate(await this.#ranks.generationAfter(generation), generation);
    return { ...at, initial: await this.#lastGood.newest() };
  }

  /** Behind the step that went wrong, and on without the batches since. */
  async #goBack(request: RewindRequest, { sampler }: TakeUp): Promise<TakeUp> {
    const latestStep = this.#rewinds.latestStep(request);
    await this.#ranks.renew();
    const initial = await this.#lastGood.newest(latestStep);
    this.#rewinds.note(request.step, initial.step);
    return { initial, sampler: passOver(sampler, initial.step, request.step + 1) };
  }

  /** To a state that is older than the one that cannot be read. */
  async #passOver(error: TroupeError, { initial, sampler }: TakeUp): Promise<TakeUp> {
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

/** The state that the ranks were to begin with cannot be read. */
function isUnreadable(error: unknown): error is TroupeError {
  return error instanceof TroupeError && UNREADABLE.includes(error.code);
}

const UNREADABLE: readonly string[] = ["CHECKPOINT_DAMAGED", "CHECKPOINT_ELSEWHERE", "MEMORY_COPY_LOST"];

/** A thread is gone, what it leaves undone was aborted, or one was stopped because another is gone. */
function isLoss(error: unknown): boolean {
  return error instanceof TroupeError && LOSSES.includes(error.code);
}

const LOSSES: readonly string[] = ["ACTOR_DOWN", "COLLECTIVE_ABORTED", "STOP_REQUESTED"];

/**
 * Whether shared memory is full after the first generation had room in it. It may become free again, so the group is started again,
 * as often as the run allows.
 */
function isOutOfRoom(error: unknown, generation: number): error is TroupeError {
  return error instanceof TroupeError && error.code === OUT_OF_ROOM && generation > 0;
}

const OUT_OF_ROOM = "SHARED_MEMORY_FULL";

/** An error with a code of ours was thrown on purpose: the same step would throw it again. */
function refuseDeliberate(failure: Failure | undefined, generation: number): void {
  const cause = failure && firstCause(failure);
  if (cause?.code === undefined || ACCIDENTS.includes(cause.code)) return;
  if (cause.code === OUT_OF_ROOM && generation > 0) return;
  if (cause.code in errorTable) throw fromFailure(cause);
}

/**
 * Nobody meant to be too slow, to stand still, or that what processes say to each other is lost on its way. Where a rank ends,
 * another whose connection to it closes may be heard of first.
 */
const ACCIDENTS: readonly string[] = [
  "ACTOR_STALLED",
  "ACTOR_START_TIMEOUT",
  "COLLECTIVE_ABORTED",
  "FRAME_INVALID",
  "HOST_LOST",
  "PEER_SILENT",
  "PROCESS_START_FAILED",
];

/** A run that goes back so often without getting any further will not by going back once more. */
const MAX_IN_A_ROW = 3;

/**
 * Decides how far a run goes back. What goes wrong again before the run has got past the place where it first did was
 * wrong already in the state that it went back to: then it goes back behind that one.
 */
export class Rewinds {
  #last: { readonly from: number; readonly to: number } | undefined;
  #numInARow = 0;

  /**
   * @returns the most updates that the state to go back to may have seen
   * @throws the request's reason where going back does not help
   */
  latestStep({ step, reason }: RewindRequest): number {
    const isAgain = this.#last !== undefined && step <= this.#last.from;
    this.#numInARow = isAgain ? this.#numInARow + 1 : 1;
    if (this.#numInARow > MAX_IN_A_ROW) throw reason;
    return isAgain ? (this.#last as { to: number }).to - 1 : step;
  }

  /** The run went back from before step `from` to before step `to`. */
  note(from: number, to: number): void {
    this.#last = { from: Math.max(from, this.#last?.from ?? 0), to };
  }
}
