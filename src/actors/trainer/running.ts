import type { TroupeEventBody } from "../../job/events/index.ts";
import type { HostsOptions, RuntimeSettings } from "../../job/options/index.ts";
import type { Head } from "../launch/index.ts";
import type { RunResult } from "../protocols/index.ts";
import { Interruption } from "./interruption.ts";
import { optionError } from "./option-error.ts";
import type { LiveStart, Run } from "./run.ts";
import type { SharedSystem } from "./shared-system.ts";

/** Parts that a {@link Running} works with. */
export interface RunningOptions {
  /** Name of the live model, if it has one. */
  readonly name: string | undefined;
  readonly Run: typeof Run;
  readonly system: SharedSystem;
  /** The launch on several hosts that it is a part of, if any. */
  readonly launch: SharedLaunch | undefined;
  readonly emit: (event: TroupeEventBody) => void;
}

/** A launch on several hosts, as the runs of a runtime share it. */
export interface SharedLaunch {
  /** Settings that all hosts must share. */
  readonly about: string;
  /** Whether the other hosts join this run: they have not yet. */
  readonly isFirst: boolean;
  /** The head, which the first run opens; it is there until none of them is left. */
  head(trust: HostsOptions): Promise<Head>;
}

/** A job to run, with values for its settings. */
export interface Order {
  readonly jobUrl: string;
  readonly overrides: Readonly<Record<string, unknown>>;
  readonly live?: LiveStart;
}

/** A run or a live model of a runtime, from the request for it to its end, with the signals that end it. */
export class Running {
  readonly #options: RunningOptions;
  readonly #begun = Promise.withResolvers<void>();
  readonly #over = Promise.withResolvers<void>();
  #settings: RuntimeSettings | undefined;
  #run: Run | undefined;

  constructor(options: RunningOptions) {
    this.#options = options;
  }

  get name(): string | undefined {
    return this.#options.name;
  }

  /** Undefined before it has begun, and once it is over. */
  get run(): Run | undefined {
    return this.#run;
  }

  /** Settles once it has started or failed to: requests made before wait for it. */
  get begun(): Promise<void> {
    return this.#begun.promise;
  }

  /** Makes the run. Call it once. @throws errors of `Run.train`, and of the settings */
  async perform(settling: Promise<RuntimeSettings>, order: Order): Promise<RunResult> {
    try {
      return await this.#perform(await settling, order);
    } finally {
      this.#run = undefined;
      this.#begun.resolve();
      this.#over.resolve();
    }
  }

  async #perform(settings: RuntimeSettings, { jobUrl, overrides, live }: Order): Promise<RunResult> {
    this.#settings = settings;
    const { name, system, launch, emit } = this.#options;
    let hostSignal: NodeJS.Signals | undefined;
    // Listens before other hosts can find this one: from then on a signal ends all hosts alike.
    using interruption = settings.supervision.signals
      ? new Interruption((signal) => {
          if (hostSignal === undefined && this.#run !== undefined) this.#interrupt(signal);
        })
      : undefined;
    const head = await launch?.head(settings.supervision.hosts);
    const run = new this.#options.Run({
      settings,
      name,
      system,
      head,
      isFirst: launch?.isFirst === true,
      about: launch?.about ?? "",
      emit,
      onSignal: (signal) => {
        if (hostSignal === undefined && interruption?.signal === undefined) this.#interrupt(signal);
        hostSignal ??= signal;
      },
    });
    this.#run = run;
    if (interruption?.signal !== undefined) this.#interrupt(interruption.signal);
    try {
      const training = run.train(jobUrl, overrides, live);
      this.#begun.resolve();
      const result = await training;
      // A signal during the last step has cut nothing short.
      const signal = result.steps === run.numSteps ? undefined : (interruption?.signal ?? hostSignal);
      run.endedBy(signal, result);
      return signal === undefined ? result : { ...result, interruptedBy: signal };
    } finally {
      await run.end();
    }
  }

  /** Saves the state after the granted steps, and ends it in order. @throws the error that the save failed with */
  async finish(): Promise<void> {
    const { control } = this.#run ?? {};
    if (control === undefined) return;
    const saved = control.save();
    control.stop();
    try {
      await saved;
    } finally {
      await this.#over.promise;
    }
  }

  /** Whether its states are saved to a folder. */
  get isSaved(): boolean {
    return this.#settings?.checkpoint?.dir !== undefined;
  }

  /** @throws {TroupeError} `OPTION` without a checkpoint folder */
  requireFolder(): void {
    if (!this.isSaved)
      throw optionError("checkpoint.dir", "a folder to save to", "none", "give it to Runtime.spawn");
  }

  /** Lets it save and end; stops it at once if that takes longer than the grace period, or it has no checkpoint folder. */
  #interrupt(signal: NodeJS.Signals): void {
    const graceMs = (this.#settings as RuntimeSettings).supervision.graceSeconds * 1000;
    this.#options.emit({ kind: "run.interrupted", signal, graceMs });
    const isOver = this.#run?.interrupt(signal) === true;
    // The run itself reports the error of either.
    const giveUp = () => void this.#run?.stop().catch(() => {});
    if (!this.isSaved) {
      if (!isOver) giveUp();
      return;
    }
    const grace = setTimeout(giveUp, graceMs);
    void this.finish()
      .catch(() => {})
      .finally(() => clearTimeout(grace));
  }
}
