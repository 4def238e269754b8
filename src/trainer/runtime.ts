import { relative } from "node:path";
import { fileURLToPath } from "node:url";
import type { Observable } from "rxjs";
import { actorModules, loadJob, type RunResult, recipientName } from "../actors/index.ts";
import { TroupeError } from "../errors.ts";
import { EventHub, type EventSink, reportError, type TroupeEvent } from "../events/index.ts";
import { type ActorInspection, ActorSystem } from "../runtime/index.ts";
import { releaseRefsOf } from "../tensor/index.ts";
import { openData, SupervisedRanks, superviseCheckpointer } from "./cast.ts";
import { configure } from "./configure.ts";
import { explainHang } from "./explain-hang.ts";
import { leadThroughRestarts } from "./lead.ts";
import { MeetingPlace } from "./meeting-place.ts";
import { type RuntimeOptions, type RuntimeSettings, settle } from "./options.ts";
import { planBatch, planRun, rehearse } from "./plan-run.ts";
import { retell } from "./retell.ts";
import { startFromCheckpoint, startFromSeed, startFromWeights } from "./start.ts";

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
  #system: ActorSystem | undefined;
  #running = false;
  #ending = false;
  #rankEnded: (actor: string) => void = () => {};

  private constructor(options: RuntimeOptions) {
    this.#options = options;
    this.#settings = settle(options);
  }

  /**
   * Checks the options. Threads are started by {@link run}, once the job is known to be sound.
   * @throws {TroupeError} `OPTION`, `ZERO_LEVEL`
   */
  static async spawn(options: RuntimeOptions = {}): Promise<Runtime> {
    return new Runtime(options);
  }

  /** What happens, as it happens. A subscriber that is slow or throws never slows or stops training. */
  get events$(): Observable<TroupeEvent> {
    return this.#hub.events$;
  }

  /** The same events for `for await`. */
  events(): AsyncIterable<TroupeEvent> {
    return this.#hub.events();
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
      await this.#system?.stop({ drain: false });
      this.#system = undefined;
      this.#running = false;
    }
  }

  /** What every actor is doing, read from shared memory: it answers also while they are stuck. */
  inspect(): readonly ActorInspection[] {
    return this.#system?.inspect() ?? [];
  }

  /** Ends the events. A run in progress fails. */
  async stop(): Promise<void> {
    await this.#system?.stop({ drain: false });
    await this.#hub.close();
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.stop();
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
    const checkpointer = checkpoint && (await superviseCheckpointer(system, checkpoint.directory));
    this.#hub.emit({
      kind: "run.started",
      job: nameOf(jobUrl),
      steps: plan.score.steps,
      firstStep: start.initial.step,
      numRanks: settings.numRanks,
      zero: settings.zero,
      placement: settings.placement,
      precision: settings.precision.name,
      seed: start.seed,
      numParameters: model.numParameters,
    });
    const ranks = await SupervisedRanks.start(system, settings, feeder, settings.maxRestarts);
    this.#rankEnded = (actor) => place.ended(actor, ranks.life);
    return await leadThroughRestarts(ranks, { plan, checkpointer, emit: (event) => this.#hub.emit(event) });
  }

  #startSystem(): ActorSystem {
    this.#system = new ActorSystem({
      name: "troupe",
      preload: actorModules.preload,
      onEvent: (event) => {
        if (event.kind === "actor.failed" || event.kind === "actor.stopped") {
          releaseRefsOf(recipientName(event.actor, event.incarnation));
          if (event.actor.startsWith("rank-")) this.#rankEnded(event.actor);
        }
        // What is under way when a run ends goes nowhere, and is no news.
        if (this.#ending && event.kind === "message.undelivered") return;
        const told = retell(event);
        if (told !== undefined) this.#hub.emit(told);
      },
    });
    return this.#system;
  }
}

/** A job as a person would name it: its path from where they stand, where it is a file. */
function nameOf(jobUrl: string): string {
  return jobUrl.startsWith("file:") ? relative(process.cwd(), fileURLToPath(jobUrl)) : jobUrl;
}
