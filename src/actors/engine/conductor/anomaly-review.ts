import { Mesh } from "../../../compute/parallel/index.ts";
import { anomalyError, type Policy, RewindRequest, StragglerWatch } from "../../../job/anomalies/index.ts";
import type { EventOf, TroupeEventBody } from "../../../job/events/index.ts";
import type { RankPlan, RankStepped, StepUpdated } from "../../protocols/index.ts";

const ACTIONS = {
  tell: "told",
  stop: "stopped",
  skip: "skipped",
  rewind: "rewound",
} as const satisfies Record<Policy, EventOf<"anomaly.detected">["action"]>;

/** Reviews the findings of ranks and shards in each step, reports them, and ends a generation that must not go on. */
export class AnomalyReview {
  readonly #stragglers: StragglerWatch;
  readonly #emit: (event: TroupeEventBody) => void;

  constructor({ anomalies, layout }: RankPlan, emit: (event: TroupeEventBody) => void) {
    const mesh = new Mesh(layout.mesh);
    const alike = Array.from({ length: mesh.size }, (_, rank) => mesh.groupOf("dp", rank));
    this.#stragglers = new StragglerWatch(anomalies, alike);
    this.#emit = emit;
  }

  /** @throws {TroupeError} if the run must stop; {RewindRequest} if it must go back */
  review(step: number, ranks: readonly RankStepped[], shards: readonly StepUpdated[]): void {
    const computedMs = ranks.map(({ durationMs, waits }) => durationMs - waits.exposedMs - waits.dataMs);
    // All shards have the same finding; only the holders of the block know its name.
    const found = shards.flatMap(({ finding }) => finding ?? []);
    const finding = found.find(({ block }) => block !== undefined) ?? found[0];
    const findings = [...(finding === undefined ? [] : [finding]), ...this.#stragglers.look(computedMs)];
    for (const { anomaly, value, limit, rank, policy } of findings) {
      const action = ACTIONS[policy];
      this.#emit({ kind: "anomaly.detected", step, anomaly, value, limit, rank, policy, action });
    }
    const grave = findings.find(({ policy }) => policy === "stop" || policy === "rewind");
    if (grave === undefined) return;
    const error = anomalyError(step - 1, grave);
    throw grave.policy === "stop" ? error : new RewindRequest(step - 1, error);
  }
}
