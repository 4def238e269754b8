import type { Module } from "../../compute/nn/index.ts";
import { releaseCachedMemory, releaseRefsOf } from "../../compute/tensor/index.ts";
import { TroupeError } from "../../errors/index.ts";
import { describeStall, reportError, type TroupeEventBody } from "../../job/events/index.ts";
import { type JobConfig, nameOfJob } from "../../job/index.ts";
import type { CheckpointSettings, RuntimeSettings } from "../../job/options/index.ts";
import { stampOf } from "../../library/checkpoint/index.ts";
import {
  type ActorInspection,
  type ActorRef,
  type ActorSystem,
  fromFailure,
  type RuntimeEvent,
  systemClock,
} from "../../runtime/index.ts";
import { type CallLog, over, RunControl, type SavedState } from "../engine/conductor/index.ts";
import { Inspections } from "../inspect/index.ts";
import {
  type CheckpointerProtocol,
  type InitialState,
  type RunResult,
  recipientName,
  sentTo,
} from "../protocols/index.ts";
import type { LedLaunch } from "./led-launch.ts";
import type { OpenedRun } from "./live/live-model.ts";
import { planRun, type RunPlan } from "./plan/plan-run.ts";
import type { RunData } from "./plan/run-data.ts";
import { leadThroughRestarts } from "./recovery/lead.ts";
import { ServedWeights } from "./recovery/served-weights.ts";
import { CHECKPOINTER, superviseCheckpointer } from "./recovery/supervised-checkpointer.ts";
import { SupervisedRanks } from "./recovery/supervised-ranks.ts";
import { Rendezvous } from "./rendezvous.ts";
import { stateIn } from "./resume/loaded-state.ts";
import { RunFolder } from "./resume/run-folder.ts";
import type { Start } from "./resume/start.ts";
import { type SettledJob, settleJob } from "./settle-job.ts";
import type { SharedSystem } from "./shared-system.ts";
import { JOB_LOADER } from "./stalls/job-loader.ts";
import { reportingWait } from "./stalls/reported-waits.ts";
import { keepFrames, leaveOwnFrames, rootCause } from "./stalls/root-cause.ts";
import { Stalls } from "./stalls/stalls.ts";
import { stalledEvent, translateEvent } from "./translate-event.ts";

/** The longest end of an actor; one whose code does not return is then ended by force. */
const STOP_DEADLINE_MS = 1_000;

/** Options of a {@link Run}. */
export interface RunOptions {
  readonly settings: RuntimeSettings;
  /** Name of the live model, if it has one: it begins the names of its actors. */
  readonly name: string | undefined;
  /** The system that its actors live in. */
  readonly system: SharedSystem;
  /** The launch on several hosts that it is a part of, if any. */
  readonly lead: LedLaunch | undefined;
  readonly emit: (event: TroupeEventBody) => void;
}

/** A live model's calls, which make the steps. */
export interface LiveStart {
  readonly calls: CallLog;
  /** The weights that it serves and never trains, if it is a frozen copy, or the checkpoint that has them; the caller's. */
  readonly frozen?: ServedWeights | SavedState | undefined;
  /** The data of the model that it is a copy of, open. */
  readonly opened?: RunData;
  /** Called when the model is there, and again after each restart. */
  readonly onOpen: (run: OpenedRun) => void;
}

/** One run of a job, from its module to its result: data opened, model declared, actors spawned, ranks led to the last step. */
export class Run {
  /** Requests to inspect its next step. */
  readonly inspections = new Inspections();
  /** Pauses it, saves it, ends it early. */
  readonly control = new RunControl();
  readonly #options: RunOptions;
  /** Begins the names of its actors. */
  readonly #prefix: string;
  readonly #stalls: Stalls;
  readonly #system: ActorSystem;
  #rendezvous: Rendezvous | undefined;
  #ranks: SupervisedRanks | undefined;
  #checkpointer: ActorRef<CheckpointerProtocol> | undefined;
  #folder: RunFolder | undefined;
  #isEnding = false;
  #numSteps = 0;
  #isStopped = false;
  /** Rejected with the error that ends the run while it waits for hosts. */
  readonly #halted = Promise.withResolvers<never>();

