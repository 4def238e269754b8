import { MASTER, type Piece } from "../../../compute/parallel/index.ts";
import { attach, hold } from "../../../compute/tensor/index.ts";
import type { HeldWeights, KeptState } from "../../protocols/index.ts";
import { StateImage } from "./state-image.ts";

/** Attaches weights that were given to the checkpointer. @returns the state and its image, as {@link KeptCopy.replace} takes them */
export function heldState({ step, progress, tensors }: HeldWeights): [KeptState, StateImage] {
  const image = new StateImage();
  for (const [name, { shape, values: ref }] of Object.entries(tensors)) {
    const values = hold(() => attach(ref));
    image.add({ kind: MASTER, pieces: [pieceOf(name, shape, values.numel)], values });
  }
  return [{ step, progress, sizeBytes: image.sizeBytes }, image];
}

/** All of a tensor in one piece. @param numel - its float32 elements, as the state keeps them */
export function pieceOf(name: string, shape: readonly number[], numel: number): Piece {
  const parameter = { name, shape, numel, offset: 0 } as Piece["parameter"];
  return { parameter, parameterBegin: 0, rangeBegin: 0, numel };
}
