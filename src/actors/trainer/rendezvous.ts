import { randomUUID } from "node:crypto";
import {
  abortGroup,
  type CarrierName,
  type GroupPlan,
  type Reduction,
} from "../../compute/collectives/index.ts";
import type { MeshShape } from "../../compute/parallel/index.ts";
import { temporaryRoot } from "../../errors/untrusted/index.ts";
import { makeOwnedFolder, removeOwnedFolder } from "../../runtime/index.ts";
import { groupNamesOf } from "../engine/rank/index.ts";

/** How the ranks of a world are laid out, and what carries their tensors. */
export interface WorldOptions {
  readonly mesh: MeshShape;
  readonly carrier: CarrierName;
  readonly reduction: Reduction;
}

/**
 * Where the ranks of a run meet to compute collectives, and where these are ended once a rank is gone: a rank that waits
 * in native code for one that never comes would hear of nothing else.
 */
export class Rendezvous implements AsyncDisposable {
  readonly groups: GroupPlan;
  readonly #mesh: MeshShape;
  readonly #folder: string | undefined;

  private constructor(groups: GroupPlan, mesh: MeshShape, folder: string | undefined) {
    this.groups = groups;
    this.#mesh = mesh;
    this.#folder = folder;
  }

  /**
   * Makes a folder for ranks in several processes; it is removed with the place, or by the next run after one that was killed.
   * @param store - where ranks of several hosts meet instead
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

  /** `actor` of one generation of the rank group has ended, or is about to: whoever waits for it in this process is told. */
  ended(actor: string, generation: number): void {
    for (const name of groupNamesOf(this.groups, this.#mesh, generation))
      abortGroup(name, `${actor} has ended`);
  }

  async [Symbol.asyncDispose](): Promise<void> {
    if (this.#folder !== undefined) removeOwnedFolder(this.#folder);
  }
}
