import type { EventKind, EventOf, TroupeEvent } from "./event.ts";

/** The port at which Prometheus finds the figures by default: that of OpenTelemetry's exporters. */
export const METRICS_PORT = 9464;

/** Unit of a figure's value as events have it. Outputs may convert it: Prometheus has seconds for milliseconds. */
export type Unit = "" | "nats" | "ms" | "bytes" | "samples/s" | "tokens/s" | "share";

/** Names and values that tell the series of one figure apart. */
export type Labels = Readonly<Record<string, string | number>>;

/** A value of a figure. */
export interface Reading {
  readonly value: number;
  readonly labels: Labels;
}

/** A figure of a run: which events have it, and its name in each output. In names, `{label}` stands for a label's value. */
export interface Figure {
  /** The event's field, unless the figure has a `read`; the column of the dashboard's tables. */
  readonly name: string;
  readonly unit: Unit;
  /** A value that rises and falls, a count that only rises, or a constant 1 whose labels hold facts. */
  readonly kind: "gauge" | "counter" | "info";
  readonly events: readonly EventKind[];
  readonly read: (event: TroupeEvent) => readonly Reading[];
  /** TensorBoard's tag is `group/name`, OpenTelemetry's metric `troupe.group.name`. A label `rank` goes between the two. */
  readonly curve?: { readonly group: string; readonly name: string };
  /** Prometheus' metric; rows of one metric have different events or labels, and the first has the help. */
  readonly metric?: string;
  readonly help?: string;
  /** Whether the dashboard has it over steps. */
  readonly page?: boolean;
  /** Label on the console's progress line; empty for none. */
  readonly line?: string;
  /** Whether NaN means "not measured", which is no point of a curve. */
  readonly hasGaps?: boolean;
}

const noLabels: Labels = {};

interface Row<Kind extends EventKind> extends Omit<Figure, "unit" | "kind" | "events" | "read" | "curve"> {
  readonly unit?: Unit;
  readonly kind?: Figure["kind"];
  readonly labels?: Labels;
  /** As `group/name`. */
  readonly curve?: string;
  readonly read?: (event: EventOf<Kind>) => readonly Reading[];
}

type Named = Readonly<Record<string, number>> | undefined;

