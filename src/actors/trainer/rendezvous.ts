import { randomUUID } from "node:crypto";
import * as collectives from "../../compute/collectives/index.ts";
import type { MeshShape } from "../../compute/parallel/index.ts";
import { temporaryRoot } from "../../errors/untrusted/index.ts";
import { makeOwnedFolder, removeOwnedFolder } from "../../runtime/index.ts";
import { groupNamesOf } from "../engine/rank/index.ts";

/** The layout of a world's ranks, and the transport of their tensors. */
export interface WorldOptions {
  readonly mesh: MeshShape;
  readonly carrier: collectives.CarrierName;
  readonly reduction: collectives.Reduction;
}

/** Creates the groups in which a run's ranks compute collectives, and aborts them when a rank has ended: native waits miss it. */
export class Rendezvous implements AsyncDisposable {
  readonly groups: collectives.GroupPlan;
  readonly #mesh: MeshShape;
  readonly #folder: string | undefined;

  private constructor(groups: collectives.GroupPlan, mesh: MeshShape, folder: string | undefined) {
    this.groups = groups;
    this.#mesh = mesh;
    this.#folder = folder;
  }

  /**
   * Creates a folder for ranks in several processes; disposing removes it, and a later run removes it after a kill.
   * @param store - the store that ranks of several hosts use instead
   */
  static async open(
    { mesh, carrier, reduction }: WorldOptions,
    store: string | undefined,
  ): Promise<Rendezvous> {
    const plan = { run: randomUUID(), carrier, reduction };
    const backend = carrier === "nccl" ? "nccl" : "gloo";
    if (store !== undefined) return new Rendezvous({ ...plan, backend, rendezvous: store }, mesh, undefined);
    if (carrier === "alias")
      return new Rendezvous({ ...plan, backend: "local", rendezvous: undefined }, mesh, undefined);
    const rendezvous = makeOwnedFolder(temporaryRoot(), "troupe-groups-");
    return new Rendezvous({ ...plan, backend, rendezvous }, mesh, rendezvous);
  }

  /** Aborts the groups of a generation whose `actor` has ended or is about to, so that ranks of this process stop waiting. */
  ended(actor: string, generation: number): void {
    for (const name of groupNamesOf(this.groups, this.#mesh, generation))
      collectives.abortGroup(name, `${actor} has ended`);
  }

  async [Symbol.asyncDispose](): Promise<void> {
    if (this.#folder !== undefined) removeOwnedFolder(this.#folder);
  }
}
