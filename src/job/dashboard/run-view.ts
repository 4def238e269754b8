import { describeEvent, type EventOf, figuresOf, fillIn, type TroupeEvent } from "../events/index.ts";
import type {
  ActorPart,
  CheckpointPart,
  CheckpointsPart,
  Frame,
  Incident,
  RunFacts,
  RunPart,
} from "./frame.ts";
import { HistoryTable } from "./history-table.ts";

/** Weight of the newest step in the smoothed duration of a step, as in the console's progress line. */
const smoothing = 0.05;
const maxActors = 4096;
const maxCheckpoints = 12;
const maxIncidents = 100;

/** Roles of the actors whose end restarts all ranks. */
const rankGroup: readonly string[] = ["feeder", "offload", "writer", "shard", "rank"];

type Parts = Required<Pick<Frame, "run" | "checkpoints" | "incidents" | "sample" | "judged" | "actors">>;

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

const nothing: Parts = {
  run: waiting,
  checkpoints: { numSaved: 0, numFailed: 0, numSkipped: 0, latest: [] },
  incidents: [],
  sample: null,
  judged: null,
  actors: [],
};

/** The events of a run, folded in bounded memory into the parts of a {@link Frame}; knows which of them changed. */
export class RunView {
  readonly #clock: () => number;
  readonly #tables = {
    steps: new HistoryTable([
      { field: "lossNats", of: "max" },
      { field: "lossNats", of: "min" },
      { field: "gradientNorm", of: "max" },
      { field: "samplesPerSecond", of: "min" },
    ]),
    evaluations: new HistoryTable(),
    memory: new HistoryTable(),
    rollouts: new HistoryTable(),
  };
  readonly #changed = new Set<keyof Parts>();
  #parts = nothing;

  /** @param clock - milliseconds since 1970 */
  constructor(clock: () => number) {
    this.#clock = clock;
  }

  /** Adds an event. */
  apply(event: TroupeEvent): void {
    if (event.kind === "run.started") this.#begin(event);
    const { run, incidents, checkpoints, actors } = this.#parts;
    this.#set({
      incidents: withIncident(incidents, event, run.step),
      checkpoints: withCheckpoint(checkpoints, event),
      actors: withActor(actors, event),
    });
    this.#follow(event);
  }

  /** Shows a run that went on as silent: it has not reported its end. */
  fallSilent(heardAtMs: number): void {
    const { state } = this.#parts.run;
    if (state === "running" || state === "restarting")
      this.#advance({ state: "silent", endedAtMs: heardAtMs });
  }

  /** Forgets everything, for a run whose file was replaced. */
  reset(): void {
    this.#parts = nothing;
    for (const table of Object.values(this.#tables)) table.clear();
    for (const part of Object.keys(nothing)) this.#changed.add(part as keyof Parts);
  }

  /** The parts that changed since the last call; undefined if none did. */
  takeChange(): Frame | undefined {
    const tables = Object.entries(this.#tables)
      .map(([name, table]) => [name, table.takeChange()] as const)
      .filter(([, change]) => change !== undefined);
    if (tables.length === 0 && this.#changed.size === 0) return undefined;
    const parts = [...this.#changed].map((part) => [part, this.#parts[part]]);
    this.#changed.clear();
    return { timeMs: this.#clock(), ...Object.fromEntries([...tables, ...parts]) };
  }

  /** Every part. */
  complete(): Frame {
    const { steps, evaluations, memory, rollouts } = this.#tables;
    return {
      timeMs: this.#clock(),
      ...this.#parts,
      steps: steps.complete(),
      evaluations: evaluations.complete(),
      memory: memory.complete(),
      rollouts: rollouts.complete(),
    };
  }

  #follow(event: TroupeEvent): void {
    const { kind, timeMs } = event;
    if (kind === "step.finished") this.#stepped(event);
    else if (kind === "evaluation.finished") this.#evaluated(event);
    else if (kind === "memory.measured") this.#measured(event);
    else if (kind === "rollouts.judged") {
      this.#tables.rollouts.append(rowOf(event));
      this.#set({ judged: { round: event.round, texts: event.texts } });
    } else if (kind === "text.generated") {
      this.#set({ sample: { step: event.step, text: event.text } });
      this.#advance({ progressAtMs: timeMs });
    } else if (kind === "run.restored") {
      // Steps after the state that it goes on from are made again.
      this.#rewind(event.step + 1);
      const numRestarts = this.#parts.run.numRestarts + 1;
      this.#advance({ state: "restarting", step: event.step, numRestarts, progressAtMs: timeMs });
    } else if (kind === "run.finished") {
      this.#advance({ state: "finished", step: event.steps, endedAtMs: timeMs });
    } else if (kind === "run.failed") {
      this.#advance({ state: "failed", endedAtMs: timeMs, error: event.error.message });
    } else if (kind === "actor.failed" && rankGroup.includes(event.role ?? "")) {
      // The loss of any of them restarts all ranks; that of the checkpointer or of a user's actor does not.
      this.#advance({ state: "restarting" });
    }
  }

  /** A run that goes on from a checkpoint keeps the steps up to it, where it is the one that is shown. */
  #begin(event: EventOf<"run.started">): void {
    const goesOn = event.firstStep > 0 && event.job === this.#parts.run.facts?.job;
    if (!goesOn) this.reset();
    this.#rewind(event.firstStep + 1);
    const { lossNats, evaluationLossNats } = goesOn ? this.#parts.run : waiting;
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
    const { step, numSamples, numTokens = 0, lossNats, durationMs, timeMs } = event;
    const { run } = this.#parts;
    this.#tables.steps.append(rowOf(event) as StepRow);
    const mean = Number.isNaN(run.stepMs) ? durationMs : run.stepMs;
    this.#advance({
      state: "running",
      step,
      numSamples: run.numSamples + numSamples,
      numTokens: run.numTokens + numTokens,
      lossNats,
      stepMs: mean + smoothing * (durationMs - mean),
      progressAtMs: timeMs,
    });
  }

  #evaluated(event: EventOf<"evaluation.finished">): void {
    const { step, split, lossNats, timeMs } = event;
    const { evaluations } = this.#tables;
    // Several splits are evaluated after one step: the first has the held-out loss, the others add columns to its row.
    const { last } = evaluations;
    if (last?.step !== step) {
      evaluations.append(rowOf(event));
      this.#advance({ evaluationLossNats: lossNats, progressAtMs: timeMs });
      return;
    }
    const row = { ...last, step };
    for (const [column, value] of Object.entries(rowOf(event))) {
      const [kind, name] = column.split(/\/(.*)/s);
      if (name !== undefined) Object.assign(row, { [`${kind}/${split} ${name}`]: value });
    }
    evaluations.append({ ...row, [`loss/${split}`]: lossNats });
    this.#advance({ progressAtMs: timeMs });
  }

  /** Adds a rank's memory to the row of its step, which is the sum over the ranks. */
  #measured(event: EventOf<"memory.measured">): void {
    const { memory } = this.#tables;
    const { step } = event;
    const before = memory.last?.step === step ? memory.last : {};
    const row = rowOf(event);
    for (const kind of Object.keys(before))
      if (kind !== "step") row[kind] = (row[kind] ?? 0) + (before[kind] ?? 0);
    memory.append(row);
  }

  #rewind(step: number): void {
    // The script reports rollouts once, whatever the ranks repeat.
    const { rollouts: _, ...repeated } = this.#tables;
    for (const table of Object.values(repeated)) table.rewind(step);
  }

  #advance(change: Partial<RunPart>): void {
    this.#set({ run: { ...this.#parts.run, ...change } });
  }

  #set(parts: Partial<Parts>): void {
    for (const part of Object.keys(parts) as (keyof Parts)[])
      if (parts[part] !== this.#parts[part]) this.#changed.add(part);
    this.#parts = { ...this.#parts, ...parts };
  }
}

