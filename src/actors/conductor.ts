import type { GroupPlan } from "../compute/collectives/index.ts";
import { StepCounter } from "../compute/parallel/index.ts";
import type { Tensor } from "../compute/tensor/index.ts";
import { TroupeError } from "../errors/index.ts";
import type { EndReason, TroupeEventBody } from "../job/events/index.ts";
import type { TrainerState } from "../library/checkpoint/index.ts";
import type { ActorRef } from "../runtime/index.ts";
import {
  AlikeSteps,
  AnomalyReview,
  type BestStates,
  type CallLog,
  type CallOrders,
  type CallReader,
  checkAlike,
  Evaluator,
  Pipeline,
  RequestedSaves,
  type RunControl,
  type RunListener,
  Saving,
  ScriptedCalls,
  type StepDone,
  StepOrders,
  StepReport,
  sliceWriters,
} from "./engine/conductor/index.ts";
import { Broadcast } from "./engine/relay/index.ts";
import type { InspectionRequest, Inspections } from "./inspect/index.ts";
import type {
  CheckpointerProtocol,
  DeclaredModel,
  HeldWeights,
  InitialState,
  Joined,
  LoopLeft,
  RankGroup,
  RankPlan,
  RankStepped,
  RunResult,
  RunSchedule,
  SnapshotProtocol,
} from "./protocols/index.ts";

/** The parts and settings that a conductor works with. */
export interface ConductorOptions {
  readonly schedule: RunSchedule;
  readonly plan: RankPlan;
  readonly checkpointer: ActorRef<CheckpointerProtocol> | undefined;
  /** A script's calls, if they make the steps. */
  readonly calls: CallLog | undefined;
  /** Compares the run's states, if its schedule says how. */
  readonly best: BestStates | undefined;
  readonly inspections: Inspections;
  readonly control: RunControl;
  /** The JSON part of a checkpoint after `step` updates. */
  readonly stateAt: (step: number) => TrainerState;
  readonly emit: (event: TroupeEventBody) => void;
  readonly listener: RunListener;
  /** Called before the first step, once nothing can refuse the run any more. @param joinedAtMs - when all had declared the model */
  readonly onPrepared: (joinedAtMs: number) => Promise<void>;
  /** Finds the state in a folder that a script loads. @throws {TroupeError} if it is not the model's */
  readonly load: (folder: string) => Promise<InitialState>;
  /** Has the checkpointer keep weights in memory, and later incarnations of it too; ownership passes. */
  readonly hold: (weights: HeldWeights<Tensor>) => Promise<InitialState>;
  /** Whether an error is that of a program, the data or an option of a call: not of a lost actor, or a slow one. */
  readonly isOfCode: (error: unknown) => boolean;
  /** Memory of all processes of the run, in bytes. */
  readonly residentBytes: () => number;
  /** Runs `body` as the start of a trace, if one is due. */
  readonly begin: <T>(kind: string, body: () => T) => T;
}

/** Steps granted to the ranks before the first of them is done: hides the conductor's latency. */
const STEPS_AHEAD = 3;

/**
 * Owns the step clock of a run: grants steps to the ranks, a few ahead, and reports their results in order. Work between two
 * steps (evaluation, snapshots) is requested in order, so that every rank does the same at the same place. One conductor leads
 * one generation of the rank group.
 */
export class Conductor {
  readonly #options: ConductorOptions;
  readonly #group: RankGroup;
  readonly #all: Broadcast;
  readonly #pipeline = new Pipeline(STEPS_AHEAD);
  readonly #deadlineMs: number;
  /** The model that each rank has declared, in rank order. */
  #models: readonly DeclaredModel[] = [];
  /** Rejects once this generation is over. */
  readonly #ended = Promise.withResolvers<never>();
  readonly #review: AnomalyReview;
  readonly #report: StepReport;
  /** The number of steps that were made and reviewed without an anomaly. */
  readonly #reviewedSteps = new StepCounter();
  readonly #alike: AlikeSteps;
  readonly #orders: StepOrders;
  readonly #evaluator: Evaluator;
  readonly #saves: RequestedSaves;
  #saving: Saving | undefined;
  /** Includes steps that are not made yet. */
  #granted = 0;
  /** Whether a review has ended this generation, with all its actors well. */
  #isReviewed = false;
  #lossNats = Number.NaN;

