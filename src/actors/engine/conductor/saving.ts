import { TroupeError } from "../../../errors/index.ts";
import { type ErrorReport, reportError, type TroupeEventBody } from "../../../job/events/index.ts";
import {
  type JsonObject,
  type ModelTexts,
  type StateName,
  type TrainerState,
  textsAfter,
} from "../../../library/checkpoint/index.ts";
import type { ActorRef } from "../../../runtime/index.ts";
import type {
  CheckpointerProtocol,
  DeclaredModel,
  PartPlan,
  RankGroup,
  SavePlan,
  SavingRules,
  SliceWriter,
  SnapshotProtocol,
  SpreadSave,
  StateEntry,
} from "../../protocols/index.ts";
import { abandoned, planSave, planShares } from "../../state/saving/index.ts";
import type { SaveOutcome } from "./run-control.ts";
import type { RunListener } from "./run-listener.ts";

/** The parts of a run that saving needs. */
export interface SavingOptions {
  readonly rules: SavingRules;
  readonly checkpointer: ActorRef<CheckpointerProtocol>;
  /** By {@link sliceWriters}; the checkpointer writes everything without any. */
  readonly writers: readonly SliceWriter[];
  readonly generation: number;
  /** The longest time of one save. */
  readonly deadlineMs: number;
  /** The trainer's part of a checkpoint after `step` updates; called once those are made and reported. */
  readonly stateAt: (step: number) => TrainerState;
  /** Resolves once `step` steps are made and reviewed, or it is known that fewer are made. @throws if they never will be */
  readonly reviewed: (step: number) => Promise<void>;
  /** Receives the events of saves, even after this generation of the group: its parts may be complete by then. */
  readonly emit: (event: TroupeEventBody) => void;
  /** Receives the same, before. */
  readonly listener: Pick<RunListener, "saveBegun" | "saved" | "saveFailed">;
}

/** Reasons to save a step's state besides the rules. */
export interface SaveReasons {
  /** The run's last state: always saved. */
  readonly isLast?: boolean;
  /** A request: it goes to the disk. */
  readonly isAsked?: boolean;
  /** A rank's code waits for the save to begin before its next step. So it is never skipped, nor put off to a later state. */
  readonly isPresent?: boolean;
  /** Its copy in memory is read: it is copied where copies stay in memory. */
  readonly isRead?: boolean;
  readonly named?: StateName | undefined;
}

/** Destination and name of a save. Both may still be added until the save is ordered. */
interface SaveAim {
  write: boolean;
  named: StateName | undefined;
  isOrdered: boolean;
}

interface SaveUnderWay extends BegunSave {
  readonly aim: SaveAim;
}

/** Number of last steps whose saves are remembered: ranks are no further apart. */
const KEPT_IN_MIND = 8;

/** A save that has begun. */
export interface BegunSave {
  readonly step: number;
  /** The receiver of each rank's shard state, by rank; undefined if they were sent before. */
  readonly receivers: readonly ActorRef<SnapshotProtocol>[] | undefined;
  readonly outcome: Promise<SaveOutcome>;
}

/**
 * Decides after which steps of one generation of the rank group its state is saved, one planned save at a time: that bounds the
 * memory of copies. A save that a loop requests may run beside it. A save that fails is reported, and training goes on.
 */
export class Saving {
  readonly #options: SavingOptions;
  readonly #parameters: readonly string[];
  #parts: readonly (readonly PartPlan[])[];
  /** The content of saves, and the step from which it applies, in order. */
  #plans: readonly { readonly step: number; readonly plan: SavePlan }[];
  readonly #texts: ModelTexts;
  readonly #inFlight = new Set<SaveUnderWay>();
  /** Saves to the disk, done or under way, by step. */
  readonly #written = new Map<number, SaveUnderWay>();
  #numSkipped = 0;
  #error: ErrorReport | undefined;
  #isOver = false;
  /** The step after which the run ends, if earlier than planned. */
  #lastStep = Number.POSITIVE_INFINITY;

  /** @param models - in rank order @throws {TroupeError} `CHECKPOINT_STAGING` if a save would copy more than allowed */
  constructor(models: readonly DeclaredModel[], options: SavingOptions) {
    this.#options = options;
    this.#parts = models.map(({ saved }) => saved);
    this.#parameters = models[0]?.parameters ?? [];
    this.#plans = [{ step: 0, plan: this.#newPlan() }];
    const { begunFrom, adapter } = options.rules;
    this.#texts = { ...textsAfter(begunFrom, (models[0]?.modelConfig ?? {}) as JsonObject), adapter };
  }

  /**
   * Adds to the state after `step` updates and later, before that step is reviewed.
   * @param saved - the parts that each rank's shard sends from then on, in rank order; undefined if unchanged
   * @throws {TroupeError} `CHECKPOINT_STAGING` if a save would copy more than allowed
   */
  grow(step: number, saved: readonly (readonly PartPlan[] | undefined)[]): void {
    if (saved.every((parts) => parts === undefined)) return;
    this.#parts = this.#parts.map((parts, rank) => saved[rank] ?? parts);
    this.#plans = [...this.#plans, { step, plan: this.#newPlan() }];
  }

