import { hold, noGrad, scope, type Tensor } from "../../tensor/index.ts";
import { mapTensors } from "./map-tensors.ts";

/** One call of a block in forward: its own autograd graph, from cut inputs and parameter leaves to outputs. */
export interface BlockCall {
  readonly block: number;
  /** What the caller passed: an output of an earlier block, or a tensor of the outer graph. */
  readonly inputs: readonly Tensor[];
  readonly inputLeaves: readonly Tensor[];
  /** Tensors that the block computed; none yet where backward is to compute them again. */
  readonly outputs: readonly Tensor[] | undefined;
  /** What the caller received: the outputs, detached; leaves of the outer graph. */
  readonly outputLeaves: readonly Tensor[];
  /** Inputs that ask for no gradient, kept where the outputs are to be computed again. */
  readonly kept: readonly Tensor[];
  /** Computes the outputs again, from the cut inputs. */
  readonly again: () => unknown;
  /** Of the inputs whose memory is offloaded. */
  readonly tickets: unknown[];
  /** Walks the call where parts of it are computed again. */
  readonly parts: PartTape | undefined;
  /** The parameters that those parts may read, of the block and of the root, as they were trainable in forward. */
  readonly partLeaves: PartLeaves | undefined;
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

/** What a block was called with, cut from the graph outside. */
export interface CutInputs {
  /** The arguments, with leaves in place of what asks for a gradient. */
  readonly args: unknown[];
  readonly inputs: readonly Tensor[];
  readonly inputLeaves: readonly Tensor[];
  readonly kept: readonly Tensor[];
}

/**
 * Cuts the tensors that ask for gradients among a block's arguments.
 * @param keep - whether the others are kept too, for computing again
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

/** What a block returned, its tensors cut. */
export interface CutOutputs<R> {
  readonly result: R;
  readonly outputs: readonly Tensor[] | undefined;
  readonly outputLeaves: readonly Tensor[];
}

/**
 * Runs a block and cuts what it computes. What the tape does not keep is released: its memory is then the leaf's alone.
 * @param again - whether it is to be computed again, and only its values are wanted now
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

/** Releases what a call has made; its inputs are the caller's. */
export function forgetCall({ parts, inputLeaves, kept, outputs = [], outputLeaves }: BlockCall): void {
  parts?.clear();
  for (const tensor of [...inputLeaves, ...kept, ...outputs, ...outputLeaves]) tensor.dispose();
}

function isFloating({ dtype }: Tensor): boolean {
  return dtype === "float32" || dtype === "bfloat16" || dtype === "float16" || dtype === "float64";
}