  /** @param group - refs to this generation alone */
  constructor(group: RankGroup, options: ConductorOptions) {
    this.#group = group;
    this.#options = options;
    this.#alike = new AlikeSteps(options.plan.layout.mesh);
    this.#review = new AnomalyReview(options.plan, options.emit);
    this.#report = new StepReport({ ...options, ...options.schedule });
    // Work granted ahead waits for all granted before it.
    const deadlineMs = options.plan.execution.deadlineMs * STEPS_AHEAD;
    this.#deadlineMs = deadlineMs;
    this.#all = new Broadcast(group, options.plan.groups.hosts ?? [], deadlineMs);
    this.#orders = new StepOrders(options);
    const parts = { group, all: this.#all, pipeline: this.#pipeline, report: this.#report };
    this.#evaluator = new Evaluator({ ...options, ...parts, deadlineMs, lastStep: () => this.#lastStep });
    this.#saves = new RequestedSaves({ ...options, all: this.#all, saving: () => this.#saving });
    this.#reviewedSteps.reach(options.plan.initial.step);
    // Rejection is delivered to waiters.
    this.#ended.promise.catch(() => {});
  }

  /**
   * Prepares the group and leads it from the plan's initial state to the last step.
   * @throws the error of a rank or shard, or `ACTOR_DOWN` when one is gone; errors of {@link AnomalyReview} once all earlier
   * steps in order are saved, so that a restart's place does not depend on how fast that is. After that only the end of a save
   * under way is reported
   */
  async lead(): Promise<RunResult> {
    try {
      const joinedAtMs = await this.#prepare();
      this.#saving = await this.#newSaving();
      const { calls } = this.#options;
      // Calls that come once the model is there follow its state.
      const reader = calls?.read(this.#options.plan.initial.step);
      await this.#options.onPrepared(joinedAtMs);
      // Programs of a live model save nothing: its script does.
      for (const rank of calls === undefined ? this.#group.ranks : [])
        this.#saves.listen(rank).catch((error: unknown) => this.#pipeline.fail(error));
      const steps =
        calls === undefined || reader === undefined
          ? await this.#makeSteps()
          : await this.#makeCalls(calls, reader);
      const { schedule, control } = this.#options;
      await this.#saves.asked(steps);
      const endedBy = steps < schedule.steps && steps === control.end?.step ? control.end.why : undefined;
      const isComplete = steps >= schedule.steps || endedBy !== undefined;
      const sample = schedule.sample && isComplete ? await this.#sample(steps) : undefined;
      await this.#all.ask("ranks", "end", {});
      await this.#saves.asked(steps);
      await this.#saving?.settle();
      return {
        steps,
        lossNats: this.#lossNats,
        evaluationLossNats: this.#evaluator.lossNats,
        sample,
        ...(endedBy && { endedBy }),
        saveError: this.#saving?.error,
      };
    } catch (error) {
      this.end();
      if (this.#isReviewed) await this.#saving?.settle();
      throw error;
    }
  }

  /** Ends this generation, whatever `lead` still waits for: nothing more is saved of it. */
  end(): void {
    const reason = new Error("the run has ended");
    this.#ended.reject(reason);
    this.#pipeline.fail(reason);
    this.#reviewedSteps.abort(reason);
    this.#saving?.end();
  }

  /** @returns when all had declared the model */
  async #prepare(): Promise<number> {
    const { plan, checkpointer } = this.#options;
    const { feeder, ranks, shards } = this.#group;
    const { generation } = plan;
    checkpointer?.tell("begin", { generation });
    feeder.tell("begin", { generation, ranks });
    const joined = await this.#all.ask("shards", "join", { peers: shards, ranks });
    const groups = rendezvousOf(joined, plan.groups);
    const known = { ...plan, groups };
    this.#models = await this.#all.ask("ranks", "declare", { plan: known, peers: ranks });
    checkAlike(this.#models);
    const joinedAtMs = performance.now();
    await this.#all.ask("ranks", "prepare", {});
    await this.#all.tell("ranks", "train", { isLive: this.#options.calls !== undefined });
    // `train` goes by the hosts' relays; `wanted`, which goes straight to the rank, would overtake it.
    await this.#all.ask("ranks", "ready", {});
    return joinedAtMs;
  }

  /** @returns the number of the last step made: fewer than planned if the run is asked to end */
  async #makeSteps(): Promise<number> {
    const { schedule, plan, control } = this.#options;
    this.#report.restartClock();
    this.#granted = plan.initial.step;
    let evaluatedAt = plan.initial.step;
    await this.#catchUp(evaluatedAt);
    while (this.#granted < this.#lastStep) {
      const step = this.#granted;
      if (control.isPaused) await this.#pause(step);
      if (control.isStopping) break;
      const isLast = step + 1 === this.#lastStep;
      const save = await this.#pipeline.unlessFailed(this.#saves.begin(step + 1, isLast));
      if (step >= this.#lastStep) break;
      this.#granted = step + 1;
      await this.#pipeline.add(this.#step(step, save?.receivers), (done) => {
        if (done !== undefined) this.#reportStep(step + 1, done);
      });
      if (!isLast && (step + 1) % schedule.evaluateEverySteps !== 0) continue;
      evaluatedAt = step + 1;
      await this.#evaluator.evaluate(step + 1);
      await this.#keepBest(step + 1);
    }
    await this.#pipeline.drain();
    const steps = Math.min(this.#granted, this.#lastStep);
    if (steps < schedule.steps && steps === control.end?.step) await this.#endEarly(steps, evaluatedAt);
    return steps;
  }

  /** Makes a script's calls in their order until the model is closed. @returns the number of steps made */
  async #makeCalls(calls: CallLog, reader: CallReader): Promise<number> {
    const { plan, control } = this.#options;
    const scripted = new ScriptedCalls(this.#ordersOf(calls), reader);
    control.listen(() => calls.wake());
    this.#report.restartClock();
    this.#granted = plan.initial.step;
    do {
      while (!control.isStopping) {
        if (scripted.isHalted) await scripted.goOn();
        if (control.isPaused) await this.#pause(this.#granted);
        const { changed } = calls;
        const call = reader.take();
        if (call !== undefined) await scripted.make(call);
        else if (calls.isClosed) break;
        else {
          scripted.dropMade();
          if (control.openSaves.length > 0) await this.#pipeline.drain();
          if (scripted.isHalted) continue;
          await this.#saves.asked(this.#granted);
          await this.#pipeline.unlessFailed(changed);
          this.#report.restartClock();
        }
      }
      await this.#pipeline.drain();
    } while (await scripted.goOn());
    await this.#saves.now(this.#granted, { isLast: true });
    return this.#granted;
  }

  /** The parts of this conductor that a script's calls use. */
  #ordersOf(calls: CallLog): CallOrders {
    const conductor = this;
    return {
      calls,
      plan: this.#options.plan,
      group: this.#group,
      all: this.#all,
      pipeline: this.#pipeline,
      checkpointer: this.#options.checkpointer,
      deadlineMs: this.#deadlineMs,
      get step() {
        return conductor.#granted;
      },
      orderOf: (step) => this.#orders.next(step),
      entriesAt: (step) => this.#saving?.entriesAt(step) ?? [],
      saveNow: (step, reasons) => this.#saves.now(step, reasons),
      load: (folder) => this.#options.load(folder),
      isOfCode: (error) => this.#options.isOfCode(error),
      rewind: (step, requests) => {
        this.#granted = step;
        this.#orders.rewind(requests);
      },
      evaluate: (step, onLoss) => this.#evaluator.evaluate(step, onLoss),
      take: async (weights) => {
        const step = this.#granted;
        const initial = await this.#options.hold({ ...weights, step: step + 1 });
        await this.#all.ask("shards", "take", { step, initial });
        this.#granted = step + 1;
        this.#reviewedSteps.reach(step + 1);
        this.#options.listener.saved({ step: step + 1, path: undefined });
      },
      update: async (requests, ask, onUpdated) => {
        const step = this.#granted;
        const save = await this.#pipeline.unlessFailed(this.#saves.begin(step + 1, false));
        this.#granted = step + 1;
        const own = save?.receivers?.map((snapshotTo) => ({ snapshotTo }));
        await this.#pipeline.add(
          this.#makeCalled(step, requests, () => ask(own)),
          (done) => {
            if (done === undefined) return;
            this.#reportStep(step + 1, done);
            onUpdated(done, this.#lossNats);
          },
        );
      },
    };
  }

  /** The last step of the run, as far as is known. */
  get #lastStep(): number {
    const { schedule, control } = this.#options;
    return Math.min(schedule.steps, control.end?.step ?? Number.POSITIVE_INFINITY);
  }

  /** Makes the evaluation of the state that the run resumes from, if it was cut off: later decisions depend on it. */
  async #catchUp(step: number): Promise<void> {
    const { best, schedule, control } = this.#options;
    const isDue = step > 0 && step % schedule.evaluateEverySteps === 0;
    if (best === undefined || !isDue || best.has(step) || control.isStopping) return;
    await this.#evaluator.evaluate(step);
    await this.#keepBest(step);
  }