  /** Ends the run after `step` steps: saves of later states, which will not be reached, are dropped. */
  endAt(step: number): void {
    this.#lastStep = Math.min(this.#lastStep, step);
  }

  /** The tensors of the state after `step` updates. */
  entriesAt(step: number): readonly StateEntry[] {
    return this.#planAt(step).entries;
  }

  get error(): ErrorReport | undefined {
    return this.#error;
  }

  /**
   * Begins the save of the state after `step` updates, if it is to be saved, once the one before is over.
   * @returns the save, perhaps one that was begun before; undefined if the state is not saved
   */
  async begin(
    step: number,
    { isLast = false, isAsked = false, isPresent = false, isRead = false, named }: SaveReasons = {},
  ): Promise<BegunSave | undefined> {
    const { rules, checkpointer, emit } = this.#options;
    if (step > this.#lastStep) return undefined;
    const raises = isPresent && !isRead;
    const known = this.#known(step, named, isRead) ?? (raises ? this.#raised(step, named) : undefined);
    if (known !== undefined) return known;
    const isWritten = isRead && this.#written.has(step);
    const write =
      rules.everySteps !== undefined && !isWritten && (isLast || isAsked || step % rules.everySteps === 0);
    const { inMemoryEverySteps } = rules;
    const isDue = write || (inMemoryEverySteps !== undefined && (isRead || step % inMemoryEverySteps === 0));
    if (!isDue) return undefined;
    const busy = [...this.#inFlight].filter((save) => !isPresent || save.step <= step);
    if (busy[0] !== undefined && rules.whenBusy === "skip" && !isLast && !isPresent) {
      // A requested save is made with a later step.
      if (isAsked) return undefined;
      this.#numSkipped += 1;
      const reason = `step ${busy[0].step} is still being saved`;
      emit({ kind: "checkpoint.skipped", step, reason, numSkipped: this.#numSkipped });
      return undefined;
    }
    const beginMs = performance.now();
    await Promise.all(busy.map(({ outcome }) => outcome));
    // A save of a generation that has ended meanwhile would never get its parts.
    if (this.#isOver || step > this.#lastStep) return undefined;
    const begunMeanwhile = this.#known(step, named, isRead);
    if (begunMeanwhile !== undefined) return begunMeanwhile;
    const waitedMs = busy.length === 0 ? 0 : performance.now() - beginMs;
    if (write) this.#report(step, waitedMs);
    // Parts stay with one incarnation: a save gets its parts and its order there, and fails with it.
    const writer = checkpointer.pinned();
    const { writers } = this.#options;
    const receivers = this.#parts.map((_, rank) => writers[rank]?.ref ?? writer);
    const aim = { write, named, isOrdered: false };
    const save = { step, receivers, aim, outcome: this.#save(step, aim, writer) };
    this.#track(save);
    if (write) this.#remember(save);
    return save;
  }

  /** Ends the saves of this generation: none begins, but those under way may still complete. */
  end(): void {
    this.#isOver = true;
  }

  /** Resolves when nothing is being saved. */
  async settle(): Promise<void> {
    await Promise.all([...this.#inFlight].map(({ outcome }) => outcome));
  }

  /**
   * Finds a save of that state to the disk, done or under way, and gives it the name: one with its order, others after it.
   * @param isRead - then one under way alone: the copy in memory of one that is done is lost
   */
  #known(step: number, named: StateName | undefined, isRead: boolean): BegunSave | undefined {
    const written = this.#written.get(step);
    if (written === undefined || (isRead && !this.#inFlight.has(written))) return undefined;
    const known = { ...written, receivers: undefined };
    const { aim } = known;
    if (named === undefined) return known;
    if (!aim.isOrdered && (aim.named === undefined || aim.named.as === named.as)) {
      aim.named = named;
      return known;
    }
    const renamed = { ...known, outcome: this.#name(known, named) };
    this.#track(renamed);
    return renamed;
  }

  /** Finds an unordered copy of that state for memory, and sends it to the disk too. */
  #raised(step: number, named: StateName | undefined): BegunSave | undefined {
    const copy = [...this.#inFlight].find((save) => save.step === step && !save.aim.isOrdered);
    if (copy === undefined) return undefined;
    copy.aim.write = true;
    copy.aim.named = named;
    this.#report(step, 0);
    this.#remember(copy);
    return { ...copy, receivers: undefined };
  }

  /** A save that fails is forgotten, so that the state may be saved again. */
  #remember(save: SaveUnderWay): void {
    const { step, outcome } = save;
    this.#written.set(step, save);
    void outcome.then(({ kind }) => kind !== "saved" && this.#written.delete(step));
    for (const oldest of this.#written.keys())
      if (this.#written.size > KEPT_IN_MIND) this.#written.delete(oldest);
  }

  #report(step: number, waitedMs: number): void {
    const { stagedBytes } = this.#planAt(step);
    this.#options.listener.saveBegun(step);
    this.#options.emit({ kind: "checkpoint.started", step, stagedBytes, waitedMs });
  }

  #track(save: SaveUnderWay): void {
    this.#inFlight.add(save);
    void save.outcome.finally(() => this.#inFlight.delete(save));
  }

  async #name({ step, outcome }: BegunSave, named: StateName): Promise<SaveOutcome> {
    const { checkpointer, deadlineMs, emit } = this.#options;
    const saved = await outcome;
    if (saved.kind !== "saved") return saved;
    try {
      await checkpointer.ask("name", { step, named }, { deadlineMs });
      return saved;
    } catch (error) {
      emit({ kind: "checkpoint.failed", step, error: reportError(error) });
      return { kind: "failed", error };
    }
  }

  #leaveOut(step: number, write: boolean): SaveOutcome {
    this.#options.listener.saveFailed(step);
    if (write) {
      this.#numSkipped += 1;
      const reason = `the run ends after step ${this.#lastStep}`;
      this.#options.emit({ kind: "checkpoint.skipped", step, reason, numSkipped: this.#numSkipped });
    }
    return { kind: "abandoned" };
  }

  #newPlan(): SavePlan {
    const plan = planSave(this.#parts, this.#parameters);
    const { maxStagedBytes } = this.#options.rules;
    const { stagedBytes } = plan;
    if (stagedBytes <= maxStagedBytes) return plan;
    throw new TroupeError("CHECKPOINT_STAGING", {
      where: "checkpoint",
      expected: `a save to copy at most ${maxStagedBytes} bytes`,
      got: `${stagedBytes}, the state of this model`,
      hint: "raise the bound to that, or give none",
      fields: { stagedBytes, maxStagedBytes },
    });
  }

  #planAt(step: number): SavePlan {
    return (this.#plans.findLast((each) => each.step <= step) ?? this.#plans[0])?.plan as SavePlan;
  }

  #spreadAt(plan: SavePlan): SpreadSave | undefined {
    const { writers, deadlineMs } = this.#options;
    if (writers.length === 0) return undefined;
    return { writers, shares: planShares(this.#parts, plan), deadlineMs };
  }

  async #save(step: number, aim: SaveAim, writer: ActorRef<CheckpointerProtocol>): Promise<SaveOutcome> {
    const { rules, generation, deadlineMs, stateAt, reviewed, emit, listener } = this.#options;
    try {
      await reviewed(step);
      if (step > this.#lastStep) return this.#leaveOut(step, aim.write);
    } catch {
      // The review failed, or this generation has ended before it: neither kept nor written.
      listener.saveFailed(step);
      if (aim.write) emit({ kind: "checkpoint.failed", step, error: reportError(abandoned(step)) });
      return { kind: "abandoned" };
    }
    const plan = this.#planAt(step);
    aim.isOrdered = true;
    const { write, named } = aim;
    const order = {
      ...plan,
      spread: this.#spreadAt(plan),
      generation,
      texts: this.#texts,
      // Includes the result of the step.
      state: stateAt(step),
      write,
      ...(named && { named }),
      keep: rules.inMemoryEverySteps !== undefined,
    };
    try {
      const { path, ...saved } = await writer.ask("save", order, { deadlineMs });
      if (write) this.#error = undefined;
      listener.saved({ step, path });
      if (path === undefined) emit({ kind: "checkpoint.copied", step, ...saved });
      else emit({ kind: "checkpoint.saved", step, path, ...saved, ...named });
      return { kind: "saved", state: { step, path: path ?? "", sizeBytes: saved.sizeBytes } };
    } catch (error) {
      const report = reportError(error);
      if (write) this.#error = report;
      listener.saveFailed(step);
      const isAbandoned = report.code === "CHECKPOINT_ABANDONED";
      // A copy in memory that a restart overtakes was never reported as begun, and the one before it is there.
      if (write || !isAbandoned) emit({ kind: "checkpoint.failed", step, error: report });
      return isAbandoned ? { kind: "abandoned" } : { kind: "failed", error };
    }
  }
}

/** The writers of the ranks' shares, by rank, if all find the checkpointer's mark in the run's folder or may write elsewhere. */
export async function sliceWriters(
  { writers }: Pick<RankGroup, "writers">,
  { checkpointer, generation, rules, deadlineMs }: Omit<SavingOptions, "writers">,
): Promise<readonly SliceWriter[]> {
  if (writers.length === 0) return [];
  for (const writer of writers) writer.tell("begin", { generation });
  const { mark } = await checkpointer.ask("mark", {}, { deadlineMs });
  if (mark === undefined) return [];
  const seen = await Promise.all(writers.map((writer) => writer.ask("sees", { mark }, { deadlineMs })));
  if (!rules.mayBeApart && !seen.every(({ sees }) => sees)) return [];
  return writers.map((ref, rank) => ({ ref, isApart: seen[rank]?.sees !== true }));
}
