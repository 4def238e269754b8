import type { Communicator } from "../../collectives/index.ts";
import { TroupeError } from "../../errors.ts";
import { type Device, ops, scope, type Tensor, tensor } from "../../tensor/index.ts";

/** Calls that are all looked at: what is drawn by the wrong rank differs from the beginning. */
const FIRST = 16;

/** And then each of so many: what differs later is found too, at no price that could be measured. */
const EACH = 64;

/**
 * Makes sure that ranks which split a layer look up the same words: each sums what it holds of them, so the sum of different texts
 * would be a text of none, and the same on all.
 */
export class AlikeInputs {
  readonly #group: Communicator;
  #numCalls = 0;

  constructor(group: Communicator) {
    this.#group = group;
  }

  /**
   * To be called alike on all ranks of the group.
   * @param ids - int64, any shape
   * @throws {TroupeError} `RANKS_DIFFER`
   */
  check(ids: Tensor): void {
    const call = this.#numCalls++;
    const { device } = ids;
    if (device === "meta" || (call >= FIRST && call % EACH !== 0)) return;
    const [largest, negatedSmallest] = scope(() => {
      const sum = checksum(ids, device);
      const both = tensor([sum, -sum], { dtype: "float64" }).onto(device);
      this.#group.allReduce(both, "max").wait();
      return [both.narrow(0, 0, 1).sum().item(), both.narrow(0, 1, 1).sum().item()];
    });
    if (largest === -(negatedSmallest as number)) return;
    throw new TroupeError("RANKS_DIFFER", {
      where: "tensor parallel",
      expected: "ranks that split the layers of one replica to be given the same inputs",
      got: "other words on one than on another",
      hint: "were they drawn or chosen by rank.index? Take rank.axes.dp.index, which they share",
    });
  }
}

/** Tells texts apart, the order of their words included. */
function checksum(ids: Tensor, device: Device): number {
  const flat = ids.reshape([-1]).to("float64");
  const places = ops
    .arange(1, ids.numel + 1, 1, "int64")
    .to("float64")
    .onto(device);
  return flat.add(1).mul(places.sqrt()).sum().item();
}
