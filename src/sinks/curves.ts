import type { EventOf, TroupeEvent } from "../events/index.ts";

/** A point of a curve that an event adds to. */
export interface Point {
  /** What it is of: "loss", "optimizer", "speed", "time_ms", "memory", "checkpoint". */
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
      return [{ group: "loss", name: "validation", value: event.lossNats }];
    case "memory.measured":
      return Object.entries(event.byKind).map(([kind, { liveBytes }]) => ({
        group: "memory",
        name: `${kind}_bytes`,
        rank: event.rank,
        value: liveBytes,
      }));
    case "checkpoint.saved":
      return pointsIn("checkpoint", { size_bytes: event.sizeBytes, duration_ms: event.durationMs });
    default:
      return [];
  }
}

function ofStep(step: EventOf<"step.finished">): readonly Point[] {
  const { gradientNorm, lossScale } = step;
  return [
    ...pointsIn("loss", { train: step.lossNats }),
    ...pointsIn("optimizer", {
      learning_rate: step.learningRate,
      // What was not measured is no point of a curve.
      gradient_norm: Number.isNaN(gradientNorm) ? undefined : gradientNorm,
      loss_scale: lossScale,
    }),
    ...pointsIn("speed", { tokens_per_second: step.tokensPerSecond, overlap: step.overlap }),
    ...pointsIn("time_ms", {
      step: step.durationMs,
      exposed: step.exposedMs,
      gather: step.gatherMs,
      reduce: step.reduceMs,
      update: step.updateMs,
      data: step.dataMs,
    }),
    ...pointsIn("memory", { resident_bytes: step.residentBytes }),
  ];
}

function pointsIn(group: string, values: Readonly<Record<string, number | undefined>>): Point[] {
  return Object.entries(values).flatMap(([name, value]) =>
    value === undefined ? [] : { group, name, value },
  );
}
