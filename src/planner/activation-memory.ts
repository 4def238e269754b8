import type { GptShape, RootUse } from "./model-facts.ts";

/** What a micro-batch leaves behind between its forward and its backward. */
export interface ActivationOptions {
  /** Samples × positions of one micro-batch of one rank. */
  readonly numTokens: number;
  /** Bytes of one activation. */
  readonly elementBytes: number;
  /** Ranks that split a layer. */
  readonly tp: number;
  /** Whether what lies between the split parts of a layer is split as well, along the sequence. */
  readonly sequenceParallel: boolean;
  /** Whether blocks keep their input alone and are computed again in backward. */
  readonly recompute: boolean;
  readonly dropout: boolean;
}

/** Statistics of a layer norm: mean and reciprocal deviation, float32. */
const NORM_BYTES = 8;
/** Log-sum-exp of one head and position, float32: all that attention keeps of its scores. */
const HEAD_BYTES = 4;

/**
 * Bytes that autograd keeps of one layer of GPT-2 as Troupe computes it. Of width D: what is normed, twice; query, key
 * and value; the mixed heads; the attended and its sum with the residual stream; of the inner width I: before and after
 * the activation.
 */
export function layerActivationBytes(shape: GptShape, options: ActivationOptions): number {
  const { numTokens, elementBytes, tp, sequenceParallel, dropout } = options;
  const { width, innerWidth, numHeads } = shape;
  // Where dropout is on, what it took and what it gave are both kept, at each of its two places.
  const wholeWidths = dropout ? 8 : 4;
  const whole = (wholeWidths * width * elementBytes + 2 * NORM_BYTES) / (sequenceParallel ? tp : 1);
  const split = ((4 * width + 2 * innerWidth) * elementBytes + numHeads * HEAD_BYTES) / tp;
  return numTokens * (whole + split);
}

/** Bytes kept of a layer from forward to backward: all of it, or its input where backward computes it again. */
export function keptLayerBytes(shape: GptShape, options: ActivationOptions): number {
  const { numTokens, elementBytes, tp, sequenceParallel, recompute } = options;
  if (!recompute) return layerActivationBytes(shape, options);
  return (numTokens * shape.width * elementBytes) / (sequenceParallel ? tp : 1);
}

/**
 * Bytes kept of what lies outside the layers: the embedded tokens and the normed output, and the gradient of the output
 * matrix, which the loss makes in forward.
 */
export function outerActivationBytes(
  shape: GptShape,
  ends: readonly RootUse[],
  options: ActivationOptions,
): number {
  const { numTokens, elementBytes, tp } = options;
  const ofWidth = numTokens * shape.width * elementBytes;
  const first = ends.includes("first") ? ofWidth : 0;
  const head = (shape.vocabulary / tp) * shape.width * elementBytes;
  return ends.includes("last") ? first + ofWidth + numTokens * NORM_BYTES + head : first;
}

/** Logits exist for as many tokens at a time as fit this. */
const LOGITS_CHUNK_BYTES = 64 * 2 ** 20;

/**
 * Bytes the loss needs while it is computed: logits of a chunk of tokens, overwritten by their gradients. Where that
 * takes several chunks, the gradient of the output matrix is summed in float32 besides.
 */
export function lossWorkspaceBytes(shape: GptShape, options: ActivationOptions): number {
  const { numTokens, elementBytes, tp } = options;
  const numWords = shape.vocabulary / tp;
  const numRows = Math.max(1, Math.floor(LOGITS_CHUNK_BYTES / (numWords * elementBytes)));
  if (numTokens <= numRows) return numTokens * numWords * elementBytes;
  return (numRows * elementBytes + shape.width * (4 + elementBytes)) * numWords;
}

/**
 * Bytes a layer's backward needs beside what forward kept: gradients of the inner layer before and after its
 * activation, and of the stream before and after the layer.
 */
export function backwardWorkspaceBytes(shape: GptShape, options: ActivationOptions): number {
  const { numTokens, elementBytes, tp, recompute } = options;
  const gradients = numTokens * elementBytes * (2 * shape.width + (2 * shape.innerWidth) / tp);
  return gradients + (recompute ? layerActivationBytes(shape, options) : 0);
}
