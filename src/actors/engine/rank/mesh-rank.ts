import { inspect } from "node:util";
import type { MeshAxis } from "../../../compute/parallel/index.ts";
import type { Axis, Rank, ReachedActor } from "../../../job/index.ts";
import { writeNow } from "./direct-output.ts";
import { GroupAxis } from "./group-axis.ts";
import type { RankGroups } from "./rank-groups.ts";
import { type ReachedActors, reachNone } from "./reached-actors.ts";
import type { StepMetrics } from "./step-metrics.ts";

/** A rank of the mesh, for a user's code. */
export class MeshRank extends GroupAxis implements Rank {
  readonly axes: Readonly<Record<MeshAxis, Axis>>;
  readonly #metrics: StepMetrics;
  readonly #clock: { readonly step: number };
  readonly #reached: ReachedActors | undefined;

  /** @param rank - of the world @param clock - the step under way @param reached - left out where no run is under way */
  constructor(
    groups: RankGroups,
    rank: number,
    metrics: StepMetrics,
    clock: { readonly step: number },
    reached?: ReachedActors,
  ) {
    super(groups, "world", rank);
    this.#metrics = metrics;
    this.#clock = clock;
    this.#reached = reached;
    const along = (axis: MeshAxis) => new GroupAxis(groups, axis, rank);
    this.axes = {
      dp: along("dp"),
      tp: along("tp"),
      pp: along("pp"),
      ep: along("ep"),
      edp: along("edp"),
      mp: along("mp"),
      world: this,
    };
  }

  get numSteps(): number {
    return this.#clock.step;
  }

  log(metrics: Readonly<Record<string, number>>): void {
    this.#metrics.add(metrics);
  }

  actor<P>(name: string): ReachedActor<P> {
    const reached = this.#reached ?? reachNone(name);
    return reached.named(name) as unknown as ReachedActor<P>;
  }

  print(text: unknown, rank = 0): void {
    if (this.index === rank) writeNow(1, `${typeof text === "string" ? text : inspect(text)}\n`);
  }
}
