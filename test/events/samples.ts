import type { EventKind, EventOf, TroupeEventBody } from "../../src/events/event.ts";

type Bodies = { readonly [Kind in EventKind]: Extract<TroupeEventBody, { kind: Kind }> };

const actor = { actor: "rank-1", incarnation: 2 } as const;
const error = {
  code: "NATIVE",
  message: "out of memory",
  actor: "rank-1#2",
  cause: { message: "first" },
} as const;

/** One event of every kind: a kind without a sample does not compile. */
export const samples: Bodies = {
  "activity.finished": {
    kind: "activity.finished",
    actor: "offload-1",
    incarnation: 0,
    activity: "update",
    step: 3,
    blockIndex: 2,
    beginMs: 10.5,
    endMs: 12,
  },
  "actor.failed": { kind: "actor.failed", ...actor, cause: error },
  "actor.restarted": { kind: "actor.restarted", ...actor, cause: error },
  "actor.started": { kind: "actor.started", ...actor },
  "actor.stopped": { kind: "actor.stopped", ...actor, forced: false },
  "checkpoint.failed": { kind: "checkpoint.failed", step: 500, error },
  "checkpoint.saved": {
    kind: "checkpoint.saved",
    step: 500,
    path: "runs/gpt/step-000500",
    sizeBytes: 9.6e6,
    durationMs: 87,
  },
  "checkpoint.started": { kind: "checkpoint.started", step: 500 },
  "evaluation.finished": { kind: "evaluation.finished", step: 500, lossNats: 1.9051, numTokens: 111_488 },
  "events.dropped": { kind: "events.dropped", numDropped: 3 },
  "message.undelivered": {
    kind: "message.undelivered",
    reason: "Stopped",
    messageKind: "gather",
    from: "rank-0#1",
    to: "shard-0#1",
    count: 2,
  },
  "run.failed": { kind: "run.failed", error },
  "run.finished": { kind: "run.finished", steps: 2000, lossNats: 1.7, durationMs: 83_000 },
  "run.started": {
    kind: "run.started",
    job: "examples/gpt/job.ts",
    numRanks: 2,
    mesh: { dp: 2, pp: 1, tp: 1, ep: 1 },
    zero: 3,
    placement: "thread",
    precision: "fp32",
    seed: 1337,
    numParameters: 804_096,
    firstStep: 0,
    steps: 2000,
  },
  "step.finished": {
    kind: "step.finished",
    step: 500,
    lossNats: 0.1 + 1.7123,
    learningRate: 1e-3,
    gradientNorm: 0.7,
    skipped: false,
    lossScale: 65_536,
    numTokens: 768,
    tokensPerSecond: 23_456.7,
    durationMs: 32.7,
    overlap: 0.934,
    exposedMs: 0.9,
    residentBytes: 412e6,
  },
  "subscriber.failed": { kind: "subscriber.failed", error },
  "text.generated": { kind: "text.generated", step: 2000, text: "declare function\n\u001b[2Jevil" },
};

/** The sample of one kind, stamped; `changes` replace fields. */
export function stamped<Kind extends EventKind>(
  kind: Kind,
  changes: Partial<Bodies[Kind]> = {},
): EventOf<Kind> {
  return { ...samples[kind], ...changes, timeMs: 1_700_000_000_000, schemaVersion: 1 } as EventOf<Kind>;
}
