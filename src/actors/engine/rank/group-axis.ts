import * as collectives from "../../../compute/collectives/index.ts";
import type { MeshAxis } from "../../../compute/parallel/index.ts";
import { noGrad, ops, scope, type Tensor, tensor } from "../../../compute/tensor/index.ts";
import { TroupeError } from "../../../errors/index.ts";
import type { Axis } from "../../../job/index.ts";
import type { RankGroups } from "./rank-groups.ts";

/** One axis of the mesh for a user's code. Its group is joined at the first call, which every rank of it makes alike. */
export class GroupAxis implements Axis {
  readonly index: number;
  readonly size: number;
  readonly #groups: RankGroups;
  readonly #axis: MeshAxis;

  /** @param rank - of the world */
  constructor(groups: RankGroups, axis: MeshAxis, rank: number) {
    const ranks = groups.ranksAlong(axis);
    this.#groups = groups;
    this.#axis = axis;
    this.index = ranks.indexOf(rank);
    this.size = ranks.length;
  }

  allReduce(x: Tensor, op?: collectives.ReduceOp): Tensor;
  allReduce(x: number, op?: collectives.ReduceOp): number;
  allReduce(x: Tensor | number, op: collectives.ReduceOp = "sum"): Tensor | number {
    if (typeof x !== "number") return this.#with(x, (group) => collectives.allReduce(x, group, op));
    return scope(() => noGrad(() => this.allReduce(tensor(x, { dtype: "float64" }), op).item()));
  }

  allGather(x: Tensor): Tensor {
    return this.#with(x, (group) => collectives.allGather(x, group));
  }

  gather(rows: Tensor): Tensor[] {
    return this.#group?.gatherRagged(rows) ?? [rows.clone()];
  }

  reduceScatter(x: Tensor, op: collectives.ReduceOp = "sum"): Tensor {
    return this.#with(x, (group) => collectives.reduceScatter(x, group, op));
  }

  broadcast(x: Tensor, root = 0): Tensor {
    this.#member("broadcast", root);
    return this.#with(x, (group) => collectives.broadcast(x, group, root));
  }

  allToAll(
    x: Tensor,
    splits?: { readonly output: readonly number[]; readonly input: readonly number[] },
  ): Tensor {
    return this.#with(x, (group) => collectives.allToAll(x, group, splits));
  }

  send(x: Tensor, to: number): void {
    this.#other("send", to).send(x, to).wait();
  }

  receive(like: Tensor, from: number): Tensor {
    const group = this.#other("receive", from);
    const received = noGrad(() => ops.emptyLike(like));
    group.recv(received, from).wait();
    return received;
  }

  barrier(): void {
    this.#group?.barrier();
  }

  get #group(): collectives.Communicator | undefined {
    return this.#groups.along(this.#axis);
  }

  #with(x: Tensor, body: (group: collectives.Communicator) => Tensor): Tensor {
    const group = this.#group;
    return group === undefined ? x.clone() : body(group);
  }

  #other(call: string, member: number): collectives.Communicator {
    this.#member(call, member);
    const group = this.#group;
    if (group === undefined || member === this.index)
      throw wrongMember(this.#axis, call, "another rank", member);
    return group;
  }

  #member(call: string, member: number): void {
    if (Number.isSafeInteger(member) && member >= 0 && member < this.size) return;
    throw wrongMember(this.#axis, call, `a place from 0 to ${this.size - 1}`, member);
  }
}

function wrongMember(axis: MeshAxis, call: string, expected: string, got: number): TroupeError {
  return new TroupeError("COLLECTIVE_ARGUMENT", {
    where: `${axis}.${call}`,
    expected,
    got: `${got}`,
    hint: "places count along the axis, from 0",
    fields: { axis, got },
  });
}
