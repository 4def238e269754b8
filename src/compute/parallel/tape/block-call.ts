import { type GradientPlace, hold, noGrad, scope, type Tensor } from "../../tensor/index.ts";
import { mapTensors } from "./map-tensors.ts";

/** One call of a block in forward: its own autograd graph, from cut inputs and parameter leaves to outputs. */
export interface BlockCall {
  readonly block: number;
  /** The arguments from the caller: outputs of earlier blocks, or tensors of the outer graph. */
  readonly inputs: readonly Tensor[];
  readonly inputLeaves: readonly Tensor[];
  /** Tensors that the block computed; undefined if backward recomputes them. */
  readonly outputs: readonly Tensor[] | undefined;
  /** Tensors for the caller: the outputs, detached; leaves of the outer graph. */
  readonly outputLeaves: readonly Tensor[];
  /** Inputs without gradient, kept if the outputs are recomputed. */
  readonly kept: readonly Tensor[];
  /** Recomputes the outputs from the cut inputs. */
  readonly again: () => unknown;
  /** Tickets of offloaded inputs. */
  readonly tickets: unknown[];
  /** The tape of the call, if parts of it are recomputed. */
  readonly parts: PartTape | undefined;
  /** The parameters that those parts may read, of the block and of the root, as they were trainable in forward. */
  readonly partLeaves: PartLeaves | undefined;
  /** How the call is replayed or recorded, if it is. */
  readonly program: CallProgram | undefined;
}

/** How one call of a block is replayed, or recorded to be. */
export interface CallProgram {
  /**
   * The gradients of a replayed call.
   * @param given - of its outputs, in order
   * @param own - what gradients are asked of: the inputs' leaves, then trainable parameters
   * @param places - memory for some of them
   * @returns undefined if the call is not replayed: it must be computed again
   */
  backward(
    given: readonly (Tensor | undefined)[],
    own: readonly Tensor[],
    places: () => readonly GradientPlace[],
  ): (Tensor | null)[] | undefined;
  /** The outputs of a call that kept none, with their graph; the caller's to dispose. */
  computeAgain(call: BlockCall): Tensor[];
  /**
   * The gradients that `walk` computes; recorded if forward was.
   * @param given - of the outputs that have gradients
   * @param reached - which outputs have gradients, a letter each
   */
  walk(given: readonly Tensor[], reached: string, walk: () => (Tensor | null)[]): (Tensor | null)[];
  /** Releases what no backward has used. */
  drop(): void;
}

/** A tape of its own for one call of a block. */
export interface PartTape {
  /** @returns gradients of the call's inputs, then of the block's and the root's parameters; the caller's to dispose */
  backward(outputs: readonly Tensor[], gradients: readonly Tensor[]): (Tensor | null)[];
  clear(): void;
}

/** Leaves of a block, and of the root. */
export interface PartLeaves {
  readonly own: readonly Tensor[];
  readonly root: readonly Tensor[];
}

/** A block's arguments, cut from the outer graph. */
export interface CutInputs {
  /** The arguments, with leaves in place of tensors that require gradients. */
  readonly args: unknown[];
  readonly inputs: readonly Tensor[];
  readonly inputLeaves: readonly Tensor[];
  readonly kept: readonly Tensor[];
}

/**
 * Cuts the tensors that require gradients among a block's arguments.
 * @param keep - whether the others are kept too, for recomputation
 * @throws {TroupeError} `BLOCK_TENSOR` for a tensor inside a class instance
 */
export function cutInputs(args: readonly unknown[], keep: boolean): CutInputs {
  const inputs: Tensor[] = [];
  const inputLeaves: Tensor[] = [];
  const kept: Tensor[] = [];
  const cut = mapTensors(args, (tensor) => {
    if (!tensor.requiresGrad) {
      if (!keep) return tensor;
      const alias = hold(tensor.detach());
      kept.push(alias);
      return alias;
    }
    const leaf = hold(tensor.detach().requiresGrad_());
    inputs.push(hold(tensor));
    inputLeaves.push(leaf);
    return leaf;
  }) as unknown[];
  return { args: cut, inputs, inputLeaves, kept };
}

/** A block's result, its tensors cut. */
export interface CutOutputs<R> {
  readonly result: R;
  readonly outputs: readonly Tensor[] | undefined;
  readonly outputLeaves: readonly Tensor[];
}

/**
 * Runs a block and cuts its outputs. Tensors that the tape does not keep are released: their memory is then the leaf's alone.
 * @param again - whether it is recomputed later, and only its values are needed now
 */
export function cutOutputs<R>(forward: () => R, again: boolean): CutOutputs<R> {
  const outputs: Tensor[] = [];
  const outputLeaves: Tensor[] = [];
  const result = scope(() =>
    mapTensors(again ? noGrad(forward) : forward(), (tensor) => {
      if (!(again ? isFloating(tensor) : tensor.requiresGrad)) return tensor;
      const leaf = hold(tensor.detach().requiresGrad_());
      if (!again) outputs.push(hold(tensor));
      outputLeaves.push(leaf);
      return leaf;
    }),
  ) as R;
  return { result, outputs: again ? undefined : outputs, outputLeaves };
}

/** The outputs of a call that kept none, with the graph that forward did not record; the caller's to dispose. */
export function computeAgain(call: BlockCall): Tensor[] {
  const outputs: Tensor[] = [];
  scope(() => {
    mapTensors(call.again(), (tensor) => {
      if (isFloating(tensor)) outputs.push(hold(tensor));
      return tensor;
    });
  });
  return outputs;
}

/** Releases the tensors that a call has made; its inputs are the caller's. */
export function forgetCall({
  parts,
  program,
  inputLeaves,
  kept,
  outputs = [],
  outputLeaves,
}: BlockCall): void {
  parts?.clear();
  program?.drop();
  for (const tensor of [...inputLeaves, ...kept, ...outputs, ...outputLeaves]) tensor.dispose();
}

/** Whether a tensor may have a gradient. */
export function isFloating({ dtype }: Tensor): boolean {
  return dtype === "float32" || dtype === "bfloat16" || dtype === "float16" || dtype === "float64";
}
