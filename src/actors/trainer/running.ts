import type { RuntimeSettings } from "../../job/options/index.ts";
import type { RunResult } from "../protocols/index.ts";
import { Interruption } from "./interruption.ts";
import { optionError } from "./option-error.ts";
import type { LiveStart, Run, RunOptions } from "./run.ts";

/** Parts that a {@link Running} works with. */
export interface RunningOptions extends Omit<RunOptions, "settings"> {
  readonly Run: typeof Run;
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
  #interruption: Interruption | undefined;
  /** The signal that another host of the launch received first. */
  #hostSignal: NodeJS.Signals | undefined;

  constructor(options: RunningOptions) {
    this.#options = options;
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
    const { name, system, lead, emit } = this.#options;
    // Listens before other hosts can find this one: from then on a signal ends all hosts alike.
    using interruption = settings.supervision.signals
      ? new Interruption((signal) => {
          if (this.#hostSignal === undefined && this.#run !== undefined) this.#interrupt(signal);
        })
      : undefined;
    this.#interruption = interruption;
    await lead?.begin();
    const run = new this.#options.Run({ settings, name, system, lead, emit });
    this.#run = run;
    const early = interruption?.signal ?? this.#hostSignal;
    if (early !== undefined) this.#interrupt(early);
    try {
      const training = run.train(jobUrl, overrides, live);
      this.#begun.resolve();
      const result = await training;
      // A signal during the last step has cut nothing short.
      const signal = result.steps === run.numSteps ? undefined : (interruption?.signal ?? this.#hostSignal);
      run.endedBy(signal, result);
      return signal === undefined ? result : { ...result, interruptedBy: signal };
    } finally {
      await run.end();
    }
  }

  /** Ends it in order, as a signal to this host does: another host of the launch has received one. */
  hear(signal: NodeJS.Signals): void {
    const isFirst = this.#hostSignal === undefined && this.#interruption?.signal === undefined;
    this.#hostSignal ??= signal;
    if (isFirst && this.#run !== undefined) this.#interrupt(signal);
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