// biome-ignore format: a table, with a row on each line
const figures: readonly Figure[] = [
  ...of(["run.started", "run.finished", "run.failed"],
    { name: "up", metric: "troupe_up", help: "1 while a run is under way.", read: ({ kind }) => one({}, kind === "run.started" ? 1 : 0) }),
  ...of(["run.started"],
    { name: "run", kind: "info", metric: "troupe_run_info", help: "How the run is spread; always 1.",
      read: ({ job, precision, zero, placement, numRanks }) => one({ job, precision, zero, placement, ranks: numRanks }) },
    { name: "steps", metric: "troupe_run_steps", help: "Optimizer steps there will be in all." },
    { name: "numParameters", metric: "troupe_parameters", help: "Parameters of the model." },
    { name: "numTrainable", metric: "troupe_trainable_parameters", help: "Parameters that training changes." }),
  ...of(["step.finished"],
    { name: "step", metric: "troupe_step", help: "Steps done so far." },
    { name: "steps", kind: "counter", metric: "troupe_steps_total", help: "Steps made, those after a restart again.", read: () => one() },
    { name: "skipped", kind: "counter", metric: "troupe_steps_skipped_total", help: "Steps whose gradient was not finite.",
      read: ({ skipped }) => (skipped ? one() : []) },
    { name: "numSamples", kind: "counter", metric: "troupe_samples_total", help: "Samples trained on." },
    { name: "numTokens", kind: "counter", metric: "troupe_tokens_total", help: "Tokens trained on." },
    { name: "lossNats", unit: "nats", curve: "loss/train", metric: "troupe_loss_nats", page: true, line: "loss",
      help: "Training loss of the latest step." }),
  ...of(["evaluation.finished"],
    { name: "lossNats", unit: "nats", curve: "loss/{split}", metric: "troupe_evaluation_loss_nats", page: true,
      help: "Loss on held-out data.", read: ({ split, lossNats }) => one({ split }, lossNats) }),
  ...of(["step.finished", "evaluation.finished"],
    { name: "loss/{name}", unit: "nats", curve: "loss_{split}/{name}", metric: "troupe_named_loss_nats", page: true, line: "",
      help: "Each of a job's named losses, of the latest step or evaluation.", read: (event) => named(event, event.losses) },
    { name: "metric/{name}", curve: "metrics_{split}/{name}", metric: "troupe_metric", page: true, line: "",
      help: "What a training loop or a dataset's scores measured, by name.", read: (event) => named(event, event.metrics) }),
  ...of(["step.finished"],
    { name: "learningRate", curve: "optimizer/learning_rate", metric: "troupe_learning_rate", page: true,
      help: "Learning rate of the latest step." },
    { name: "gradientNorm", curve: "optimizer/gradient_norm", metric: "troupe_gradient_norm", page: true, hasGaps: true,
      help: "L2 norm of the gradient before clipping; NaN where it was not measured." },
    { name: "lossScale", curve: "optimizer/loss_scale", metric: "troupe_loss_scale", help: "What the loss is multiplied by before backward." },
    { name: "tokensPerSecond", unit: "tokens/s", curve: "speed/tokens_per_second", metric: "troupe_tokens_per_second", page: true, line: "",
      help: "Tokens of the latest step by its duration." },
    { name: "samplesPerSecond", unit: "samples/s", curve: "speed/samples_per_second", metric: "troupe_samples_per_second", page: true, line: "",
      help: "Samples of the latest step by its duration." },
    { name: "overlap", unit: "share", curve: "speed/overlap", metric: "troupe_overlap_ratio", page: true, line: "overlap",
      help: "Share of all communication that computation hid." },
    { name: "durationMs", unit: "ms", curve: "time_ms/step", metric: "troupe_step_seconds", page: true, help: "Duration of the latest step." },
    { name: "exposedMs", unit: "ms", curve: "time_ms/exposed", metric: "troupe_step_part_seconds", labels: { part: "exposed" }, page: true,
      help: "What of it was communication, exposed and in all, update and data; a mean over the ranks." },
    { name: "gatherMs", unit: "ms", curve: "time_ms/gather", metric: "troupe_step_part_seconds", labels: { part: "gather" } },
    { name: "reduceMs", unit: "ms", curve: "time_ms/reduce", metric: "troupe_step_part_seconds", labels: { part: "reduce" } },
    { name: "updateMs", unit: "ms", curve: "time_ms/update", metric: "troupe_step_part_seconds", labels: { part: "update" } },
    { name: "dataMs", unit: "ms", curve: "time_ms/data", metric: "troupe_step_part_seconds", labels: { part: "data" }, page: true },
    { name: "residentBytes", unit: "bytes", curve: "memory/resident_bytes", metric: "troupe_resident_bytes", page: true, line: "",
      help: "Memory of all processes of the run." }),
  ...of(["memory.measured"],
    { name: "{kind}", unit: "bytes", curve: "memory/{kind}_bytes", metric: "troupe_memory_bytes", page: true,
      help: "What a rank holds, by kind.", read: (event) => memory(event, "liveBytes") },
    { name: "{kind}Peak", unit: "bytes", metric: "troupe_memory_peak_bytes", help: "The most it has held.",
      read: (event) => memory(event, "peakBytes") }),
  ...of(["rollouts.judged"],
    { name: "meanReward", curve: "rollouts/reward", metric: "troupe_rollout_reward", page: true, help: "Mean reward of the latest rollouts." },
    { name: "meanTokens", curve: "rollouts/tokens", metric: "troupe_rollout_tokens", page: true, help: "Mean tokens of their texts." },
    { name: "klNats", unit: "nats", curve: "rollouts/kl", metric: "troupe_rollout_kl_nats", page: true, help: "Their divergence from the reference." },
    { name: "staleness", curve: "rollouts/staleness", metric: "troupe_rollout_staleness", page: true,
      help: "Rounds that have changed the parameters since they were written." }),
  ...of(["checkpoint.saved"],
    { name: "step", metric: "troupe_checkpoint_step", help: "Step of the latest checkpoint that was saved." },
    { name: "sizeBytes", unit: "bytes", curve: "checkpoint/size_bytes", metric: "troupe_checkpoint_bytes", help: "Its size." },
    { name: "durationMs", unit: "ms", curve: "checkpoint/duration_ms", metric: "troupe_checkpoint_seconds", help: "How long saving it took." },
    { name: "blockedMs", unit: "ms", curve: "checkpoint/blocked_ms" }),
  ...of(["checkpoint.saved", "checkpoint.failed", "checkpoint.skipped"],
    { name: "checkpoints", kind: "counter", metric: "troupe_checkpoints_total", help: "Checkpoints that were due.",
      read: ({ kind }) => one({ outcome: kind.slice("checkpoint.".length) }) }),
  ...of(["actor.failed", "actor.restarted", "actor.stalled"],
    { name: "faults", kind: "counter", metric: "troupe_actor_faults_total", help: "Actors that failed, stalled or were started again.",
      read: ({ actor, kind }) => one({ actor, fault: kind.slice("actor.".length) }) }),
  ...of(["anomaly.detected"],
    { name: "anomalies", kind: "counter", metric: "troupe_anomalies_total", help: "Anomalies that were detected.",
      read: ({ anomaly, action }) => one({ anomaly, action }) }),
  ...of(["message.undelivered"],
    { name: "count", kind: "counter", metric: "troupe_messages_undelivered_total", help: "Messages that reached nobody.",
      read: ({ reason, count }) => one({ reason }, count) }),
  ...of(["events.dropped"],
    { name: "numDropped", kind: "counter", metric: "troupe_events_dropped_total", help: "Events that were lost because a reader was slow." }),
];

