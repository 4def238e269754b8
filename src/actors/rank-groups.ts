import { type Backend, type Communicator, openCommunicator } from "../collectives/index.ts";
import { Mesh, type MeshAxis, type MeshShape } from "../parallel/index.ts";

/** How the ranks of one life compute collectives together. Plain data. */
export interface GroupPlan {
  /** Names this run in the process, and beside others of the machine. */
  readonly run: string;
  readonly backend: Backend;
  /** Folder in which ranks of several processes meet; none within one process. */
  readonly rendezvous: string | undefined;
}

/** The axes along which a computation itself is split. */
const COMPUTING_AXES = ["tp", "ep"] as const satisfies readonly MeshAxis[];

type ComputingAxis = (typeof COMPUTING_AXES)[number];

/** One rank's memberships in the groups that a model's forward and backward compute with; none where it is alone. */
export class RankGroups implements Disposable {
  readonly #members = new Map<ComputingAxis, Communicator>();

  /**
   * @param life - of the rank group: each builds its groups anew
   * @param told - where the rank's collectives are told for others to read: the memory of its collective line
   */
  constructor(
    plan: GroupPlan,
    shape: MeshShape,
    rank: number,
    { life, deadlineMs, told: memory }: { life: number; deadlineMs: number; told: Uint8Array },
  ) {
    const mesh = new Mesh(shape);
    for (const axis of COMPUTING_AXES) {
      const ranks = mesh.groupOf(axis, rank);
      if (ranks.length === 1) continue;
      const name = nameOf(plan, axis, ranks, life);
      const { backend, rendezvous } = plan;
      const meeting =
        rendezvous === undefined ? {} : { rendezvous: `${rendezvous}/${name.replaceAll(" ", "-")}` };
      const place = { name, rank: ranks.indexOf(rank), size: ranks.length };
      const told = { memory, group: `${axis} ${ranks.join("-")}` };
      this.#members.set(axis, openCommunicator({ backend, ...place, ...meeting, deadlineMs, told }));
    }
  }

  /** Whether this rank computes alone. */
  get isEmpty(): boolean {
    return this.#members.size === 0;
  }

  /** @returns this rank's group along `axis`; undefined where it is alone */
  along(axis: ComputingAxis): Communicator | undefined {
    return this.#members.get(axis);
  }

  [Symbol.dispose](): void {
    for (const member of this.#members.values()) member.close();
  }
}

/** @returns the names of all groups of one life: what has to be aborted when one of its ranks is gone */
export function groupNamesOf(plan: GroupPlan, shape: MeshShape, life: number): string[] {
  const mesh = new Mesh(shape);
  return COMPUTING_AXES.flatMap((axis) =>
    mesh
      .groups(axis)
      .filter((ranks) => ranks.length > 1)
      .map((ranks) => nameOf(plan, axis, ranks, life)),
  );
}

function nameOf({ run }: GroupPlan, axis: ComputingAxis, ranks: readonly number[], life: number): string {
  return `${run} ${life} ${axis} ${ranks.join("-")}`;
}
