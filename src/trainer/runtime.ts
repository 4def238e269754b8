import { relative } from "node:path";
import { fileURLToPath } from "node:url";
import type { Observable } from "rxjs";
import {
  actorModules,
  type Findings,
  type HeldMemory,
  Inspections,
  loadJob,
  matchesName,
  type RunResult,
  recipientName,
  summarizeUpdates,
  type TensorSummary,
  type UpdateSummary,
} from "../actors/index.ts";
import { Dashboard } from "../dashboard/index.ts";
import { TroupeError } from "../errors.ts";
import {
  EventHub,
  type EventKind,
  type EventSink,
  type EventStream,
  type EventStreamOptions,
  reportError,
  type TroupeEvent,
} from "../events/index.ts";
import { type ActorInspection, ActorSystem, systemClock } from "../runtime/index.ts";
import { releaseRefsOf } from "../tensor/index.ts";
import { configure } from "./configure.ts";
import { explainHang } from "./explain-hang.ts";
import { leadThroughRestarts } from "./lead.ts";
import { MeetingPlace } from "./meeting-place.ts";
import { openData } from "./open-data.ts";
import { type RuntimeOptions, type RuntimeSettings, settle } from "./options.ts";
import { planBatch, planRun, rehearse } from "./plan-run.ts";
import { retell } from "./retell.ts";
import { Stalls } from "./stalls.ts";
import { startFromCheckpoint, startFromSeed, startFromWeights } from "./start.ts";
import { superviseCheckpointer } from "./supervised-checkpointer.ts";
import { SupervisedRanks } from "./supervised-ranks.ts";

/**
 * The runtime as a script uses it: spawn it, subscribe to what happens, run a job, stop it.
 *
 * ```ts
 * await using runtime = await Runtime.spawn({ ranks: 2, zero: 3 });
 * runtime.events$.subscribe(console.log);
 * await runtime.run(new URL("./job.ts", import.meta.url), { layers: 12 });
 * ```
 */
export class Runtime implements AsyncDisposable {
  readonly #options: RuntimeOptions;
  readonly #settings: RuntimeSettings;
  readonly #hub = new EventHub();
  readonly #inspections = new Inspections();
  #dashboard: Dashboard | undefined;
  #system: ActorSystem | undefined;
  #running = false;
  #ending = false;
  #stalls: Stalls | undefined;
  #rankEnded: (actor: string) => void = () => {};
  #abandon: () => void = () => {};
  #endStalled: (actor: ActorInspection) => Promise<void> = async () => {};

  private constructor(options: RuntimeOptions) {
    this.#options = options;
    this.#settings = settle(options);
    for (const sink of options.sinks ?? []) this.#hub.addSink(sink);
  }

  /**
   * Checks the options and opens the dashboard, where one is wanted. Threads are started by {@link run}, once the job is
   * known to be sound.
   * @throws {TroupeError} `OPTION`, `ZERO_LEVEL`, `DASHBOARD_PORT`, `ACCESS_TOKEN`
   */
  static async spawn(options: RuntimeOptions = {}): Promise<Runtime> {
    const runtime = new Runtime(options);
    await runtime.#openDashboard();
    return runtime;
  }

  /** Where a browser finds the dashboard, the token with it; undefined without one. */
  get dashboardUrl(): string | undefined {
    return this.#dashboard?.url;
  }

  /** What happens, as it happens. A subscriber that is slow or throws never slows or stops training. */
  get events$(): Observable<TroupeEvent> {
    return this.#hub.events$;
  }

  /**
   * The same events for `for await`, or some of them:
   *
   * ```ts
   * const losses = runtime.events({ kinds: ["step.finished"], sample: { "step.finished": { everyMs: 1000 } } });
   * for await (const { step, lossNats } of losses) console.log(step, lossNats);
   * ```
   * @throws {TroupeError} `OPTION`
   */
  events<Kind extends EventKind = EventKind>(options: EventStreamOptions<Kind> = {}): EventStream<Kind> {
    return this.#hub.events(options);
  }

  /** Lets a sink write every event from now on; the runtime closes it when it stops. */
  addSink(sink: EventSink): void {
    this.#hub.addSink(sink);
  }

