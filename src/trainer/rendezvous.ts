import { randomUUID } from "node:crypto";
import { tmpdir } from "node:os";
import { abortGroup, type CarrierName, type GroupPlan } from "../collectives/index.ts";
import { groupNamesOf } from "../engine/rank/index.ts";
import type { MeshShape } from "../parallel/index.ts";
import { makeOwnedFolder, removeOwnedFolder } from "../runtime/index.ts";

/**
 * Where the ranks of a run meet to compute collectives, and where these are ended once a rank is gone: a rank that waits
 * in native code for one that never comes would hear of nothing else.
 */
export class Rendezvous implements AsyncDisposable {
  readonly groups: GroupPlan;
  readonly #mesh: MeshShape;

  private constructor(groups: GroupPlan, mesh: MeshShape) {
    this.groups = groups;
    this.#mesh = mesh;
  }

  /** Makes a folder for ranks in several processes; it is removed with the place, or by the next run after one that was killed. */
  static async open(mesh: MeshShape, carrier: CarrierName): Promise<Rendezvous> {
    const run = randomUUID();
    if (carrier === "alias") {
      return new Rendezvous({ run, backend: "local", carrier, rendezvous: undefined }, mesh);
    }
    const rendezvous = makeOwnedFolder(tmpdir(), "troupe-groups-");
    return new Rendezvous({ run, backend: "gloo", carrier, rendezvous }, mesh);
  }

  /** `actor` of one generation of the rank group has ended, or is about to: whoever waits for it in this process is told. */
  ended(actor: string, generation: number): void {
    for (const name of groupNamesOf(this.groups, this.#mesh, generation))
      abortGroup(name, `${actor} has ended`);
  }

  async [Symbol.asyncDispose](): Promise<void> {
    const { rendezvous } = this.groups;
    if (rendezvous !== undefined) removeOwnedFolder(rendezvous);
  }
}
