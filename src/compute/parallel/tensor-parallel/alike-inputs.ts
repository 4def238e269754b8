import { TroupeError } from "../../../errors/index.ts";
import type { Communicator } from "../../collectives/index.ts";
import { type Device, type LateNumber, ops, readLater, scope, type Tensor } from "../../tensor/index.ts";

/** Number of first calls that are all compared: inputs drawn by the wrong rank differ from the beginning. */
const FIRST = 16;

/** After these, one call in this many is compared, which finds later differences. */
const EACH = 64;

/**
 * Checks that ranks which split a layer look up the same words. Each rank adds the rows that it holds, so different texts would
 * give a sum that belongs to no text, equal on all ranks.
 */
export class AlikeInputs {
  readonly #group: Communicator;
  #numCalls = 0;
  /** How far apart the ranks' last checksums were. A device delivers it late, and no step waits for it. */
  #spread: LateNumber | undefined;

  constructor(group: Communicator) {
    this.#group = group;
  }

  /**
   * Called alike on all ranks of the group. On a device a difference is found by the next comparison.
   * @param ids - int64, any shape
   * @throws {TroupeError} `RANKS_DIFFER`
   */
  check(ids: Tensor): void {
    const call = this.#numCalls++;
    const { device } = ids;
    if (device === "meta" || (call >= FIRST && call % EACH !== 0)) return;
    this.#requireAlike();
    this.#spread = scope(() => {
      const sum = checksum(ids, device);
      const both = ops.stack([sum, sum.neg()], 0);
      this.#group.allReduce(both, "max").wait();
      return readLater(both.sum());
    });
    if (device === "cpu") this.#requireAlike();
  }

  #requireAlike(): void {
    const spread = this.#spread;
    this.#spread = undefined;
    if (spread === undefined || spread() === 0) return;
    throw new TroupeError("RANKS_DIFFER", {
      where: "tensor parallel",
      expected: "ranks that split the layers of one replica to be given the same inputs",
      got: "other words on one than on another",
      hint: "were they drawn or chosen by rank.index? Take rank.axes.dp.index, which they share",
    });
  }
}

/** @returns a float64 scalar that tells texts apart, the order of their words included */
function checksum(ids: Tensor, device: Device): Tensor {
  const flat = ids.reshape([-1]).to("float64");
  const places = ops
    .arange(1, ids.numel + 1, 1, "int64")
    .to("float64")
    .onto(device);
  return flat.add(1).mul(places.sqrt()).sum();
}
