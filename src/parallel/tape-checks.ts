import { TroupeError } from "../errors.ts";
import type { Tensor } from "../tensor/index.ts";
import type { BlockCall } from "./block-call.ts";

/**
 * @param call - whose graph is looked at; none: what lies between the blocks
 * @param calls - of the pass
 * @param otherLeaves - the parameters of all blocks but the call's
 * @param open - what only the outer graph may reach
 * @returns what that graph must not reach: its gradient would be lost
 */
export function foreignTo(
  call: BlockCall | undefined,
  calls: readonly BlockCall[],
  otherLeaves: readonly Tensor[],
  open: Iterable<Tensor>,
): Tensor[] {
  const inputs = calls.filter((other) => other !== call).flatMap(({ inputLeaves }) => inputLeaves);
  // An input that its block has passed on is gone with the block's results.
  return [...otherLeaves, ...inputs.filter((leaf) => !leaf.disposed), ...open];
}

/**
 * @param gradients - of what {@link foreignTo} has named
 * @param place - for the error
 * @throws {TroupeError} `BLOCK_TENSOR` where there is one
 */
export function refuseForeign(gradients: readonly (Tensor | null)[], place: string): void {
  if (gradients.every((gradient) => gradient === null)) return;
  throw new TroupeError(
    "BLOCK_TENSOR",
    `[${place}] expected to reach blocks only through what they are given and return: got a tensor or a parameter of another block past that (return it from the block's forward, and pass it on as an argument)`,
    { fields: { place } },
  );
}
