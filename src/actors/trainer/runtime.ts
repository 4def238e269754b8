import type { Observable } from "rxjs";
import { TroupeError } from "../../errors/index.ts";
import type { Dashboard } from "../../job/dashboard/index.ts";
import {
  EventHub,
  type EventKind,
  type EventListener,
  type EventOf,
  type EventSink,
  type EventStream,
  type EventStreamOptions,
  type TroupeEvent,
} from "../../job/events/index.ts";
import type { Job } from "../../job/index.ts";
import type { RuntimeOptions, RuntimeSettings } from "../../job/options/index.ts";
import type { ActorInspection, ActorRef, ActorSystem } from "../../runtime/index.ts";
import type { CallLog, SavedState } from "../engine/conductor/index.ts";
import {
  type Findings,
  matchesName,
  summarizeUpdates,
  type TensorSummary,
  type UpdateSummary,
} from "../inspect/index.ts";
import type { HeldMemory, RunResult } from "../protocols/index.ts";
import type { LedLaunch } from "./led-launch.ts";
import type { FrozenState, LiveModel, LiveRun, OpenedRun } from "./live/live-model.ts";
import { type OpenOptions, optionsOfCopy, settingsOfModel } from "./live/open-options.ts";
import { optionError } from "./option-error.ts";
import type { KindFor, openOwnActors, tellEvents } from "./own-actors.ts";
import { jobUrlOf } from "./plan/job-url.ts";
import { type Launched, launchedOptions, numHostsOf, takeLaunch } from "./plan/launched.ts";
import { settleResume } from "./resume/resume-auto.ts";
import type { Run } from "./run.ts";
import { type Order, Running } from "./running.ts";
import type { SharedSystem } from "./shared-system.ts";

/** The classes and functions that a runtime loads when it is spawned: an actor's thread imports this module too, and needs none. */
interface Loaded {
  readonly Run: typeof Run;
  readonly SharedSystem: typeof SharedSystem;
  readonly openOwnActors: typeof openOwnActors;
  readonly tellEvents: typeof tellEvents;
  /** Undefined where the runtime leads no launch. */
  readonly LedLaunch: typeof LedLaunch | undefined;
}