const byEvent = new Map<EventKind, readonly Figure[]>();
for (const kind of new Set(figures.flatMap(({ events }) => events)))
  byEvent.set(
    kind,
    figures.filter(({ events }) => events.includes(kind)),
  );
const none: readonly Figure[] = [];

/** @returns the figures that events of a kind have, in the table's order; all figures if no kind is given */
export function figuresOf(kind?: EventKind): readonly Figure[] {
  return kind === undefined ? figures : (byEvent.get(kind) ?? none);
}

/** Names cut at their braces: every second part is a label. */
const cut = new Map<string, readonly string[]>();

/** @returns a name of a figure, with a label's value for each `{label}` */
export function fillIn(name: string, labels: Labels): string {
  const parts = cut.get(name) ?? name.split(/[{}]/);
  cut.set(name, parts);
  let filled = parts[0] as string;
  for (let at = 1; at < parts.length; at += 2) filled += `${labels[parts[at] as string]}${parts[at + 1]}`;
  return filled;
}

/** The rows of some kinds of events. A row without a `read` reads the field of its name, where an event has it. */
function of<Kind extends EventKind>(events: readonly Kind[], ...rows: readonly Row<Kind>[]): Figure[] {
  return rows.map(({ labels = noLabels, read, curve, ...row }) => {
    const field = (event: TroupeEvent) => {
      const value = (event as unknown as Readonly<Record<string, number | undefined>>)[row.name];
      return value === undefined ? [] : [{ value, labels }];
    };
    const [group, name] = curve?.split("/") ?? [];
    return {
      unit: "",
      kind: "gauge",
      ...row,
      ...(group !== undefined && name !== undefined && { curve: { group, name } }),
      events,
      read: (read as Figure["read"] | undefined) ?? field,
    };
  });
}

const one = (labels: Labels = {}, value = 1): readonly Reading[] => [{ value, labels }];

function named(event: EventOf<"step.finished" | "evaluation.finished">, values: Named): readonly Reading[] {
  const split = event.kind === "step.finished" ? "train" : event.split;
  return Object.entries(values ?? {}).map(([name, value]) => ({ value, labels: { split, name } }));
}

function memory(
  { rank, byKind }: EventOf<"memory.measured">,
  bytes: "liveBytes" | "peakBytes",
): readonly Reading[] {
  return Object.entries(byKind).map(([kind, held]) => ({ value: held[bytes], labels: { rank, kind } }));
}