  /**
   * Trains a job to its end.
   * @param jobUrl - module whose default export is `defineJob({ … })`
   * @param overrides - settings of the job in place of its defaults
   * @throws {TroupeError} with the first cause of what went wrong; every thread of the run has ended then, and what was
   *   saved is kept
   */
  async run(jobUrl: URL | string, overrides: Readonly<Record<string, unknown>> = {}): Promise<RunResult> {
    if (this.#running) {
      throw new TroupeError(
        "RUN_IN_PROGRESS",
        "[runtime] expected one run at a time: got a second (await the first)",
      );
    }
    this.#running = true;
    this.#ending = false;
    const begin = performance.now();
    try {
      const result = await this.#perform(String(jobUrl), overrides);
      const { steps, lossNats } = result;
      this.#hub.emit({ kind: "run.finished", steps, lossNats, durationMs: performance.now() - begin });
      return result;
    } catch (caught) {
      const error = explainHang(caught, this.inspect());
      this.#hub.emit({ kind: "run.failed", error: reportError(error) });
      throw error;
    } finally {
      this.#ending = true;
      this.#inspections.close();
      await this.#system?.stop({ drain: false });
      this.#system = undefined;
      this.#running = false;
    }
  }

  /** What every actor is doing, read from shared memory: it answers also while they are stuck. */
  inspect(): readonly ActorInspection[] {
    return this.#system?.inspect() ?? [];
  }

  /**
   * Statistics of the parameters whose names match, and of their gradients, as the next step that is granted leaves them:
   * of the whole parameters, however they are split, to the last bit of a float64 sum.
   * @param pattern - with the wildcards of a shell, such as `*.c_attn.*`
   * @returns in the order of the model; `formatSummary` makes a table of them
   * @throws {TroupeError} `INSPECTION_OVER` where no step comes any more
   */
  async inspectModel(pattern = "*"): Promise<readonly TensorSummary[]> {
    const { parameters } = await this.#inspect("parameters", pattern);
    return parameters.filter(({ name }) => matchesName(name, pattern));
  }

  /**
   * How the next step that is granted moves the parameters whose names match: statistics of what it takes off them, over the
   * learning rate, and their mean and variance together. Of AdamW that is the update direction, which BMTrain's
   * `record_delta` records. Empty where the step is left out.
   * @param pattern - as for {@link inspectModel}
   * @throws {TroupeError} `INSPECTION_OVER` where no step comes any more
   */
  async inspectUpdates(pattern = "*"): Promise<UpdateSummary> {
    const { updates } = await this.#inspect("updates", pattern);
    return summarizeUpdates(updates.filter(({ name }) => matchesName(name, pattern)));
  }

  /**
   * Statistics of the tensors that the model's code marks with `recordTensor`, and of the gradients of the loss with
   * respect to them, in the next step that is granted: over all replicas and micro-batches.
   * @param pattern - of their names, `<group.>k.name`, where k counts the records of that name along the model
   * @throws {TroupeError} `INSPECTION_OVER` where no step comes any more
   */
  async inspectTensors(pattern = "*"): Promise<readonly TensorSummary[]> {
    const { tensors } = await this.#inspect("tensors", pattern);
    return tensors.filter(({ name }) => matchesName(name, pattern));
  }

  /**
   * What each rank holds by kind at the end of the next step that is granted, and the most it has held: the allocator's
   * own count, in bytes that tensors asked for.
   * @throws {TroupeError} `INSPECTION_OVER` where no step comes any more
   */
  async inspectMemory(): Promise<readonly HeldMemory[]> {
    return (await this.#inspect("memory", "")).memory;
  }

  /** Ends the events. A run in progress fails with `RUN_STOPPED`. */
  async stop(): Promise<void> {
    this.#abandon();
    await this.#system?.stop({ drain: false });
    await this.#hub.close();
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.stop();
  }

  async #openDashboard(): Promise<void> {
    const { dashboard } = this.#settings;
    if (dashboard === undefined) return;
    this.#dashboard = await Dashboard.open(dashboard, { inspect: () => this.inspect() });
    this.#hub.addSink(this.#dashboard);
  }