  /** The error of requests without a run. */
  static missing(): TroupeError {
    return over();
  }

  /** Starts nothing yet. */
  constructor(options: RunOptions) {
    const { supervision } = options.settings;
    this.#halted.promise.catch(() => {});
    this.#options = options;
    this.#prefix = options.name === undefined ? "" : `${options.name}-`;
    this.#stalls = new Stalls(supervision.stallMs, supervision.deadlineMs);
    const stalls = {
      stallAfterMs: () => this.#stalls.afterMs,
      callAfterMs: () => this.#stalls.callAfterMs,
      isToProgress: (actor: ActorInspection) => this.#stalls.isToBlame(actor),
    };
    const onEvent = (event: RuntimeEvent): void => this.#hear(event);
    this.#system = options.system.part({ name: options.name ?? "troupe", ...stalls, onEvent });
  }

  /** Trains the job to its end, once, and reports the result. @throws {TroupeError} the first cause of a failure */
  async train(
    jobUrl: string,
    overrides: Readonly<Record<string, unknown>>,
    live?: LiveStart,
  ): Promise<RunResult> {
    const { emit } = this.#options;
    const begin = performance.now();
    using _ = keepFrames();
    try {
      const result = await this.#perform(jobUrl, overrides, live);
      const { steps, lossNats, endedBy } = result;
      const numLeft = live === undefined ? this.#numSteps - steps : 0;
      const durationMs = performance.now() - begin;
      emit({
        kind: "run.finished",
        steps,
        lossNats,
        durationMs,
        ...(numLeft > 0 && { numLeft }),
        ...(endedBy && { endedBy }),
      });
      return result;
    } catch (caught) {
      // When a run is stopped, all its work fails because of the stop alone.
      const error = this.#isStopped ? stopped() : rootCause(caught, this.inspect());
      emit({ kind: "run.failed", error: reportError(error) });
      if (error instanceof Error && !this.#isStopped) this.#options.lead?.fail(error);
      if (!this.#options.settings.telemetry.debug) leaveOwnFrames(error);
      throw error;
    }
  }

  /** Number of optimizer steps in all; 0 until it is known. */
  get numSteps(): number {
    return this.#numSteps;
  }

  inspect(): readonly ActorInspection[] {
    return this.#system.inspect();
  }

  /** Ends the run with `RUN_INTERRUPTED` if hosts still have to join: there is nothing to save. @returns whether it ended */
  interrupt(signal: NodeJS.Signals): boolean {
    const { lead } = this.#options;
    if (lead === undefined || lead.haveJoined) return false;
    const got = `${signal} before all hosts had joined`;
    this.#halted.reject(interrupted(got, "no step was made: start it again"));
    return true;
  }

  /** Reports to other hosts how the run has ended, so that they exit with the same code. */
  endedBy(signal: NodeJS.Signals | undefined, { steps, saveError }: RunResult): void {
    const { lead } = this.#options;
    if (saveError !== undefined)
      lead?.fail(
        fromFailure({
          name: "TroupeError",
          code: "CHECKPOINT_SAVE_FAILED",
          message: saveError.message,
          fields: {},
        }),
      );
    else if (signal !== undefined)
      lead?.fail(
        interrupted(`${signal} after step ${steps}, whose state is saved`, "host 0 tells how to go on"),
      );
  }

  /** Fails the run with `RUN_STOPPED`, unless it is over, and ends its actors. @param first - awaited before they end */
  async stop(first?: Promise<void>): Promise<void> {
    this.#isStopped = true;
    await first;
    this.#halted.reject(stopped());
    this.#ranks?.abandon(stopped());
    await this.#system.stop({ drain: false, deadlineMs: STOP_DEADLINE_MS });
  }

  /** Ends the actors of a run that is over, and rejects the remaining inspections. */
  async end(): Promise<void> {
    this.#isEnding = true;
    this.inspections.close();
    this.control.close();
    try {
      await this.#system.stop({ drain: false });
    } finally {
      // Not before: a save that was under way when the run failed still wrote there.
      await this.#folder?.[Symbol.asyncDispose]();
      // The program may go on with other runs or other work, which need the memory of this one.
      releaseCachedMemory();
    }
  }

  async #perform(
    jobUrl: string,
    overrides: Readonly<Record<string, unknown>>,
    live: LiveStart | undefined,
  ): Promise<RunResult> {
    const { settings, emit, lead } = this.#options;
    const place = { system: this.#system, prefix: this.#prefix, emit, opened: live?.opened };
    const settled = await settleJob(place, jobUrl, overrides, settings);
    const { batch, start } = settled;
    await using rendezvous = await Rendezvous.open(settings.layout, lead?.rendezvous);
    this.#rendezvous = rendezvous;
    this.#numSteps = batch.steps;
    const plan = planRun(
      { ...settled, data: settled.data.opened, jobUrl },
      settings,
      rendezvous.groups,
      live !== undefined,
    );
    if (lead !== undefined) await Promise.race([this.#halted.promise, lead.joined()]);
    const folder = await takeFolder(settings, nameOfJob(jobUrl), start);
    this.#folder = folder;
    const served = live?.frozen instanceof ServedWeights ? live.frozen : undefined;
    const { checkpoint } = settings;
    this.#checkpointer =
      checkpoint &&
      (await superviseCheckpointer(this.#system, this.#prefix, checkpoint, folder?.hold, served));
    this.#reportStart(jobUrl, settled);
    const ranks = await this.#startRanks(jobUrl, settled);
    const result = await this.#lead(ranks, plan, settled, live, served);
    const isComplete =
      result.steps >= batch.steps || result.endedBy !== undefined || live?.calls.isClosed === true;
    await folder?.end(isComplete ? "finished" : "stopped");
    return result;
  }

  #reportStart(jobUrl: string, { config, batch, start, model, changes }: SettledJob): void {
    const { settings, emit, lead } = this.#options;
    // A model with a name has hosts of its own.
    const hosts = settings.layout.hosts === undefined ? lead?.placed() : undefined;
    emit({ ...runStarted({ jobUrl, config }, settings, batch.steps, start, model), ...(hosts && { hosts }) });
    if (start.resumed !== undefined)
      emit({ kind: "run.resumed", path: start.resumed.path, step: start.initial.step, changes });
  }

  async #startRanks(
    jobUrl: string,
    { config, start, data, modules, recipe }: SettledJob,
  ): Promise<SupervisedRanks> {
    const { lead, settings } = this.#options;
    const { execution, layout, supervision, offload, checkpoint } = settings;
    const ranks = await SupervisedRanks.start(
      this.#system,
      {
        ...layout,
        prefix: this.#prefix,
        offload,
        slicesTo: lead && slicesTo(checkpoint),
        // A GPU's context belongs to a process, and the death of a rank that it shares memory with may spoil it.
        freshProcess: execution.devices.some((device) => device.startsWith("cuda")),
        warmStandby: supervision.warmStandby,
        modules,
      },
      () => ({ jobUrl, data: { config, seed: start.seed }, begun: data.begun() }),
      supervision.maxRestarts,
    );
    this.#ranks = ranks;
    // The run then fails as it does at a batch that cannot be made.
    recipe.known.catch((error: TroupeError) => this.#isEnding || ranks.abandon(error));
    return ranks;
  }

  /** Leads the ranks from the run's state to its end. @param served - the weights of a frozen copy, if it has them in memory */
  #lead(
    ranks: SupervisedRanks,
    plan: RunPlan,
    { start, recipe, model, job, config, data, batch }: SettledJob,
    live: LiveStart | undefined,
    served: ServedWeights | undefined,
  ): Promise<RunResult> {
    const { settings, emit, lead } = this.#options;
    const { deadlineMs } = settings.execution;
    const checkpointer = this.#checkpointer;
    const folder = this.#folder;
    const frozen = () => frozenState(start, served, checkpointer, deadlineMs);
    const firstStep = Promise.withResolvers<void>();
    // Its duration is unknown: without reports, a loop without end would show nothing until the deadline.
    void reportingWait(firstStep.promise, (waitedMs) =>
      emit({ kind: "run.delayed", what: "the first step", waitedMs }),
    );
    return leadThroughRestarts(ranks, {
      plan,
      start: live?.frozen === undefined ? start : { ...start, initial: frozen() },
      about: () => ({
        ...(folder && { run: stampOf(folder.record) }),
        recipe: recipe.now,
        ...(start.base && { base: start.base.identity }),
      }),
      onPrepared: async () => {
        await folder?.empty();
        live?.onOpen({
          job,
          numReplicas: settings.layout.mesh.dp,
          accumulation: batch.accumulation,
          canEvaluate: plan.schedule.evaluation.length > 0,
          isSaved: plan.ranks.isSaved,
          isCopied: plan.schedule.saving.inMemoryEverySteps !== undefined,
          emit,
          config,
          data,
          seed: start.seed,
        });
      },
      calls: live?.calls,
      resume: settings.training.resume,
      checkpointer,
      holder: served && (() => this.#system.find(this.#prefix + CHECKPOINTER, { deadlineMs })),
      isSpread: lead !== undefined,
      inspections: this.inspections,
      control: this.control,
      emit,
      onStep: (durationMs) => {
        firstStep.resolve();
        this.#stalls.stepTook(durationMs);
      },
      load: (from) => stateIn(from, model, start),
      hold: async (weights) => {
        served?.replace(weights);
        if (served !== undefined && checkpointer !== undefined)
          await checkpointer.ask("hold", served.refs(sentTo(checkpointer)), { deadlineMs });
        return frozen();
      },
      residentBytes: () => this.#system.residentBytes(),
      begin: (kind, body) => this.#system.begin(kind, body),
    }).finally(firstStep.resolve);
  }

  #hear(event: RuntimeEvent): void {
    if (event.kind === "actor.failed" || event.kind === "actor.stopped") this.#clearUpAfter(event);
    // The run ends with its error.
    if (event.kind === "actor.failed" && event.actor === this.#prefix + JOB_LOADER) return;
    // Messages under way when a run ends are lost on purpose.
    if (this.#isEnding && event.kind === "message.undelivered") return;
    if (event.kind === "actor.stalled") {
      void this.#hearStalled(event);
      return;
    }
    const reported = translateEvent(event);
    if (reported !== undefined) this.#options.emit(reported);
  }

  /** Reports a stalled actor, with the line of its code if it can be seen, and ends it if others wait for it. */
  async #hearStalled(event: Extract<RuntimeEvent, { kind: "actor.stalled" }>): Promise<void> {
    const { isNews, isToBlame, call } = event;
    // The error that ends it shows the line.
    const seesLine = isNews && !isToBlame && call?.isPending === false;
    const stack = seesLine ? await this.#system.stackOfNamed(event.actor).catch(() => undefined) : undefined;
    if (isNews) this.#options.emit(stalledEvent(event, stack));
    // If it could not be ended, its supervisor reports that and gives the group up.
    if (isToBlame) await this.#endStalled(event).catch(() => {});
  }

  /** Releases tensors on their way to an actor that has ended, and ends waits for its rank in collectives. */
  #clearUpAfter({
    actor,
    role,
    incarnation,
  }: Extract<RuntimeEvent, { kind: "actor.failed" | "actor.stopped" }>): void {
    releaseRefsOf(recipientName({ system: this.#system.id, name: actor, incarnation }));
    if (role === "rank") this.#leaveRendezvous(actor);
  }

  async #endStalled(actor: ActorInspection): Promise<void> {
    // Its own supervisor starts it again; the save under way fails with it.
    if (actor.actor === this.#prefix + CHECKPOINTER && this.#checkpointer !== undefined)
      return this.#system.stopActor(this.#checkpointer.pinned(), { drain: false, deadlineMs: 0 });
    // Its thread may end late: the others stop waiting for it now.
    this.#leaveRendezvous(actor.actor);
    await this.#ranks?.end(actor, stalled(actor, this.#stalls.afterMs));
  }

  #leaveRendezvous(actor: string): void {
    if (this.#ranks !== undefined) this.#rendezvous?.ended(actor, this.#ranks.generation);
  }
}

/** The folder of the run's checkpoints, if any go to the disk. */
async function takeFolder(
  { checkpoint, training }: RuntimeSettings,
  job: string,
  start: Start,
): Promise<RunFolder | undefined> {
  if (checkpoint?.dir === undefined) return undefined;
  const { dir: directory, overwrite } = checkpoint;
  return RunFolder.take({ directory, overwrite, job, start, resume: training.resume });
}

/** The folder into which ranks' own processes write; undefined if states also stay in the checkpointer's memory. */
function slicesTo(checkpoint: CheckpointSettings | undefined): string | undefined {
  const { dir, writers, inMemoryEverySteps } = checkpoint ?? {};
  return writers === "head" || inMemoryEverySteps !== undefined ? undefined : dir;
}

/** The initial state of a frozen copy: weights in its checkpointer's memory, or a checkpoint. */
function frozenState(
  { initial, base }: Start,
  served: ServedWeights | undefined,
  checkpointer: ActorRef<CheckpointerProtocol> | undefined,
  deadlineMs: number,
): InitialState {
  if (served === undefined || checkpointer === undefined) return { ...initial, isFrozen: true };
  const { step, progress } = served.now;
  return { kind: "memory", step, progress, checkpointer, deadlineMs, base: base?.beginning, isFrozen: true };
}

function runStarted(
  { jobUrl, config }: { readonly jobUrl: string; readonly config: JobConfig },
  settings: RuntimeSettings,
  steps: number,
  { seed, initial, pretrained }: Start,
  model: Module,
): TroupeEventBody {
  const { layout, precision, execution } = settings;
  const { ranks, mesh, zero, placement } = layout;
  return {
    kind: "run.started",
    job: nameOfJob(jobUrl),
    jobSettings: config,
    steps,
    firstStep: initial.step,
    numRanks: ranks,
    mesh,
    zero,
    placement,
    devices: execution.devices,
    precision: precision.name,
    seed,
    numParameters: model.numParameters,
    numTrainable: numTrainableOf(model),
    ...(pretrained && { pretrained }),
    clockMs: systemClock.now(),
  };
}

function numTrainableOf(model: Module): number {
  return model
    .parameters()
    .filter(({ trainable }) => trainable)
    .reduce((sum, { numel }) => sum + numel, 0);
}

function stalled(actor: ActorInspection, afterMs: number): TroupeError {
  return new TroupeError("ACTOR_STALLED", {
    where: actor.actor,
    expected: `progress within ${(afterMs / 1000).toFixed(1)} s`,
    got: `none: ${describeStall(actor)}`,
    hint: "a loop without end, or one step that takes longer than --stall allows",
  });
}

/** The error that all hosts report; the head alone adds the command to resume. */
function interrupted(got: string, hint: string): TroupeError {
  return new TroupeError("RUN_INTERRUPTED", {
    where: "run",
    expected: "the run to reach its last step",
    got,
    hint,
  });
}

function stopped(): TroupeError {
  return new TroupeError("RUN_STOPPED", {
    where: "runtime",
    expected: "the run to reach its last step",
    got: "a stop before",
    hint: "resume it from its newest checkpoint",
  });
}
