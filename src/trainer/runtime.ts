import type { Observable } from "rxjs";
import type { RuntimeOptions, RuntimeSettings } from "../config/index.ts";
import type { Dashboard } from "../dashboard/index.ts";
import type { SavedState } from "../engine/conductor/index.ts";
import { TroupeError } from "../errors.ts";
import {
  EventHub,
  type EventKind,
  type EventListener,
  type EventSink,
  type EventStream,
  type EventStreamOptions,
  type TroupeEvent,
} from "../events/index.ts";
import {
  type Findings,
  matchesName,
  summarizeUpdates,
  type TensorSummary,
  type UpdateSummary,
} from "../inspect/index.ts";
import type { Head, Launch, TrustFiles } from "../launch/index.ts";
import type { HeldMemory, RunResult } from "../protocols/index.ts";
import type { ActorInspection } from "../runtime/index.ts";
import { Interruption } from "./interruption.ts";
import { optionError } from "./option-error.ts";
import { jobUrlOf } from "./plan/job-url.ts";
import { launchedOptions, numHostsOf } from "./plan/launched.ts";
import { settleResume } from "./resume/resume-auto.ts";
import type { Run } from "./run.ts";

/** How a run of several hosts was started. */
export interface Launched {
  readonly launch: Launch;
  /** What all hosts must agree on, in words. */
  readonly about: string;
}

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
  readonly #settings: RuntimeSettings;
  readonly #printed: string;
  readonly #Run: typeof Run;
  readonly #launched: Launched | undefined;
  readonly #hub = new EventHub();
  #dashboard: Dashboard | undefined;
  /** The one under way. */
  #run: Run | undefined;
  /** Settled once what `run` was asked for is under way, or is not to be: what is asked of it meanwhile waits. */
  #beginning: Promise<void> | undefined;
  /** Settled once it is over, and never rejected. */
  #over: Promise<void> = Promise.resolve();

  private constructor(
    settings: RuntimeSettings,
    printed: string,
    RunClass: typeof Run,
    launched: Launched | undefined,
  ) {
    this.#settings = settings;
    this.#launched = launched;
    this.#printed = printed;
    this.#Run = RunClass;
  }

  /**
   * Checks the options and opens the dashboard, where one is wanted. Threads are started by {@link run}, once the job is
   * known to be sound.
   * @param launched - where a launcher has started the run on several hosts, of which this one leads
   * @throws {TroupeError} `OPTION`, `OPTIMIZER_OPTION`, `DASHBOARD_PORT`, `ACCESS_TOKEN`
   */
  static async spawn(options: RuntimeOptions = {}, launched?: Launched): Promise<Runtime> {
    // Not above: an actor's thread imports this module with its job, and would load a run, and the schema's library, in vain.
    const { printScript, settle } = await import("../config/index.ts");
    const { Run } = await import("./run.ts");
    const { launch } = launched ?? {};
    const settings =
      launch === undefined ? settle(options) : settle(launchedOptions(options, launch), numHostsOf(launch));
    const runtime = new Runtime(settings, printScript(options), Run, launched);
    for (const sink of options.sinks ?? []) runtime.addSink(sink);
    await runtime.#openDashboard();
    return runtime;
  }

  /** Every option with its value and whether the script gave it: a file that `troupe run --config` reads. */
  get options(): string {
    return this.#printed;
  }

  /** Where a browser finds the dashboard, the token with it; undefined without one. */
  get dashboardUrl(): string | undefined {
    return this.#dashboard?.url;
  }

  /** The file that keeps the dashboard's token, which its owner alone can read; undefined where there is none. */
  get dashboardTokenFile(): string | undefined {
    return this.#settings.dashboard?.tokenFile;
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

  /**
   * Calls `listener` with every event of one kind from now on, typed by it:
   *
   * ```ts
   * runtime.on("step.finished", ({ step, lossNats }) => console.log(step, lossNats));
   * ```
   * One that throws is reported as a subscriber is.
   * @throws {TroupeError} `OPTION` for a name that no kind of event has
   */
  on<Kind extends EventKind>(kind: Kind, listener: EventListener<Kind>): this {
    this.#hub.listeners.on(kind, listener);
    return this;
  }

  /** The same for the first such event alone. */
  once<Kind extends EventKind>(kind: Kind, listener: EventListener<Kind>): this {
    this.#hub.listeners.once(kind, listener);
    return this;
  }

  /** Takes a listener back. */
  off<Kind extends EventKind>(kind: Kind, listener: EventListener<Kind>): this {
    this.#hub.listeners.off(kind, listener);
    return this;
  }

  /** Lets a sink write every event from now on; the runtime closes it when it stops. */
  addSink(sink: EventSink): void {
    this.#hub.addSink(sink);
  }

  /**
   * Trains a job to its end.
   * @param jobUrl - module whose default export is `defineJob({ … })`: a URL, or a path as a command line takes it
   * @param overrides - settings of the job in place of its defaults
   * @returns once every thread of the run has ended and listeners have been called with its events, slow ones for at most a second
   * @throws {TroupeError} with the first cause of what went wrong; every thread of the run has ended then, and what was
   *   saved is kept
   */
  async run(jobUrl: URL | string, overrides: Readonly<Record<string, unknown>> = {}): Promise<RunResult> {
    if (this.#run !== undefined || this.#beginning !== undefined) {
      throw new TroupeError("RUN_IN_PROGRESS", {
        where: "runtime",
        expected: "one run at a time",
        got: "a second",
        hint: "await the first",
      });
    }
    const begun = Promise.withResolvers<void>();
    this.#beginning = begun.promise;
    try {
      return await this.#train(jobUrl, overrides, begun.resolve);
    } finally {
      this.#beginning = undefined;
      begun.resolve();
    }
  }

  async #train(
    jobUrl: URL | string,
    overrides: Readonly<Record<string, unknown>>,
    begun: () => void,
  ): Promise<RunResult> {
    const settings = await settleResume(this.#settings);
    using head = this.#launched && (await openHead(this.#launched.launch, settings.hosts.trust));
    let hostSignal: NodeJS.Signals | undefined;
    const run = new this.#Run({
      settings,
      head,
      about: this.#launched?.about ?? "",
      emit: (event) => this.#hub.emit(event),
      onSignal: (signal) => {
        if (hostSignal === undefined && interruption?.signal === undefined) this.#interrupt(signal);
        hostSignal ??= signal;
      },
    });
    this.#run = run;
    const { promise, resolve } = Promise.withResolvers<void>();
    this.#over = promise;
    using interruption = this.#listensToSignals
      ? new Interruption((signal) => {
          if (hostSignal === undefined) this.#interrupt(signal);
        })
      : undefined;
    try {
      const training = run.train(jobUrlOf(jobUrl), overrides);
      begun();
      const result = await training;
      const signal = interruption?.signal ?? hostSignal;
      // One that came with the last step has cut nothing short.
      return signal === undefined || result.steps === run.numSteps
        ? result
        : { ...result, interruptedBy: signal };
    } finally {
      await run.end();
      this.#run = undefined;
      resolve();
      this.#hub.flush();
    }
  }

  /**
   * Saves the state after the next step that is granted, or while the run is paused, the present one; training goes on.
   * Where a save is under way, it waits for its end.
   * @returns once the checkpoint is durable
   * @throws {TroupeError} `OPTION` for a run without a folder to save to; `RUN_OVER` where none is in progress, or it ends
   *   before the save is durable; what the save failed with
   */
  async save(): Promise<SavedState> {
    const { control } = await this.#running();
    this.#requireFolder();
    return control.save();
  }

  /**
   * Grants no further step until {@link resume}: saves of what is done go on, and are made where they are asked for.
   * @returns how many steps are made in all, once those that had been granted, a few, are
   * @throws {TroupeError} `RUN_OVER` where no run is in progress, or it ends before
   */
  async pause(): Promise<number> {
    return (await this.#running()).control.pause();
  }

  /**
   * Grants steps again; nothing where the run is not paused.
   * @throws {TroupeError} `RUN_OVER` where no run is in progress
   */
  resume(): void {
    if (this.#run === undefined) throw this.#Run.missing();
    this.#run.control.resume();
  }

  /** What every actor is doing, read from shared memory: it answers also while they are stuck. */
  inspect(): readonly ActorInspection[] {
    return this.#run?.inspect() ?? [];
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

  /**
   * Ends the events, and a run in progress: at once, in which case `run` fails with `RUN_STOPPED` and what was not saved is
   * lost; or, with `save`, after the steps that are granted, whose state is saved, and `run` returns.
   * @throws {TroupeError} with `save` what it failed with, the events being ended none the less; `OPTION` for a run without a
   *   folder to save to, which goes on then
   */
  async stop({ save = false }: { readonly save?: boolean } = {}): Promise<void> {
    await this.#beginning;
    if (save && this.#run !== undefined) this.#requireFolder();
    try {
      await (save ? this.#finish() : this.#run?.stop());
    } finally {
      await this.#hub.close();
    }
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.stop();
  }

  async #openDashboard(): Promise<void> {
    const { dashboard } = this.#settings;
    if (dashboard === undefined) return;
    const { Dashboard } = await import("../dashboard/index.ts");
    this.#dashboard = await Dashboard.open(dashboard, { inspect: () => this.inspect() });
    this.#hub.addSink(this.#dashboard);
  }

  get #listensToSignals(): boolean {
    return this.#settings.supervision.signals;
  }

  /** Lets the run under way save and end; gives it up where that takes too long, or there is nowhere to save to. */
  #interrupt(signal: NodeJS.Signals): void {
    const { supervision, checkpoint } = this.#settings;
    const { graceMs } = supervision;
    this.#hub.emit({ kind: "run.interrupted", signal, graceMs });
    // What either fails with, the run itself tells.
    const giveUp = () => void this.#run?.stop().catch(() => {});
    if (checkpoint?.directory === undefined) {
      giveUp();
      return;
    }
    const grace = setTimeout(giveUp, graceMs);
    void this.#finish()
      .catch(() => {})
      .finally(() => clearTimeout(grace));
  }

  async #finish(): Promise<void> {
    const control = this.#run?.control;
    if (control === undefined) return;
    const saved = control.save();
    control.stop();
    try {
      await saved;
    } finally {
      await this.#over;
    }
  }

  async #running(): Promise<Run> {
    await this.#beginning;
    if (this.#run === undefined) throw this.#Run.missing();
    return this.#run;
  }

  /** @throws {TroupeError} `OPTION` where nothing could be made durable */
  #requireFolder(): void {
    if (this.#settings.checkpoint?.directory !== undefined) return;
    throw optionError("checkpoint.dir", "a folder to save to", "none", "give it to Runtime.spawn");
  }

  async #inspect(of: keyof Findings, pattern: string): Promise<Findings> {
    await this.#beginning;
    if (this.#run !== undefined) return this.#run.inspections.ask(of, pattern);
    throw new TroupeError("INSPECTION_OVER", {
      where: "inspect",
      expected: "a run in progress",
      got: "none",
      hint: "ask while `run` is under way",
    });
  }
}

/** Not loaded by an actor's thread, which leads nothing. */
async function openHead(launch: Launch, trust: TrustFiles): Promise<Head> {
  const launching = await import("../launch/index.ts");
  return launching.Head.open(launch, trust);
}
