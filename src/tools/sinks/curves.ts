import type { EventOf, TroupeEvent } from "../../job/events/index.ts";

/** A point of a curve that an event adds to. */
export interface Point {
  /**
   * What it is of: "loss", "optimizer", "speed", "time_ms", "memory", "checkpoint"; "loss_SPLIT" and "metrics_SPLIT" for what
   * has a name of the job's or the dataset's own, by "train" or the split that was read.
   */
  readonly group: string;
  readonly name: string;
  /** The rank it is of, where it is of one. */
  readonly rank?: number;
  readonly value: number;
}

/** The points an event adds to curves over steps. */
export function pointsOf(event: TroupeEvent): readonly Point[] {
  switch (event.kind) {
    case "step.finished":
      return ofStep(event);
    case "evaluation.finished":
      return [
        point("loss", event.split, event.lossNats),
        ...named(`loss_${event.split}`, event.losses),
        ...named(`metrics_${event.split}`, event.metrics),
      ];
    case "memory.measured":
      return Object.entries(event.byKind).map(([kind, { liveBytes }]) => ({
        group: "memory",
        name: `${kind}_bytes`,
        rank: event.rank,
        value: liveBytes,
      }));
    case "checkpoint.saved":
      return [
        point("checkpoint", "size_bytes", event.sizeBytes),
        point("checkpoint", "duration_ms", event.durationMs),
        ...(event.blockedMs === undefined ? [] : [point("checkpoint", "blocked_ms", event.blockedMs)]),
      ];
    default:
      return [];
  }
}

function ofStep(step: EventOf<"step.finished">): readonly Point[] {
  const points = [
    point("loss", "train", step.lossNats),
    ...named("loss_train", step.losses),
    ...named("metrics_train", step.metrics),
    point("optimizer", "learning_rate", step.learningRate),
  ];
  // What was not measured is no point of a curve.
  if (!Number.isNaN(step.gradientNorm)) points.push(point("optimizer", "gradient_norm", step.gradientNorm));
  if (step.lossScale !== undefined) points.push(point("optimizer", "loss_scale", step.lossScale));
  if (step.tokensPerSecond !== undefined)
    points.push(point("speed", "tokens_per_second", step.tokensPerSecond));
  points.push(
    point("speed", "samples_per_second", step.samplesPerSecond),
    point("speed", "overlap", step.overlap),
    point("time_ms", "step", step.durationMs),
    point("time_ms", "exposed", step.exposedMs),
    point("time_ms", "gather", step.gatherMs),
    point("time_ms", "reduce", step.reduceMs),
    point("time_ms", "update", step.updateMs),
    point("time_ms", "data", step.dataMs),
    point("memory", "resident_bytes", step.residentBytes),
  );
  return points;
}

function named(group: string, values: Readonly<Record<string, number>> = {}): readonly Point[] {
  return Object.entries(values).map(([name, value]) => point(group, name, value));
}

function point(group: string, name: string, value: number): Point {
  return { group, name, value };
}