/**
 * The runtime of a script: spawn it, subscribe to its events, run a job, stop it.
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
  readonly #printed: string;
  readonly #loaded: Loaded;
  readonly #hub = new EventHub();
  readonly #system: SharedSystem;
  /** The launch on several hosts that it leads, if any. */
  readonly #lead: LedLaunch | undefined;
  /** A signal that another host received while there was no run or model: it ends the next. */
  #unheard: NodeJS.Signals | undefined;
  /** Whether the launch's script may open further models. */
  #isScriptRunning = false;
  #own: ActorSystem | undefined;
  #dashboard: Dashboard | undefined;
  /** The run and the live models, in the order in which they were asked for; the name of one without a name is empty. */
  readonly #running = new Map<string, Running>();
  /** Frozen copies of live models that have ranks of their own, past ones included. */
  #numCopies = 0;
  #stopped = false;

  private constructor(
    options: RuntimeOptions,
    settings: RuntimeSettings,
    printed: string,
    loaded: Loaded,
    launched: Launched | undefined,
  ) {
    this.#options = options;
    this.#settings = settings;
    this.#printed = printed;
    this.#loaded = loaded;
    this.#system = new loaded.SharedSystem(settings);
    this.#lead =
      launched &&
      loaded.LedLaunch &&
      new loaded.LedLaunch({
        launched,
        settings,
        system: this.#system,
        emit: (event) => this.#hub.emit(event),
        onSignal: (signal) => {
          for (const running of this.#running.values()) running.hear(signal);
          if (this.#running.size > 0) return;
          this.#unheard ??= signal;
          this.#hub.emit({ kind: "run.interrupted", signal, graceMs: undefined });
        },
      });
    void this.#watchScript(launched?.script);
  }

  /**
   * Starts what needs no job: checks the options, loads what a run is made of, attaches the sinks and serves the dashboard, if
   * there is one. Threads and processes of ranks are started by {@link run}, once the job's model, data and batch have been
   * checked against the layout.
   * @param given - the launch that this runtime leads, on the first of several hosts. Default: that of `troupe launch`, if any
   * @throws {TroupeError} `OPTION`, `OPTIMIZER_OPTION`, `DASHBOARD_PORT`, `ACCESS_TOKEN`
   */
  static async spawn(own: RuntimeOptions = {}, given?: Launched): Promise<Runtime> {
    const led = given === undefined ? takeLaunch() : undefined;
    const options = { ...led?.options, ...own };
    const launched = given ?? led?.launched;
    // Imported lazily: an actor's thread imports this module with its job, and needs neither the run nor the schema.
    const { printScript, settle } = await import("../../job/options/index.ts");
    const [{ Run }, { SharedSystem }, { openOwnActors, tellEvents }, leading] = await Promise.all([
      import("./run.ts"),
      import("./shared-system.ts"),
      import("./own-actors.ts"),
      launched && import("./led-launch.ts"),
    ]);
    const loaded = { Run, SharedSystem, openOwnActors, tellEvents, LedLaunch: leading?.LedLaunch };
    const { launch } = launched ?? {};
    const settings =
      launch === undefined ? settle(options) : settle(launchedOptions(options, launch), numHostsOf(launch));
    const runtime = new Runtime(options, settings, printScript(options), loaded, launched);
    for (const sink of options.sinks ?? []) runtime.addSink(sink);
    await runtime.#openDashboard();
    return runtime;
  }

  /** Every option with its value, and whether the script set it, in the form of a file that `troupe run --config` reads. */
  get options(): string {
    return this.#printed;
  }

  /** The dashboard's URL, token included; undefined without a dashboard. */
  get dashboardUrl(): string | undefined {
    return this.#dashboard?.url;
  }

  /** The file with the dashboard's token, readable by its owner only; undefined without one. */
  get dashboardTokenFile(): string | undefined {
    return this.#settings.dashboard?.tokenFile;
  }

  /** All events, as they happen. A slow or throwing subscriber never slows or stops training. */
  get events$(): Observable<TroupeEvent> {
    return this.#hub.events$;
  }

  /**
   * The same events, or a selection of them, for `for await`:
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
   * Calls `listener` with every event of one kind from now on, with that kind's type:
   *
   * ```ts
   * runtime.on("step.finished", ({ step, lossNats }) => console.log(step, lossNats));
   * ```
   * A listener that throws is reported and does not stop training.
   * @throws {TroupeError} `OPTION` for an unknown kind of event
   */
  on<Kind extends EventKind>(kind: Kind, listener: EventListener<Kind>): this {
    this.#hub.listeners.on(kind, listener);
    return this;
  }

  /** As {@link on}, for the next such event only. */
  once<Kind extends EventKind>(kind: Kind, listener: EventListener<Kind>): this {
    this.#hub.listeners.once(kind, listener);
    return this;
  }

  /** Removes a listener. */
  off<Kind extends EventKind>(kind: Kind, listener: EventListener<Kind>): this {
    this.#hub.listeners.off(kind, listener);
    return this;
  }

  /** Adds a sink, which receives every event from now on; the runtime closes it when it stops. */
  addSink(sink: EventSink): void {
    this.#hub.addSink(sink);
  }

  /**
   * The actor system that runs live in, for actors of your own: spawn, supervise and watch them. They reach the actors of a run
   * and are reached by name from its loops, have a line on the dashboard, and live until {@link stop}.
   *
   * ```ts
   * const judge = await runtime.actors.spawn<Judge>({ name: "judge", module: new URL("./judge.ts", import.meta.url) });
   * ```
   * On several hosts, with placement "process", `host` says on which an actor lives.
   * @throws {TroupeError} `SYSTEM_STOPPED` after {@link stop}; `HOST_MISSING` on several hosts before the first run or model has begun:
   *   they have not joined yet
   */
  get actors(): ActorSystem {
    if (this.#own === undefined) {
      if (this.#stopped) throw stopped("actors", "SYSTEM_STOPPED");
      if (this.#lead?.haveJoined === false) throw notJoined("actors");
      const { stallMs } = this.#settings.supervision;
      this.#own = this.#loaded.openOwnActors(this.#system, stallMs, (event) => this.#hub.emit(event));
    }
    return this.#own;
  }

  /**
   * Tells an actor of your own the events of some kinds, as they happen, through all its incarnations. A slow actor loses the
   * oldest and delays nothing.
   *
   * ```ts
   * runtime.tellEvents(judge, "stepped", { kinds: ["step.finished"] });
   * ```
   * @param kind - of the messages; each has an event as its body
   * @throws {TroupeError} `OPTION`
   */
  tellEvents<P, E extends EventKind>(
    to: ActorRef<P>,
    kind: KindFor<P, EventOf<E>>,
    options: EventStreamOptions<E> & { readonly kinds: readonly E[] },
  ): void {
    void this.#loaded.tellEvents(this.actors, this.events(options), to, kind);
  }

  /**
   * Trains a job to its end.
   * @param jobUrl - URL or path of a module whose default export is `defineJob({ … })`
   * @param overrides - values for the job's settings, instead of its defaults
   * @returns after every thread of the run has ended and listeners have received its events; slow ones get at most a second
   * @throws {TroupeError} `RUN_IN_PROGRESS` during another run and after {@link stop}; else with the first cause of the failure; by
   *   then every thread of the run has ended, and saved checkpoints are kept
   */
  async run(jobUrl: URL | string, overrides: Readonly<Record<string, unknown>> = {}): Promise<RunResult> {
    this.#refuseBusy();
    return this.#begin(undefined, settleResume(this.#settings), { jobUrl: jobUrlOf(jobUrl), overrides });
  }

  /** @throws {TroupeError} `RUN_IN_PROGRESS` beside another of that name, and after the end */
  #refuseBusy(name = ""): void {
    if (this.#stopped) throw stopped("runtime", "RUN_IN_PROGRESS");
    if (!this.#running.has(name)) return;
    const [expected, hint] =
      name === ""
        ? [
            "one run at a time",
            'await the first, or close its model; a further model has a name: open(job, {}, { name: "judge" })',
          ]
        : [`one model ${name}`, "close the first, or give another name"];
    throw new TroupeError("RUN_IN_PROGRESS", { where: "runtime", expected, got: "a second", hint });
  }

  /**
   * Opens a job's model for a script that calls it: its ranks, shards and parameters live until the model is closed. The type of
   * the job gives calls their types: `runtime.open<typeof job>(url)`, with `import type job from "./job.ts"`.
   * @param jobUrl - as for {@link run}
   * @param overrides - values for the job's settings, instead of its defaults
   * @param options - for a further model, beside a run or others: its name, and what it has of its own
   * @throws {TroupeError} as {@link run}; `OPTION`
   */
  async open<J = Job>(
    jobUrl: URL | string,
    overrides: Readonly<Record<string, unknown>> = {},
    options: OpenOptions = {},
  ): Promise<LiveModel<J>> {
    const { name } = options;
    this.#refuseBusy(name);
    const { CallLog } = await import("../engine/conductor/index.ts");
    const { LiveModel } = await import("./live/live-model.ts");
    const calls = new CallLog();
    const opened = Promise.withResolvers<LiveModel<J>>();
    const settings = settingsOfModel(options, this.#options, this.#settings, this.#lead?.launch);
    const url = jobUrlOf(jobUrl);
    const events = <K extends EventKind>(selected: EventStreamOptions<K>) =>
      this.#hub.events(selected, ({ model }) => model === name);
    const checkCopy: LiveRun["checkCopy"] = (layout) =>
      this.#settingsOfCopy({ ...optionsOfCopy(options, layout), resume: undefined }, {});
    const onOpen = (run: OpenedRun) => {
      const openCopy: LiveRun["openCopy"] = (step, state, layout) => {
        const calls = new CallLog(step);
        const over = this.#serveCopy(optionsOfCopy(options, layout), url, run, calls, state);
        endWith(over, calls);
        const model = new LiveModel<never>({ ...run, calls, over, events, openCopy, checkCopy });
        return { model, take: (weights) => calls.add("take", { weights }) };
      };
      opened.resolve(new LiveModel<J>({ ...run, calls, over, events, openCopy, checkCopy }));
    };
    const over = this.#begin(name, settings, { jobUrl: url, overrides, live: { calls, onOpen } });
    endWith(over, calls);
    over.catch(opened.reject);
    return opened.promise;
  }

  /**
   * Serves a state of a live model on further ranks until the calls are closed.
   * @param options - of that model, as `run` says more about it
   * @param state - its weights are disposed at the end
   */
  async #serveCopy(
    options: OpenOptions,
    jobUrl: string,
    { config, data, seed }: OpenedRun,
    calls: CallLog,
    state: Promise<FrozenState>,
  ): Promise<RunResult> {
    this.#numCopies += 1;
    const name = `${options.name === undefined ? "" : `${options.name}-`}frozen-${this.#numCopies}`;
    const given = await state;
    const { ServedWeights } = await import("./recovery/served-weights.ts");
    using served = "tensors" in given ? new ServedWeights(given) : undefined;
    const resume = "path" in given ? given.path : undefined;
    const settings = this.#settingsOfCopy({ ...options, name, resume }, { seed });
    const live = { calls, frozen: "path" in given ? given : served, opened: data, onOpen: () => {} };
    return await this.#begin(name, settings, { jobUrl, overrides: config, live });
  }

  #settingsOfCopy(options: OpenOptions, { seed }: Pick<RuntimeOptions, "seed">): Promise<RuntimeSettings> {
    const own = { ...options, name: options.name ?? "frozen", checkpoint: undefined };
    return settingsOfModel(own, { ...this.#options, seed }, this.#settings, this.#lead?.launch);
  }

  async #begin(
    name: string | undefined,
    settings: Promise<RuntimeSettings>,
    order: Order,
  ): Promise<RunResult> {
    // Where the order is refused first, an error of its settings must not end the program.
    settings.catch(() => {});
    // Another may have taken the name meanwhile.
    this.#refuseBusy(name);
    const { Run } = this.#loaded;
    const running = new Running({
      name,
      Run,
      system: this.#system,
      lead: this.#lead,
      emit: (event) => this.#hub.emit(event, name),
    });
    this.#running.set(name ?? "", running);
    if (this.#unheard !== undefined) running.hear(this.#unheard);
    this.#unheard = undefined;
    try {
      return await running.perform(settings, order);
    } finally {
      this.#running.delete(name ?? "");
      await this.#endLaunchIfOver();
      this.#hub.flush();
    }
  }

  /** Lets the launch end with its last model once its script has been evaluated. @param script - settles then */
  async #watchScript(script: Promise<unknown> | undefined): Promise<void> {
    if (script === undefined) return;
    this.#isScriptRunning = true;
    await script.catch(() => {});
    this.#isScriptRunning = false;
    await this.#endLaunchIfOver();
  }

  /** Releases the other hosts once nothing needs them and nothing that does is to come. */
  async #endLaunchIfOver(): Promise<void> {
    if (this.#isScriptRunning || this.#running.size > 0 || this.#own !== undefined) return;
    await this.#lead?.end();
  }

  /**
   * Saves the state after the next granted step, or the present state while the run is paused. Training goes on. Waits for a
   * save that is already under way.
   * @returns once the checkpoint is durable
   * @throws {TroupeError} `OPTION` for a run without a checkpoint folder; `RUN_OVER` if no run is in progress, or it ends
   *   before the checkpoint is durable; the error that the save failed with
   */
  async save(): Promise<SavedState> {
    const [running, run] = await this.#present();
    running.requireFolder();
    return run.control.save();
  }

  /**
   * Grants no further step until {@link resume}. The few steps already granted are finished first; saves still work.
   * @returns the number of steps made so far, once the granted ones are done
   * @throws {TroupeError} `RUN_OVER` if no run is in progress, or it ends before that
   */
  async pause(): Promise<number> {
    const [, run] = await this.#present();
    return run.control.pause();
  }

  /**
   * Grants steps again; does nothing if the run is not paused.
   * @throws {TroupeError} `RUN_OVER` if no run is in progress
   */
  resume(): void {
    const run = this.#first?.run;
    if (run === undefined) throw this.#loaded.Run.missing();
    run.control.resume();
  }

  /** Reports what every actor is doing, read from shared memory, so that it works even while actors are stuck. */
  inspect(): readonly ActorInspection[] {
    const runs = [...this.#running.values()].flatMap(({ run }) => run?.inspect() ?? []);
    return [...(this.#own?.inspect() ?? []), ...runs];
  }

  /**
   * Statistics of the parameters whose names match, and of their gradients, after the next granted step. They cover
   * complete parameters, however these are split, with sums in float64.
   * @param pattern - with shell wildcards, such as `*.c_attn.*`
   * @returns in the order of the model; `formatSummary` prints them as a table
   * @throws {TroupeError} `INSPECTION_OVER` if no further step comes
   */
  async inspectModel(pattern = "*"): Promise<readonly TensorSummary[]> {
    const { parameters } = await this.#inspect("parameters", pattern);
    return parameters.filter(({ name }) => matchesName(name, pattern));
  }

  /**
   * How the next granted step moves the parameters whose names match: statistics of each update divided by the learning
   * rate, and the mean and variance of all together. For AdamW this is the update direction, which BMTrain's `record_delta`
   * records. Empty if the step is skipped.
   * @param pattern - as for {@link inspectModel}
   * @throws {TroupeError} `INSPECTION_OVER` if no further step comes
   */
  async inspectUpdates(pattern = "*"): Promise<UpdateSummary> {
    const { updates } = await this.#inspect("updates", pattern);
    return summarizeUpdates(updates.filter(({ name }) => matchesName(name, pattern)));
  }

  /**
   * Statistics of the tensors that the model's code marks with `recordTensor`, and of the loss's gradients with respect to
   * them, in the next granted step, over all replicas and micro-batches.
   * @param pattern - matches names of the form `<group.>k.name`, where k counts the records of that name along the model
   * @param options - `values`: whether the numbers themselves come too, at most 32 MiB of a rank's
   * @throws {TroupeError} `INSPECTION_OVER` if no further step comes; `OPTION` for more values than that
   */
  async inspectTensors(
    pattern = "*",
    { values = false }: { readonly values?: boolean } = {},
  ): Promise<readonly TensorSummary[]> {
    const { tensors } = await this.#inspect("tensors", pattern, values);
    const matching = tensors.filter(({ name }) => matchesName(name, pattern));
    return matching.map(({ values: numbers, ...summary }) => {
      // Another request for the same step may have asked for more.
      if (!values || numbers === undefined) return summary;
      if (numbers !== "too many") return { ...summary, values: numbers };
      throw optionError(
        "values",
        "at most 32 MiB of a rank's recorded tensors",
        "more",
        "name fewer by a pattern",
      );
    });
  }

  /**
   * Each rank's memory by kind at the end of the next granted step, and its peak: the bytes that tensors asked the allocator for.
   * @throws {TroupeError} `INSPECTION_OVER` if no further step comes
   */
  async inspectMemory(): Promise<readonly HeldMemory[]> {
    return (await this.#inspect("memory", "")).memory;
  }

  /**
   * Ends your own actors, the run in progress, and the events. Without `save` your actors end first, in order, then the run, at
   * once: `run` fails with `RUN_STOPPED`, and what was not saved is lost. With `save` the granted steps are finished and saved,
   * `run` returns, and your actors, which it may need until then, end last.
   * @throws {TroupeError} with `save`: the error that the save failed with, after the events have ended; `OPTION` for a run
   *   without a checkpoint folder, which then goes on
   */
  async stop({ save = false }: { readonly save?: boolean } = {}): Promise<void> {
    const all = [...this.#running.values()];
    await Promise.all(all.map(({ begun }) => begun));
    if (save && this.#first?.run !== undefined) this.#first.requireFolder();
    const saved = all.filter((running) => save && running.isSaved);
    try {
      for (const running of saved) await running.finish();
    } finally {
      await this.#end();
    }
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.stop();
  }

  async #end(): Promise<void> {
    // From here on nothing begins: it would never be stopped.
    this.#stopped = true;
    const own = this.#own?.stop();
    try {
      const first = own?.catch(() => {});
      const all = [...this.#running.values()];
      // One that was begun while others were saved may not have started yet.
      await Promise.all(all.map(({ begun }) => begun));
      const runs = all.flatMap(({ run }) => run ?? []);
      await Promise.all(runs.map((run) => run.stop(first)));
      await own;
    } finally {
      await this.#lead?.end();
      await this.#hub.close();
    }
  }

  async #openDashboard(): Promise<void> {
    const { dashboard } = this.#settings;
    if (dashboard === undefined) return;
    const { Dashboard } = await import("../../job/dashboard/index.ts");
    this.#dashboard = await Dashboard.open(dashboard, { inspect: () => this.inspect() });
    this.#hub.addSink(this.#dashboard);
  }

  /** The run, or the live model without a name; if there is none, the model opened first. */
  get #first(): Running | undefined {
    return this.#running.get("") ?? this.#running.values().next().value;
  }

  /** @throws {TroupeError} `RUN_OVER` if no run is in progress */
  async #present(): Promise<readonly [Running, Run]> {
    const running = this.#first;
    await running?.begun;
    if (running?.run === undefined) throw this.#loaded.Run.missing();
    return [running, running.run];
  }

  async #inspect(of: keyof Findings, pattern: string, values = false): Promise<Findings> {
    const running = this.#first;
    await running?.begun;
    if (running?.run !== undefined) return running.run.inspections.ask(of, pattern, values);
    throw new TroupeError("INSPECTION_OVER", {
      where: "inspect",
      expected: "a run in progress",
      got: "none",
      hint: "ask while `run` is under way",
    });
  }
}

/** Ends the calls of a live model once its run is over. */
function endWith(over: Promise<unknown>, calls: CallLog): void {
  over.then(
    () => calls.end(),
    (error: unknown) => calls.end(error),
  );
}

function notJoined(where: string): TroupeError {
  return new TroupeError("HOST_MISSING", {
    where,
    expected: "all hosts to have joined",
    got: "none so far",
    hint: "await runtime.open(job) before, or the event run.started of a run",
  });
}

function stopped(where: string, code: "RUN_IN_PROGRESS" | "SYSTEM_STOPPED"): TroupeError {
  return new TroupeError(code, {
    where,
    expected: "a runtime that runs",
    got: "one that was stopped",
    hint: "spawn another",
  });
}
