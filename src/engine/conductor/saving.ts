import type { CheckpointerProtocol } from "../../actors/index.ts";
import type { JsonObject, TrainerState } from "../../checkpoint/index.ts";
import { TroupeError } from "../../errors.ts";
import { type ErrorReport, reportError, type TroupeEventBody } from "../../events/index.ts";
import type { DeclaredModel } from "../../protocols/index.ts";
import type { ActorRef } from "../../runtime/index.ts";
import { abandoned, planSave, type SavePlan } from "../../state/saving/index.ts";

/** When a run's state is saved, and where to. Plain data. */
export interface SavingRules {
  /** Steps between saves to the disk; Infinity: only at the end. undefined: nothing goes to the disk. */
  readonly everySteps: number | undefined;
  /** Steps between copies that stay in memory; undefined: none stays. */
  readonly inMemoryEverySteps: number | undefined;
  /** What becomes of a save that falls due while one is under way: training waits for that one, or it is left out. */
  readonly whenBusy: "wait" | "skip";
  /** The most that one save may copy. */
  readonly maxStagedBytes: number;
}

/** What saving needs of the run. */
export interface SavingOptions {
  readonly rules: SavingRules;
  readonly checkpointer: ActorRef<CheckpointerProtocol>;
  /** Life of the rank group. */
  readonly life: number;
  /** How long one save may take. */
  readonly deadlineMs: number;
  /** What a checkpoint keeps beside tensors, after `step` updates; asked for once those are made and told. */
  readonly stateAt: (step: number) => TrainerState;
  /** Resolves once `step` steps were made and found in order. @throws where they never will be */
  readonly sound: (step: number) => Promise<void>;
  /** Takes what becomes of a save, also once this life of the group is over: what had come by then may be whole. */
  readonly emit: (event: TroupeEventBody) => void;
}

/** A save under way. */
interface InFlight {
  readonly step: number;
  readonly over: Promise<void>;
}

/**
 * Decides after which steps of one life of the rank group its state is saved, one save at a time: that bounds the memory
 * of copies. A save that fails is told, and training goes on.
 */
export class Saving {
  readonly #options: SavingOptions;
  readonly #plan: SavePlan;
  readonly #modelConfig: JsonObject;
  #inFlight: InFlight | undefined;
  #numSkipped = 0;
  #error: ErrorReport | undefined;
  #isOver = false;

  /**
   * @param models - what each rank has declared, in rank order
   * @throws {TroupeError} `CHECKPOINT_STAGING` where a save would copy more than it may
   */
  constructor(models: readonly DeclaredModel[], options: SavingOptions) {
    this.#options = options;
    this.#plan = planSave(
      models.map(({ saved }) => saved),
      models[0]?.parameters ?? [],
    );
    this.#modelConfig = (models[0]?.modelConfig ?? {}) as JsonObject;
    const { maxStagedBytes } = options.rules;
    if (this.#plan.stagedBytes > maxStagedBytes) throw tooMuch(this.#plan.stagedBytes, maxStagedBytes);
  }

  /** Why the last save failed, if it did. */
  get error(): ErrorReport | undefined {
    return this.#error;
  }

  /**
   * Begins the save of the state after `step` updates, if it is to be saved, once the one before is over.
   * @param isLast - of the run: that one is never left out
   * @returns to whom the shards are to send it; undefined where it is not saved
   */
  async begin(step: number, isLast: boolean): Promise<ActorRef<CheckpointerProtocol> | undefined> {
    const { rules, checkpointer, emit } = this.#options;
    const write = rules.everySteps !== undefined && (isLast || step % rules.everySteps === 0);
    const isDue = write || (rules.inMemoryEverySteps !== undefined && step % rules.inMemoryEverySteps === 0);
    if (!isDue) return undefined;
    const busy = this.#inFlight;
    if (busy !== undefined && rules.whenBusy === "skip" && !isLast) {
      this.#numSkipped += 1;
      const reason = `step ${busy.step} is still being saved`;
      emit({ kind: "checkpoint.skipped", step, reason, numSkipped: this.#numSkipped });
      return undefined;
    }
    const beginMs = performance.now();
    await busy?.over;
    // What waited for a save of a life that has ended meanwhile could never be fed.
    if (this.#isOver) return undefined;
    const waitedMs = busy === undefined ? 0 : performance.now() - beginMs;
    const { stagedBytes } = this.#plan;
    if (write) emit({ kind: "checkpoint.started", step, stagedBytes, waitedMs });
    // Parts that one incarnation has got, no other one has: a save is fed and ordered at one, and fails with it.
    const writer = checkpointer.pinned();
    this.#inFlight = { step, over: this.#save(step, write, writer) };
    return writer;
  }

  /** This life of the group is over: nothing more is begun. What is under way may still become whole. */
  end(): void {
    this.#isOver = true;
  }

  /** Resolves when nothing is being saved. */
  async settle(): Promise<void> {
    await this.#inFlight?.over;
  }

  async #save(step: number, write: boolean, writer: ActorRef<CheckpointerProtocol>): Promise<void> {
    const { rules, life, deadlineMs, stateAt, sound, emit } = this.#options;
    try {
      await sound(step);
    } catch {
      // It was not in order, or this life has ended before that was known: neither kept nor written.
      this.#inFlight = undefined;
      if (write) emit({ kind: "checkpoint.failed", step, error: reportError(abandoned(step)) });
      return;
    }
    const order = {
      ...this.#plan,
      life,
      modelConfig: this.#modelConfig,
      // Of what the step came to, too.
      state: stateAt(step),
      write,
      keep: rules.inMemoryEverySteps !== undefined,
    };
    try {
      const { path, ...saved } = await writer.ask("save", order, { deadlineMs });
      if (write) this.#error = undefined;
      if (path === undefined) emit({ kind: "checkpoint.copied", step, ...saved });
      else emit({ kind: "checkpoint.saved", step, path, ...saved });
    } catch (error) {
      const report = reportError(error);
      if (write) this.#error = report;
      // A copy in memory that a restart overtakes was never told to have begun, and the one before it is there.
      if (write || report.code !== "CHECKPOINT_ABANDONED")
        emit({ kind: "checkpoint.failed", step, error: report });
    } finally {
      this.#inFlight = undefined;
    }
  }
}

function tooMuch(stagedBytes: number, maxStagedBytes: number): TroupeError {
  return new TroupeError(
    "CHECKPOINT_STAGING",
    `[checkpoint] expected a save to copy at most ${maxStagedBytes} bytes: got ${stagedBytes}, the state of this model (raise the bound to that, or give none)`,
    { fields: { stagedBytes, maxStagedBytes } },
  );
}