  /** Awaits the evaluation after `step` steps, beyond which nothing is granted, and applies the rule for the best. */
  async #keepBest(step: number): Promise<void> {
    const { best, schedule } = this.#options;
    if (best === undefined || schedule.best === undefined) return;
    await this.#pipeline.drain();
    if (!best.has(step)) return;
    const { keep = true, patience = Number.POSITIVE_INFINITY } = schedule.best;
    const { isBest, numSinceBest } = best.at(step);
    const named = { as: "best", metric: best.valueAt(step) };
    if (isBest && keep && schedule.saving.everySteps !== undefined)
      await this.#saves.now(step, { isAsked: true, isPresent: true, named });
    if (numSinceBest >= patience && step < this.#lastStep) this.#endAt(step, "no-improvement");
  }

  /** Evaluates and saves the last state of a run whose last step was decided after that step had been granted. */
  async #endEarly(step: number, evaluatedAt: number): Promise<void> {
    const { evaluateEverySteps } = this.#options.schedule;
    if (evaluatedAt !== step && step % evaluateEverySteps !== 0) {
      await this.#evaluator.evaluate(step);
      await this.#pipeline.drain();
      await this.#keepBest(step);
    }
    await this.#saves.now(step, { isLast: true });
  }

  /** Grants nothing before `step` while the run is paused; the present state is saved on request. */
  async #pause(step: number): Promise<void> {
    const { control } = this.#options;
    await this.#pipeline.drain();
    while (control.isPaused) {
      const changed = control.changed();
      control.held(step);
      await this.#saves.asked(step);
      await Promise.race([changed, this.#ended.promise]);
    }
    this.#report.restartClock();
  }

  async #newSaving(): Promise<Saving | undefined> {
    const { checkpointer, plan, schedule, stateAt, emit, listener } = this.#options;
    if (checkpointer === undefined) return undefined;
    const options = {
      ...{ rules: schedule.saving, checkpointer, generation: plan.generation, deadlineMs: this.#deadlineMs },
      ...{ stateAt, emit, listener, reviewed: (step: number) => this.#reviewedSteps.until(step) },
    };
    return new Saving(this.#models, { ...options, writers: await sliceWriters(this.#group, options) });
  }

  #step(
    step: number,
    receivers: readonly ActorRef<SnapshotProtocol>[] | undefined,
  ): Promise<StepDone | undefined> {
    const { requests, message } = this.#orders.next(step);
    const own = receivers?.map((snapshotTo) => ({ snapshotTo }));
    return this.#options.begin("step", () =>
      this.#make(step, requests, this.#all.ask("ranks", "step", message, own)),
    );
  }

  /** @param asked - the ranks' answers to the order of the step. @returns undefined where their loops have returned before it */
  async #make(
    step: number,
    requests: readonly InspectionRequest[],
    asked: Promise<readonly (RankStepped | LoopLeft)[]>,
  ): Promise<StepDone | undefined> {
    const [ranks, updated] = await Promise.all([
      asked.then((answers) => {
        const made = stepsMade(answers);
        if (made === undefined) return this.#noteLeft(answers);
        return this.#noteStops(step + 1, this.#noteTraining(step + 1, made));
      }),
      this.#all.ask("shards", "finish", { step }),
    ]);
    if (ranks === undefined) return undefined;
    return { ranks, shards: updated.flatMap((shard) => shard ?? []), requests, atMs: performance.now() };
  }

  /** Does the same for a script's step. @returns undefined if the ranks make nothing of it */
  async #makeCalled(
    step: number,
    requests: readonly InspectionRequest[],
    ask: () => Promise<readonly RankStepped[] | undefined>,
  ): Promise<StepDone | undefined> {
    const made = await this.#options.begin("step", ask);
    // The shards are asked only here: they wait for no update that the ranks do not make.
    return made && this.#make(step, requests, Promise.resolve(made));
  }

  /** Call it in the order of the steps: ranks answer one after the other. */
  #noteTraining(step: number, ranks: readonly RankStepped[]): readonly RankStepped[] {
    this.#alike.review(step, ranks);
    this.#saving?.grow(
      step,
      ranks.map(({ saved }) => saved),
    );
    return ranks;
  }

  /** Sets the last step if a rank's code has asked for the run to end. */
  #noteStops(step: number, ranks: readonly RankStepped[]): readonly RankStepped[] {
    if (ranks.some(({ wantsStop }) => wantsStop)) {
      // A rank that has not asked may have begun a granted step: then all ranks make the granted steps.
      const last = ranks.every(({ wantsStop }) => wantsStop) ? step : this.#granted;
      this.#endAt(last, "loop-stopped");
      void this.#all.tell("ranks", "verdict", { step: last });
    }
    return ranks;
  }

  /** Ends the run where the loops returned. @throws {TroupeError} `LOOP_ORDER` if they did not all return after the same step */
  #noteLeft(answers: readonly (RankStepped | LoopLeft)[]): undefined {
    const steps = answers.map((answer) => ("left" in answer ? answer.left : undefined));
    const [first] = steps;
    if (first === undefined || steps.some((each) => each !== first)) throw leftApart(steps);
    this.#endAt(first, "loop-returned");
  }

  #endAt(step: number, why: EndReason): void {
    this.#options.control.endAt(step, why);
    this.#saving?.endAt(step);
    this.#reviewedSteps.endAt(step);
  }

  #reportStep(step: number, done: StepDone): void {
    try {
      this.#review.review(step, done.ranks, done.shards);
    } catch (error) {
      this.#isReviewed = true;
      throw error;
    }
    this.#reviewedSteps.reach(step);
    this.#options.control.notices.review(step, done.ranks, this.#options.emit);
    this.#lossNats = this.#report.emit(step, done, this.#models[0]?.parameters ?? []);
  }

  async #sample(step: number): Promise<string> {
    const answers = await this.#all.ask("ranks", "sample", { step });
    const text = answers[0]?.text ?? "";
    this.#options.emit({ kind: "text.generated", step, text });
    return text;
  }
}

/** The groups of a plan, with the stores of their rendezvous; without stores if its ranks live on one host. */
function rendezvousOf(joined: readonly Joined[], groups: GroupPlan): GroupPlan {
  const kept = joined.flatMap(({ store }, rank) =>
    store === undefined ? [] : [[groups.hosts?.[rank], store]],
  );
  return kept.length === 0 ? groups : { ...groups, stores: Object.fromEntries(kept) };
}

/** @returns undefined where a rank's loop has returned before the step */
function stepsMade(answers: readonly (RankStepped | LoopLeft)[]): readonly RankStepped[] | undefined {
  const made = answers.flatMap((answer) => ("left" in answer ? [] : [answer]));
  return made.length === answers.length ? made : undefined;
}

/** @param steps - after which each rank's loop has returned; undefined if it goes on */
function leftApart(steps: readonly (number | undefined)[]): TroupeError {
  const said = steps.map((step, rank) => `rank ${rank} ${step === undefined ? "goes on" : `after ${step}`}`);
  return new TroupeError("LOOP_ORDER", {
    where: "loop",
    expected: "the loops of all ranks to return after the same step",
    got: said.join(", "),
    hint: "decide by what all ranks know alike, or call rank.stop(), which one rank may",
  });
}
