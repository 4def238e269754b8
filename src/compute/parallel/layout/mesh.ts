import { TroupeError } from "../../../errors/index.ts";

/** A named direction of the mesh along which ranks work together. */
export type MeshAxis = "pp" | "dp" | "tp" | "ep" | "edp" | "mp" | "world";

/** Number of ranks along each axis. The world is pp × dp × tp; ep divides dp. */
export interface MeshShape {
  /** Pipeline stages. */
  readonly pp: number;
  /** Replicas of the model, each with data of its own. */
  readonly dp: number;
  /** Ranks that split one layer. */
  readonly tp: number;
  /** Ranks of one replica group among which experts are dealt. */
  readonly ep: number;
}

/** A rank's coordinates: its position along each axis. */
export interface MeshPlace {
  readonly rank: number;
  readonly pp: number;
  readonly dp: number;
  readonly tp: number;
  readonly ep: number;
  /** Among the ranks that hold the same experts. */
  readonly edp: number;
}

/**
 * Ranks on a grid: tensor-parallel neighbours are adjacent, stages are contiguous, replicas lie between them.
 * rank = (pp · DP + dp) · TP + tp. Expert parallelism divides the data-parallel axis: dp = edp · EP + ep. The axis `mp`
 * (model parallel) joins all ranks that together hold one replica: equal dp. The axis `world` joins all.
 * @see Narayanan et al. 2021, "Efficient Large-Scale Language Model Training on GPU Clusters Using Megatron-LM"
 */
export class Mesh {
  readonly shape: MeshShape;
  readonly size: number;

  /** @throws {TroupeError} `MESH_SHAPE` for sizes that are not whole numbers ≥ 1, or an ep that does not divide dp */
  constructor(shape: Partial<MeshShape>) {
    const { pp = 1, dp = 1, tp = 1, ep = 1 } = shape;
    for (const [axis, size] of Object.entries({ pp, dp, tp, ep })) {
      if (!Number.isSafeInteger(size) || size < 1) throw meshError(`${axis} to be a whole number ≥ 1`, size);
    }
    if (dp % ep !== 0) throw meshError(`ep to divide the ${dp} data-parallel ranks`, ep);
    this.shape = { pp, dp, tp, ep };
    this.size = pp * dp * tp;
  }

  /** @returns the coordinates of `rank` */
  placeOf(rank: number): MeshPlace {
    const { dp, tp, ep } = this.shape;
    const replica = Math.floor(rank / tp) % dp;
    return {
      rank,
      pp: Math.floor(rank / (tp * dp)),
      dp: replica,
      tp: rank % tp,
      ep: replica % ep,
      edp: Math.floor(replica / ep),
    };
  }

  /** @returns the rank at these coordinates */
  rankAt(place: Pick<MeshPlace, "pp" | "dp" | "tp">): number {
    return (place.pp * this.shape.dp + place.dp) * this.shape.tp + place.tp;
  }

  /** @returns the ranks of `rank`'s group along `axis`, itself among them, in order */
  groupOf(axis: MeshAxis, rank: number): number[] {
    const key = this.#keyOf(axis, rank);
    return this.ranks.filter((other) => this.#keyOf(axis, other) === key);
  }

  /** @returns all groups along `axis`, in the order of their first ranks */
  groups(axis: MeshAxis): number[][] {
    const byKey = Map.groupBy(this.ranks, (rank) => this.#keyOf(axis, rank));
    return [...byKey.values()];
  }

  get ranks(): number[] {
    return Array.from({ length: this.size }, (_, rank) => rank);
  }

  /** The coordinates that the members of one group share: all but that of the axis. */
  #keyOf(axis: MeshAxis, rank: number): string {
    const { pp, dp, tp, ep, edp } = this.placeOf(rank);
    switch (axis) {
      case "pp":
        return `${dp} ${tp}`;
      case "dp":
        return `${pp} ${tp}`;
      case "tp":
        return `${pp} ${dp}`;
      case "ep":
        return `${pp} ${tp} ${edp}`;
      case "edp":
        return `${pp} ${tp} ${ep}`;
      case "mp":
        return `${dp}`;
      case "world":
        return "";
      default:
        return axis satisfies never;
    }
  }
}

function meshError(expected: string, got: number): TroupeError {
  return new TroupeError("MESH_SHAPE", { where: "mesh", expected, got: `${got}`, fields: { got } });
}