  async #inspect(of: keyof Findings, pattern: string): Promise<Findings> {
    if (this.#running) return this.#inspections.ask(of, pattern);
    throw new TroupeError(
      "INSPECTION_OVER",
      "[inspect] expected a run in progress: got none (ask while `run` is under way)",
    );
  }

  async #perform(jobUrl: string, overrides: Readonly<Record<string, unknown>>): Promise<RunResult> {
    const settings = this.#settings;
    const job = await loadJob(jobUrl);
    const config = configure(job, overrides);
    const batch = planBatch(job, config, settings);
    const resumed =
      settings.resume === undefined
        ? undefined
        : await startFromCheckpoint(settings.resume, this.#options.seed);
    const seed = resumed?.seed ?? settings.seed;
    const system = this.#startSystem();
    const feeder = { jobUrl, config, seed };
    const data = await openData(system, feeder, settings.deadlineMs);
    const model = rehearse(job, config, data, settings, batch);
    const { pretrained } = job.training(config);
    const fresh =
      pretrained === undefined ? startFromSeed(seed) : await startFromWeights(pretrained, model, seed);
    const start = resumed ?? fresh;
    await using place = await MeetingPlace.open(settings.mesh, settings.placement);
    const plan = planRun({ job, jobUrl, config }, settings, batch, data, start, place.groups);
    const { checkpoint } = settings;
    const checkpointer = checkpoint && (await superviseCheckpointer(system, checkpoint));
    this.#hub.emit({
      kind: "run.started",
      job: nameOf(jobUrl),
      steps: plan.score.steps,
      firstStep: start.initial.step,
      numRanks: settings.numRanks,
      mesh: settings.mesh,
      zero: settings.zero,
      placement: settings.placement,
      precision: settings.precision.name,
      seed: start.seed,
      numParameters: model.numParameters,
      clockMs: systemClock.now(),
    });
    const ranks = await SupervisedRanks.start(system, settings, feeder, settings.maxRestarts);
    this.#endStalled = (actor) => {
      // Its thread may take its time to end: nobody waits for it meanwhile.
      place.ended(actor.actor, ranks.life);
      return ranks.end(actor);
    };
    this.#abandon = () => ranks.abandon(stopped());
    this.#rankEnded = (actor) => place.ended(actor, ranks.life);
    return await leadThroughRestarts(ranks, {
      plan,
      start,
      resume: settings.resume,
      checkpointer,
      inspections: this.#inspections,
      emit: (event) => {
        if (event.kind === "step.finished") this.#stalls?.stepTook(event.durationMs);
        this.#hub.emit(event);
      },
      residentBytes: () => system.residentBytes(),
      begin: (kind, body) => system.begin(kind, body),
    });
  }

  #startSystem(): ActorSystem {
    const stalls = new Stalls(this.#settings.stallMs);
    this.#stalls = stalls;
    const system = new ActorSystem({
      name: "troupe",
      preload: actorModules.preload,
      messaging: { traceEvery: this.#settings.telemetry.traceEvery },
      stallAfterMs: () => stalls.afterMs,
      isToProgress: (actor) => stalls.isToBlame(actor),
      onEvent: (event) => {
        if (event.kind === "actor.failed" || event.kind === "actor.stopped") {
          const { actor, incarnation } = event;
          releaseRefsOf(recipientName({ system: system.id, name: actor, incarnation }));
          if (event.actor.startsWith("rank-")) this.#rankEnded(event.actor);
        }
        // What is under way when a run ends goes nowhere, and is no news.
        if (this.#ending && event.kind === "message.undelivered") return;
        const told = retell(event);
        if (told !== undefined) this.#hub.emit(told);
        // That it could not be ended is told by its supervisor, which gives the group up then.
        if (event.kind === "actor.stalled") void this.#endStalled(event).catch(() => {});
      },
    });
    this.#system = system;
    return system;
  }
}

function stopped(): TroupeError {
  return new TroupeError(
    "RUN_STOPPED",
    "[runtime] expected the run to reach its last step: it was stopped before (resume it from its newest checkpoint)",
  );
}

/** A job as a person would name it: its path from where they stand, where it is a file. */
function nameOf(jobUrl: string): string {
  return jobUrl.startsWith("file:") ? relative(process.cwd(), fileURLToPath(jobUrl)) : jobUrl;
}
