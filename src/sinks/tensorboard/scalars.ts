import type { EventOf, TroupeEvent } from "../../events/index.ts";

/** The curves an event adds a point to. */
export function scalarsOf(event: TroupeEvent): readonly (readonly [tag: string, value: number])[] {
  switch (event.kind) {
    case "step.finished":
      return ofStep(event);
    case "evaluation.finished":
      return [["loss/validation", event.lossNats]];
    case "memory.measured":
      return Object.entries(event.byKind).map(([kind, { liveBytes }]) => [
        `memory/rank_${event.rank}/${kind}_bytes`,
        liveBytes,
      ]);
    case "checkpoint.saved":
      return [
        ["checkpoint/size_bytes", event.sizeBytes],
        ["checkpoint/duration_ms", event.durationMs],
      ];
    default:
      return [];
  }
}

function ofStep(step: EventOf<"step.finished">): readonly (readonly [string, number])[] {
  return [
    ["loss/train", step.lossNats],
    ["optimizer/learning_rate", step.learningRate],
    // What was not measured is no point of a curve.
    ...(Number.isNaN(step.gradientNorm) ? [] : [["optimizer/gradient_norm", step.gradientNorm] as const]),
    ...(step.lossScale === undefined ? [] : [["optimizer/loss_scale", step.lossScale] as const]),
    ["speed/tokens_per_second", step.tokensPerSecond],
    ["speed/overlap", step.overlap],
    ["time_ms/step", step.durationMs],
    ["time_ms/exposed", step.exposedMs],
    ["time_ms/gather", step.gatherMs],
    ["time_ms/reduce", step.reduceMs],
    ["time_ms/update", step.updateMs],
    ["time_ms/data", step.dataMs],
    ["memory/resident_bytes", step.residentBytes],
  ];
}
