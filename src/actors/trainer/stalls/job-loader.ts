import { basename } from "node:path";
import { TroupeError } from "../../../errors/index.ts";
import type { ActorRef, ActorSystem } from "../../../runtime/index.ts";
import { keepModules, type ModuleTexts } from "../../../runtime/module-texts.ts";
import { actorModules } from "../../index.ts";
import type { BegunData, DataOrder, FeederInit, FeederProtocol } from "../../protocols/index.ts";
import type { RunData } from "../plan/run-data.ts";

/** The actor that loads a job and opens its data first, named so that the run's feeder is no second generation of it. */
export const JOB_LOADER = "job-loader";

/** A job's module may import anything; if loading takes longer than this, it is taken to wait for something that never comes. */
const LONGEST_LOAD_MS = 60_000;

/** A file system may take hours to read a dataset's files. */
const FINGERPRINT_DEADLINE_MS = 86_400_000;

/** The job to load, and how. */
export interface JobLoaderOptions {
  readonly system: ActorSystem;
  /** Begins the names of its model's actors. */
  readonly prefix: string;
  readonly jobUrl: string;
  /** The job's name for people. */
  readonly name: string;
  /** How long the data may take to open. */
  readonly deadlineMs: number;
}

/**
 * Loads a job, opens its data and calls its functions in a thread of its own, before anything else is started: there a
 * function that never returns can be named and ended.
 */
export class JobLoader {
  readonly #options: JobLoaderOptions;
  readonly #actor: ActorRef<FeederProtocol>;

  /** Starts the thread and loads the job. @throws {TroupeError} `JOB_INVALID` for a module that fails, or never ends, to load */
  static async start(options: JobLoaderOptions): Promise<JobLoader> {
    const { system, prefix, jobUrl, name } = options;
    const startDeadlineMs = Math.min(LONGEST_LOAD_MS, options.deadlineMs);
    const loading = system.spawn<FeederProtocol, FeederInit>({
      name: prefix + JOB_LOADER,
      module: actorModules.feeder,
      startDeadlineMs,
      init: { jobUrl },
    });
    try {
      const actor = await loading;
      await keepModulesOf(actor);
      return new JobLoader(options, actor);
    } catch (cause) {
      throw unended(name, cause, startDeadlineMs) ?? cause;
    }
  }

  private constructor(options: JobLoaderOptions, actor: ActorRef<FeederProtocol>) {
    this.#options = options;
    this.#actor = actor;
  }

  /**
   * Opens the data, for the facts that a model needs. The thread stays until a slow fingerprint is known.
   * @throws errors of the job's `data`; {TroupeError} `DATA_PENDING` where it returns a promise that does not settle
   */
  async open(data: DataOrder): Promise<RunData> {
    const { system, deadlineMs } = this.#options;
    const actor = this.#actor;
    let isStaying = false;
    let isOpen = false;
    try {
      const opening = actor.ask("open", { data }, { deadlineMs });
      const opened = await opening.catch((error: unknown) => {
        throw pending(error, deadlineMs);
      });
      await this.#dryRun();
      isOpen = true;
      // Adds the modules that the data has imported.
      const modules = await keepModulesOf(actor);
      isStaying = opened.fingerprint === "later";
      const { facts, splits, files } = opened;
      let begun: BegunData = { facts, splits, files, isSlow: isStaying };
      if (opened.fingerprint !== "later") {
        begun = { ...begun, fingerprint: opened.fingerprint };
        return { opened, fingerprint: Promise.resolve(opened.fingerprint), begun: () => begun, modules };
      }
      const fingerprint = actor
        .ask("fingerprint", {}, { deadlineMs: FINGERPRINT_DEADLINE_MS })
        .then((known) => {
          begun = { ...begun, ...known };
          return known.fingerprint;
        })
        // A system that is stopping ends it anyway.
        .finally(() => void system.stopActor(actor).catch(() => {}));
      // Rejection is delivered to waiters; avoid an unhandled rejection here.
      fingerprint.catch(() => {});
      return { opened, fingerprint, begun: () => begun, modules };
    } finally {
      // A thread that cannot open the data may not stop either.
      if (!isStaying) await system.stopActor(actor, isOpen ? {} : { deadlineMs: 1_000 });
    }
  }

  /** Calls the job's functions here first: the main thread calls them next, where one that does not return could not be ended. */
  async #dryRun(): Promise<void> {
    const { system, prefix, deadlineMs } = this.#options;
    try {
      await this.#actor.ask("dryRun", {}, { deadlineMs });
    } catch (error) {
      if (!(error instanceof TroupeError) || error.code !== "ASK_TIMEOUT") throw error;
      const { call } = system.inspect().find(({ actor }) => actor === prefix + JOB_LOADER) ?? {};
      const stalled = new TroupeError("ACTOR_STALLED", {
        where: "job",
        expected: `${call?.what ?? "its functions"} to return within ${deadlineMs / 1000} s`,
        got: "no end of it",
        hint: "look for a loop without end; more time: --deadline",
      });
      const place = await system.stackOf(this.#actor);
      if (place !== undefined) stalled.stack = `${stalled.name}: ${stalled.message}\n${place}`;
      throw stalled;
    }
  }
}

/** Keeps the texts of the modules that this thread has loaded; all other threads, the caller's too, load the same. */
async function keepModulesOf(actor: ActorRef<FeederProtocol>): Promise<ModuleTexts> {
  const modules = await actor.ask("modules", {}, { deadlineMs: LONGEST_LOAD_MS });
  keepModules(modules);
  return modules;
}

/** The error for a module that does not finish loading, or whose thread has ended because nothing could settle its await. */
function unended(name: string, cause: unknown, deadlineMs: number): TroupeError | undefined {
  if (!(cause instanceof TroupeError)) return undefined;
  const isLate = cause.code === "ACTOR_START_TIMEOUT";
  if (!isLate && !LEFT.test(cause.message)) return undefined;
  const got = isLate ? "no end of it" : "an await at its top level that nothing settles";
  return new TroupeError("JOB_INVALID", {
    where: "job",
    expected: `${basename(name)} to be loaded within ${deadlineMs / 1000} s`,
    got,
    hint: "look for an await at the top level of it, or of what it imports, and for a loop without end",
  });
}

const LEFT = /its thread (left without being asked to stop|ended with exit code 13)/;

function pending(error: unknown, deadlineMs: number): unknown {
  if (!(error instanceof TroupeError) || error.code !== "ASK_TIMEOUT") return error;
  return new TroupeError("DATA_PENDING", {
    where: "data",
    expected: `the job's data(…) to be open within ${deadlineMs / 1000} s`,
    got: "a promise that is not settled, or a loop without end",
    hint: "more time: --deadline",
  });
}
