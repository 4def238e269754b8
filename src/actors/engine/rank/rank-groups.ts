import {
  type Carrier,
  type Communicator,
  describeRanks,
  type GroupPlan,
  openCarrier,
  openCommunicator,
  rendezvousOf,
} from "../../../compute/collectives/index.ts";
import { Mesh, type MeshAxis, type MeshShape } from "../../../compute/parallel/index.ts";
import type { Device } from "../../../compute/tensor/index.ts";

/** Options for joining a rank's groups. */
export interface RankGroupOptions {
  /** Generation of the rank group: each builds its groups again. */
  readonly generation: number;
  /** The longest wait for another rank. */
  readonly deadlineMs: number;
  readonly devices: readonly Device[];
  /** Memory for the rank's collective line: its collectives are reported there for others to read. */
  readonly status: Uint8Array;
  /** Called now and then while the rank waits for others to join; what it throws ends the wait. */
  readonly look?: () => void;
}

/** The axes along which the model itself is split: their groups exist from the beginning. */
const MODEL_AXES = ["tp", "ep"] as const satisfies readonly MeshAxis[];

const AXES = ["tp", "ep", "dp", "pp", "edp", "mp", "world"] as const satisfies readonly MeshAxis[];

/**
 * One rank's memberships in the groups of forward and backward; empty if it is alone. Groups of axes that split the model are
 * joined at once, the others at first use, by every rank of the group in the same order: joining is a collective too.
 */
export class RankGroups implements Disposable {
  /** Carries tensors between the stages of this rank's pipeline. */
  readonly stages: Carrier;
  readonly #members = new Map<MeshAxis, Communicator>();
  readonly #plan: GroupPlan;
  readonly #mesh: Mesh;
  readonly #rank: number;
  readonly #options: RankGroupOptions;

  constructor(plan: GroupPlan, shape: MeshShape, rank: number, options: RankGroupOptions) {
    this.#plan = plan;
    this.#mesh = new Mesh(shape);
    this.#rank = rank;
    this.#options = options;
    for (const axis of MODEL_AXES) this.along(axis);
    this.stages = this.#joinStages();
  }

  /** Whether no axis splits the model: every rank computes alone. */
  get isEmpty(): boolean {
    return MODEL_AXES.every((axis) => this.ranksAlong(axis).length === 1);
  }

  /** @returns the ranks of the world along `axis` with this one, in order: the index here is the rank in the group */
  ranksAlong(axis: MeshAxis): readonly number[] {
    return this.#mesh.groupOf(axis, this.#rank);
  }

  /** @returns this rank's group along `axis`; undefined if it is alone @throws {TroupeError} errors of `openCommunicator` */
  along(axis: MeshAxis): Communicator | undefined {
    const known = this.#members.get(axis);
    if (known !== undefined) return known;
    const ranks = this.ranksAlong(axis);
    if (ranks.length === 1) return undefined;
    const opened = this.#join(axis, ranks);
    this.#members.set(axis, opened);
    return opened;
  }

  [Symbol.dispose](): void {
    for (const member of this.#members.values()) member.close();
    this.#members.clear();
    this.stages[Symbol.dispose]();
  }

  #joinStages(): Carrier {
    const { generation, deadlineMs, devices } = this.#options;
    const ranks = this.ranksAlong("pp");
    const place = { generation, rank: this.#rank, ranks, devices, deadlineMs };
    return openCarrier(this.#plan, { group: "stages", ...place });
  }

  #join(axis: MeshAxis, ranks: readonly number[]): Communicator {
    const { backend } = this.#plan;
    const { generation, deadlineMs, status, look } = this.#options;
    const name = nameOf(this.#plan, axis, ranks, generation);
    const rendezvous = rendezvousOf(this.#plan, name, ranks);
    return openCommunicator({
      backend,
      name,
      rank: ranks.indexOf(this.#rank),
      size: ranks.length,
      ...(rendezvous !== undefined && { rendezvous }),
      deadlineMs,
      status: { memory: status, group: `${axis} ${ranks.join("-")}` },
      ...(look && { look }),
    });
  }
}

/** @returns the names of all groups of one generation: they are aborted when one of its ranks is gone */
export function groupNamesOf(plan: GroupPlan, shape: MeshShape, generation: number): string[] {
  const mesh = new Mesh(shape);
  return AXES.flatMap((axis) =>
    mesh
      .groups(axis)
      .filter((ranks) => ranks.length > 1)
      .map((ranks) => nameOf(plan, axis, ranks, generation)),
  );
}

function nameOf({ run }: GroupPlan, axis: MeshAxis, ranks: readonly number[], generation: number): string {
  return `${run} ${generation} ${axis} ${describeRanks(ranks)}`;
}
