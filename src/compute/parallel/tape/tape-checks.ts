import { TroupeError } from "../../../errors/index.ts";
import type { Tensor } from "../../tensor/index.ts";
import type { BlockCall } from "./block-call.ts";

/**
 * Finds the tensors that a graph must not reach, because their gradients would be lost: those that enter or leave a block
 * otherwise than as an argument or a result.
 * @param call - the call whose graph is checked; undefined: the graph between the blocks
 * @param open - tensors that only the outer graph may reach
 */
export type ForeignTensors = (call: BlockCall | undefined, open: Iterable<Tensor>) => Tensor[];

/**
 * @param calls - of one pass, those not walked yet
 * @param root - index of the block that owns the parameters outside all blocks
 * @param numBlocks - the root included
 * @param leavesOf - a block's parameters that are trainable now
 */
export function foreignTensors(
  calls: readonly BlockCall[],
  root: number,
  numBlocks: number,
  leavesOf: (block: number) => readonly Tensor[],
): ForeignTensors {
  return (call, open) => {
    const inputs = calls.filter((other) => other !== call).flatMap(({ inputLeaves }) => inputLeaves);
    const parameters: Tensor[] = [];
    for (let block = 0; block < numBlocks; block++)
      if (block !== root && block !== call?.block) parameters.push(...leavesOf(block));
    // An input that its block has passed on is gone with the block's results.
    return [...parameters, ...inputs.filter((leaf) => !leaf.disposed), ...open];
  };
}

/**
 * @param gradients - of {@link ForeignTensors}
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
