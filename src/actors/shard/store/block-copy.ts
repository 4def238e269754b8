import type { BlockState, StateTensor } from "../../../compute/parallel/index.ts";
import {
  copyBeside,
  copyOffThread,
  emptyPinned,
  emptySharedOffThread,
  hold,
  scope,
  type Tensor,
  tagMemory,
} from "../../../compute/tensor/index.ts";

/** Elements copied at a time: an update may have to wait for one stretch, some half a millisecond. */
const STRETCH_NUMEL = 2 ** 20;

/** Consecutive elements of one tensor, and where they are copied to. */
interface Stretch {
  readonly from: Tensor;
  readonly into: Tensor;
  readonly begin: number;
  readonly numel: number;
}

/** A block's state while it is copied: off-thread while there is time, else in this turn. Owns copies until they are taken. */
export class BlockCopy {
  /** Uninitialised at first. */
  readonly copies: readonly StateTensor[];
  readonly #left: Stretch[];
  #underWay: Promise<void> = Promise.resolve();

  private constructor(left: Stretch[], copies: readonly StateTensor[]) {
    this.copies = copies;
    this.#left = left;
  }

  /** Allocates the copies off-thread. @param state - bound; unchanged until it is copied */
  static async of({ tensors }: BlockState): Promise<BlockCopy> {
    const taken = await Promise.allSettled(
      tensors.map(({ tensor }) =>
        tagMemory("snapshot", async () =>
          isOfHost(tensor) ? emptySharedOffThread(tensor.numel) : hold(() => emptyPinned(tensor)),
        ),
      ),
    );
    const refused = taken.find((each) => each.status === "rejected");
    const targets = taken.flatMap((each) => (each.status === "fulfilled" ? each.value : []));
    if (refused !== undefined) {
      for (const target of targets) target.dispose();
      throw refused.reason;
    }
    const copies = tensors.map((each, index) => ({ ...each, tensor: targets[index] as Tensor }));
    const left = tensors.flatMap(({ tensor }, index) => stretchesOf(tensor, targets[index] as Tensor));
    return new BlockCopy(left, copies);
  }

  /** Whether every stretch is copied or under way. */
  get isTaken(): boolean {
    return this.#left.length === 0;
  }

  /** Copies one stretch off-thread. One at a time. */
  async advance(): Promise<void> {
    const next = this.#left.shift();
    if (next === undefined) return;
    this.#underWay = isOfHost(next.from)
      ? copyOffThread(next.from, next.into, next.begin, next.numel)
      : copiedByDevice([next, ...this.#left.splice(0)]);
    await this.#underWay;
  }

  /** Copies in this turn all stretches that are not begun, and waits for those under way. */
  async finish(): Promise<void> {
    const left = this.#left.splice(0);
    const [ofHost, ofDevice] = [
      left.filter(({ from }) => isOfHost(from)),
      left.filter(({ from }) => !isOfHost(from)),
    ];
    if (ofDevice.length > 0)
      this.#underWay = Promise.all([this.#underWay, copiedByDevice(ofDevice)]).then(() => {});
    for (const { from, into, begin, numel } of ofHost) {
      // Results of a scope survive it: the views must not, or they hold the memory that the receiver frees.
      scope(() => {
        into.narrow(0, begin, numel).copy_(from.narrow(0, begin, numel));
      });
    }
    await this.#underWay;
  }

  dispose(): void {
    this.#left.length = 0;
    for (const { tensor } of this.copies) tensor.dispose();
  }
}

const isOfHost = ({ device }: Tensor) => device === "cpu";

/** A device copies its tensors itself, in a stream of its own. @returns fulfilled once all are there */
async function copiedByDevice(stretches: readonly Stretch[]): Promise<void> {
  const copies = stretches.map(({ from, into, begin, numel }) =>
    scope(() => copyBeside(into.narrow(0, begin, numel), from.narrow(0, begin, numel))),
  );
  await Promise.all(copies.map((copy) => copy.arrived()));
}

function stretchesOf(from: Tensor, into: Tensor): Stretch[] {
  return Array.from({ length: Math.ceil(from.numel / STRETCH_NUMEL) }, (_, index) => {
    const begin = index * STRETCH_NUMEL;
    return { from, into, begin, numel: Math.min(STRETCH_NUMEL, from.numel - begin) };
  });
}