type StepRow = Readonly<Record<"step" | "lossNats" | "gradientNorm" | "samplesPerSecond", number>>;

/** The figures of an event that the page has over steps, by column. */
function rowOf(
  event: TroupeEvent & { readonly step: number },
): Record<string, number> & { readonly step: number } {
  const row: Record<string, number> & { readonly step: number } = { step: event.step };
  for (const { page, name, read } of figuresOf(event.kind))
    if (page) for (const { value, labels } of read(event)) row[fillIn(name, labels)] = value;
  return row;
}

function factsOf(run: EventOf<"run.started">): RunFacts {
  const { timeMs, schemaVersion, kind, clockMs, jobSettings, ...facts } = run;
  return facts;
}

// Each of these returns the part as an event leaves it: the same object if the event changes nothing.

const actorStates = {
  "actor.started": "started",
  "actor.failed": "failed",
  "actor.stopped": "stopped",
} as const;

function withActor(actors: readonly ActorPart[], event: TroupeEvent): readonly ActorPart[] {
  switch (event.kind) {
    case "actor.started":
    case "actor.failed":
    case "actor.stopped": {
      const { kind, actor, role, incarnation, timeMs } = event;
      const known = actors.findIndex((each) => each.actor === actor);
      const now = { actor, role, incarnation, state: actorStates[kind], sinceMs: timeMs };
      if (known >= 0) return actors.with(known, now);
      return actors.length < maxActors ? [...actors, now] : actors;
    }
    default:
      return actors;
  }
}

