// The groups that ranks join and the hosts of their stores, by the product's own rules.

import { connectedGroups, groupsOfShard } from "../../src/actors/shard/index.ts";
import { type GroupPlan, needsRendezvous, rendezvousOf } from "../../src/compute/collectives/index.ts";
import {
  layoutBlock,
  Mesh,
  type MeshAxis,
  type MeshShape,
  replicas,
} from "../../src/compute/parallel/index.ts";
import type { ControlShape, RendezvousGroup } from "./control-plane.ts";

/** Ranks of the world, in order. */
type Ranks = readonly number[];

const SHAPE = [1];

/** @returns the groups that the ranks of a mesh join, and after them their shards: of a model whose first and last stage tie a parameter */
export function groupsAt(shape: Partial<MeshShape>, ranksPerHost: number): ControlShape["groups"] {
  const mesh = new Mesh(shape);
  const hosts = mesh.ranks.map((rank) => Math.floor(rank / ranksPerHost));
  const plan: GroupPlan = {
    run: "run",
    backend: "gloo",
    carrier: "hosts",
    reduction: "ordered",
    hosts,
    rendezvous: "store",
    stores: Object.fromEntries(hosts.map((host) => [host, `${host}`])),
  };
  const [tensor, stages, models, copies] = (["tp", "pp", "mp", "dp"] as const).map((axis) =>
    byRank(mesh, axis),
  );
  const met = new Map<string, RendezvousGroup>();
  const meetingOf = (ranks: Ranks): RendezvousGroup => {
    const name = ranks.join(" ");
    const group = met.get(name) ?? { size: ranks.length, host: Number(rendezvousOf(plan, name, ranks)) };
    met.set(name, group);
    return group;
  };
  const ofRank = (rank: number) => [
    ...[tensor?.[rank] as Ranks].filter(({ length }) => length > 1),
    ...[stages?.[rank] as Ranks].filter((ranks) => needsRendezvous(plan, ranks)),
  ];
  const ofShard = (rank: number) => {
    const pipeline = stages?.[rank] as Ranks;
    const ends = [pipeline[0], pipeline.at(-1)] as const;
    const own = copies?.[rank] as Ranks;
    const tied =
      ends.includes(rank) && pipeline.length > 1
        ? ends.flatMap((end) => copies?.[end as number] as Ranks)
        : own;
    const layouts = [own, tied].map((group) =>
      layoutBlock(0, "block", 1, [{ name: "weight", shape: SHAPE } as never], { ...replicas(1), group }),
    );
    const peers = { groups: plan, replicas: own, modelParallel: models?.[rank] as Ranks, together: [] };
    return connectedGroups(plan, groupsOfShard({ peers, layouts, optimizers: [] }, rank));
  };
  return [ofRank, ofShard].map((groupsOf) => mesh.ranks.map((rank) => groupsOf(rank).map(meetingOf)));
}

/** By rank, its group along an axis. */
function byRank(mesh: Mesh, axis: MeshAxis): readonly Ranks[] {
  const found: Ranks[] = [];
  for (const group of mesh.groups(axis)) for (const rank of group) found[rank] = group;
  return found;
}
