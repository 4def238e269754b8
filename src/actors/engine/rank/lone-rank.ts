import { Randomness } from "../../../compute/nn/index.ts";
import { Mesh } from "../../../compute/parallel/index.ts";
import type { Rank } from "../../../job/index.ts";
import { MeshRank } from "./mesh-rank.ts";
import { RankGroups } from "./rank-groups.ts";
import { StepMetrics } from "./step-metrics.ts";

/** A rank alone in the world, to compute a job's loss outside of any run. */
export function loneRank(): Rank {
  const plan = {
    run: "alone",
    backend: "local",
    carrier: "alias",
    reduction: "ordered",
    rendezvous: undefined,
  } as const;
  const { shape } = new Mesh({});
  const options = { generation: 0, deadlineMs: 0, devices: ["cpu"], status: new Uint8Array() } as const;
  return new MeshRank(new RankGroups(plan, shape, 0, options), 0, new StepMetrics(), new Randomness(0));
}