function withCheckpoint(checkpoints: CheckpointsPart, event: TroupeEvent): CheckpointsPart {
  const { latest, numSaved, numFailed, numSkipped } = checkpoints;
  const note = (checkpoint: Partial<CheckpointPart>, counts: Partial<CheckpointsPart> = {}) => {
    const { step, timeMs } = event as EventOf<"checkpoint.started">;
    const started =
      event.kind !== "checkpoint.started" &&
      latest.find((one) => one.step === step && one.state === "saving");
    const now = { ...(started || { step, state: "saving" as const, startedAtMs: timeMs }), ...checkpoint };
    // Steps rise, except in a run that was set back, which saves its steps again.
    const others = latest.filter((one) => one.step !== step);
    return { ...checkpoints, ...counts, latest: [...others, now].slice(-maxCheckpoints) };
  };
  switch (event.kind) {
    case "checkpoint.started":
      return note({});
    case "checkpoint.progressed":
      return note({ writtenBytes: event.writtenBytes, totalBytes: event.totalBytes });
    case "checkpoint.saved": {
      const { path, sizeBytes, durationMs } = event;
      const sizes = { writtenBytes: sizeBytes, totalBytes: sizeBytes };
      return note({ state: "saved", path, durationMs, ...sizes }, { numSaved: numSaved + 1 });
    }
    case "checkpoint.failed":
      return note({ state: "failed", reason: event.error.message }, { numFailed: numFailed + 1 });
    case "checkpoint.skipped":
      return note({ state: "skipped", reason: event.reason }, { numSkipped: numSkipped + 1 });
    case "run.failed":
    case "run.finished": {
      // A save that was under way when its run ended is never completed.
      const ended = latest.filter(({ state }) => state !== "saving");
      return ended.length < latest.length ? { ...checkpoints, latest: ended } : checkpoints;
    }
    default:
      return checkpoints;
  }
}

const restarted = /^(\d+) actors? started again$/;

/** @param step - steps done so far */
function withIncident(incidents: readonly Incident[], event: TroupeEvent, step: number): readonly Incident[] {
  const { timeMs } = event;
  const latest = incidents.at(-1);
  const others = incidents.slice(0, -1);
  if (event.kind === "actor.restarted") {
    // A group is started again actor by actor: that is one incident.
    const count = 1 + Number(restarted.exec(latest?.text ?? "")?.[1] ?? 0);
    const text = count === 1 ? "1 actor started again" : `${count} actors started again`;
    const incident: Incident = { timeMs, step, tone: "plain", text, count: 1, restart: false };
    return [...(count === 1 ? incidents : others), incident].slice(-maxIncidents);
  }
  const described = describe(event);
  if (described === undefined) return incidents;
  if (latest?.text === described.text) return [...others, { ...latest, count: latest.count + 1 }];
  const atStep = event.kind === "anomaly.detected" ? event.step : step;
  const restart = event.kind === "run.restored";
  return [...incidents, { timeMs, step: atStep, ...described, count: 1, restart }].slice(-maxIncidents);
}

/** An event in the console's words, unless it has a place of its own on the page. */
function describe(event: TroupeEvent): Pick<Incident, "text" | "tone"> | undefined {
  switch (event.kind) {
    case "step.finished":
      return event.skipped
        ? { text: "update skipped: the gradient was not finite", tone: "plain" }
        : undefined;
    case "checkpoint.saved":
    case "evaluation.finished":
    case "run.finished":
    case "run.started":
    case "rollouts.judged":
    case "text.generated":
      return undefined;
    default:
      return describeEvent(event, { consequences: true });
  }
}
