import { TroupeError } from "../../../errors/index.ts";
import type { Tensor } from "../../tensor/index.ts";
import type { BlockCall } from "./block-call.ts";

/**
 * Looks in the graphs of one pass for gradients that would be lost: those of tensors that enter or leave a block otherwise than
 * as an argument or a result.
 */
export class TapeChecks {
  readonly #calls: readonly BlockCall[];
  readonly #root: number;
  readonly #numBlocks: number;
  readonly #leavesOf: (block: number) => readonly Tensor[];

  /**
   * @param calls - of the pass, those not walked yet
   * @param root - index of the block that owns the parameters outside all blocks
   * @param numBlocks - the root included
   * @param leavesOf - a block's parameters that are trainable now
   */
  constructor(
    calls: readonly BlockCall[],
    root: number,
    numBlocks: number,
    leavesOf: (block: number) => readonly Tensor[],
  ) {
    this.#calls = calls;
    this.#root = root;
    this.#numBlocks = numBlocks;
    this.#leavesOf = leavesOf;
  }

  /**
   * @param call - the call whose graph is checked; undefined: the graph between the blocks
   * @param open - tensors that only the outer graph may reach
   * @returns the tensors that this graph must not reach: their gradients would be lost
   */
  foreignTo(call: BlockCall | undefined, open: Iterable<Tensor>): Tensor[] {
    const inputs = this.#calls.filter((other) => other !== call).flatMap(({ inputLeaves }) => inputLeaves);
    const parameters: Tensor[] = [];
    for (let block = 0; block < this.#numBlocks; block++)
      if (block !== this.#root && block !== call?.block) parameters.push(...this.#leavesOf(block));
    // An input that its block has passed on is gone with the block's results.
    return [...parameters, ...inputs.filter((leaf) => !leaf.disposed), ...open];
  }
}

/**
 * @param gradients - of the tensors of {@link TapeChecks.foreignTo}
 * @param place - for the error
 * @throws {TroupeError} `BLOCK_TENSOR` if there is one
 */
export function refuseForeign(gradients: readonly (Tensor | null)[], place: string): void {
  if (gradients.every((gradient) => gradient === null)) return;
  throw new TroupeError("BLOCK_TENSOR", {
    where: place,
    expected: "to reach blocks only through what they are given and return",
    got: "a tensor or a parameter of another block past that",
    hint: "return it from the block's forward, and pass it on as an argument",
    fields: { place },
  });
}
