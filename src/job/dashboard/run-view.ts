import type { EventOf, TroupeEvent } from "../events/index.ts";
import { ActorRoll } from "./actor-roll.ts";
import { CheckpointLog } from "./checkpoint-log.ts";
import type { Frame, RunFacts, RunPart } from "./frame.ts";
import { HistoryTable } from "./history-table.ts";
import { IncidentLog } from "./incident-log.ts";
import { MemoryHistory } from "./memory-history.ts";

/** Weight of the newest step in the smoothed duration of a step, as in the console's progress line. */
const smoothing = 0.05;

const waiting: RunPart = {
  state: "waiting",
  step: 0,
  numSamples: 0,
  numTokens: 0,
  lossNats: Number.NaN,
  evaluationLossNats: Number.NaN,
  stepMs: Number.NaN,
  startedAtMs: Number.NaN,
  progressAtMs: Number.NaN,
  numRestarts: 0,
};

type Part = Exclude<keyof Frame, "timeMs">;

/** What the events of a run amount to, in bounded memory: the parts of a {@link Frame}, and which of them changed. */
export class RunView {
  readonly #clock: () => number;
  readonly #steps = new HistoryTable([
    { field: "lossNats", of: "max" },
    { field: "lossNats", of: "min" },
    { field: "gradientNorm", of: "max" },
    { field: "samplesPerSecond", of: "min" },
  ]);
  readonly #evaluations = new HistoryTable();
  readonly #memory = new MemoryHistory();
  readonly #checkpoints = new CheckpointLog();
  readonly #incidents = new IncidentLog();
  readonly #actors = new ActorRoll();
  readonly #changed = new Set<Part>();
  #run: RunPart = waiting;
  #sample: { readonly step: number; readonly text: string } | null = null;

  /** @param clock - milliseconds since 1970 */
  constructor(clock: () => number) {
    this.#clock = clock;
  }

  /** Takes up what happened. */
  apply(event: TroupeEvent): void {
    if (event.kind === "run.started") this.#begin(event);
    if (this.#incidents.take(event, this.#run.step)) this.#changed.add("incidents");
    if (this.#checkpoints.take(event)) this.#changed.add("checkpoints");
    if (this.#actors.take(event)) this.#changed.add("actors");
    this.#follow(event);
  }

  /** The run goes on no more, and has not told its end. */
  fallSilent(heardAtMs: number): void {
    if (this.#run.state === "running" || this.#run.state === "restarting")
      this.#advance({ state: "silent", endedAtMs: heardAtMs });
  }

  /** Forgets everything, for a run whose file was replaced. */
  reset(): void {
    this.#run = waiting;
    this.#sample = null;
    for (const history of [this.#steps, this.#evaluations, this.#memory]) history.clear();
    for (const log of [this.#checkpoints, this.#incidents, this.#actors]) log.clear();
    for (const part of ["run", "sample", "checkpoints", "incidents", "actors"] as const)
      this.#changed.add(part);
  }

  takeChange(): Frame | undefined {
    const tables = {
      steps: this.#steps.takeChange(),
      evaluations: this.#evaluations.takeChange(),
      memory: this.#memory.takeChange(),
    };
    const changed = Object.entries(tables).filter(([, change]) => change !== undefined);
    if (changed.length === 0 && this.#changed.size === 0) return undefined;
    const parts = Object.entries(this.#parts()).filter(([part]) => this.#changed.has(part as Part));
    this.#changed.clear();
    return { timeMs: this.#clock(), ...Object.fromEntries([...changed, ...parts]) };
  }

  whole(): Frame {
    return {
      timeMs: this.#clock(),
      ...this.#parts(),
      steps: this.#steps.whole(),
      evaluations: this.#evaluations.whole(),
      memory: this.#memory.whole(),
    };
  }

  #follow(event: TroupeEvent): void {
    const { kind, timeMs } = event;
    if (kind === "step.finished") this.#stepped(event);
    else if (kind === "evaluation.finished") this.#evaluated(event);
    else if (kind === "memory.measured") this.#memory.measured(event);
    else if (kind === "text.generated") this.#wrote(event);
    else if (kind === "run.restored") this.#restored(event);
    else if (kind === "run.finished") {
      this.#advance({ state: "finished", step: event.steps, endedAtMs: timeMs });
    } else if (kind === "run.failed") {
      this.#advance({ state: "failed", endedAtMs: timeMs, error: event.error.message });
    } else if (kind === "actor.failed" && isOfTheGroup(event.actor)) this.#advance({ state: "restarting" });
  }

  #parts() {
    return {
      run: this.#run,
      checkpoints: this.#checkpoints.part(),
      incidents: this.#incidents.part(),
      sample: this.#sample,
      actors: this.#actors.part(),
    } satisfies Partial<Record<Part, unknown>>;
  }

  /** A run that goes on from a checkpoint keeps the steps up to it, where it is the one that is shown. */
  #begin(event: EventOf<"run.started">): void {
    const goesOn = event.firstStep > 0 && event.job === this.#run.facts?.job;
    if (!goesOn) this.reset();
    this.#rewind(event.firstStep + 1);
    const { lossNats, evaluationLossNats } = goesOn ? this.#run : waiting;
    this.#advance({
      ...waiting,
      state: "running",
      facts: factsOf(event),
      step: event.firstStep,
      lossNats,
      evaluationLossNats,
      startedAtMs: event.timeMs,
      progressAtMs: event.timeMs,
      endedAtMs: undefined,
      error: undefined,
    });
  }

  #stepped(event: EventOf<"step.finished">): void {
    const { step, numSamples, numTokens = 0, durationMs, timeMs } = event;
    this.#steps.append({
      step,
      lossNats: event.lossNats,
      learningRate: event.learningRate,
      gradientNorm: event.gradientNorm,
      samplesPerSecond: event.samplesPerSecond,
      ...(event.tokensPerSecond === undefined ? {} : { tokensPerSecond: event.tokensPerSecond }),
      durationMs,
      overlap: event.overlap,
      exposedMs: event.exposedMs,
      dataMs: event.dataMs,
      residentBytes: event.residentBytes,
      ...columnsOf(event),
    });
    const mean = Number.isNaN(this.#run.stepMs) ? durationMs : this.#run.stepMs;
    this.#advance({
      state: "running",
      step,
      numSamples: this.#run.numSamples + numSamples,
      numTokens: this.#run.numTokens + numTokens,
      lossNats: event.lossNats,
      stepMs: mean + smoothing * (durationMs - mean),
      progressAtMs: timeMs,
    });
  }

  #evaluated(event: EventOf<"evaluation.finished">): void {
    const { step, split, lossNats, timeMs } = event;
    // Several parts of the data are evaluated after one step: the first is the held-out loss, and all stand in its row.
    const { last } = this.#evaluations;
    if (last?.step !== step) {
      this.#evaluations.append({ step, lossNats, ...columnsOf(event) });
      this.#advance({ evaluationLossNats: lossNats, progressAtMs: timeMs });
      return;
    }
    const others = columnsOf({
      losses: { [split]: lossNats, ...under(split, event.losses) },
      metrics: under(split, event.metrics),
    });
    this.#evaluations.append({ ...last, step, lossNats: last.lossNats ?? lossNats, ...others });
    this.#advance({ progressAtMs: timeMs });
  }

  #wrote({ step, text, timeMs }: EventOf<"text.generated">): void {
    this.#sample = { step, text };
    this.#changed.add("sample");
    this.#advance({ progressAtMs: timeMs });
  }

  /** Steps after the state that it goes on from are made again. */
  #restored({ step, timeMs }: EventOf<"run.restored">): void {
    this.#rewind(step + 1);
    const numRestarts = this.#run.numRestarts + 1;
    this.#advance({ state: "restarting", step, numRestarts, progressAtMs: timeMs });
  }

  #rewind(step: number): void {
    for (const history of [this.#steps, this.#evaluations, this.#memory]) history.rewind(step);
  }

  #advance(change: Partial<RunPart>): void {
    this.#run = { ...this.#run, ...change };
    this.#changed.add("run");
  }
}

/** What has a name of the job's or the dataset's own, each in a column. */
function columnsOf({
  losses = {},
  metrics = {},
}: Pick<EventOf<"step.finished">, "losses" | "metrics">): Readonly<Record<string, number>> {
  const column = (kind: string, values: Readonly<Record<string, number>>) =>
    Object.entries(values).map(([name, value]) => [`${kind}/${name}`, value] as const);
  return Object.fromEntries([...column("loss", losses), ...column("metric", metrics)]);
}

/** Figures by their names in one part of the data: "test accuracy". */
function under(
  split: string,
  values: Readonly<Record<string, number>> = {},
): Readonly<Record<string, number>> {
  return Object.fromEntries(Object.entries(values).map(([name, value]) => [`${split} ${name}`, value]));
}

function factsOf(run: EventOf<"run.started">): RunFacts {
  const { timeMs, schemaVersion, kind, clockMs, jobSettings, ...facts } = run;
  return facts;
}

/** Whether an actor's loss means that all ranks are started again. */
function isOfTheGroup(actor: string): boolean {
  return actor !== "checkpointer";
}
