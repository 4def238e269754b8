import type { Size } from "../sizes.ts";
import type { GraphTensor } from "../trace-forward.ts";
import type { GraphBuilder } from "./builder.ts";

// B batch, H query heads, G key/value heads, T queries, S keys, K head width.

/** Attention as `nn.attention` computes it. */
export interface AttentionCall {
  /** [B, H, T, K] */
  readonly q: GraphTensor;
  /** [B, G, S, K] */
  readonly k: GraphTensor;
  /** [B, G, S, K] */
  readonly v: GraphTensor;
  /** bool, true for keys that are seen; broadcasts to [B, H, T, S]. */
  readonly mask: GraphTensor | undefined;
  /** float, added to the scores; broadcasts to [B, H, T, S]. */
  readonly bias: GraphTensor | undefined;
  readonly causal: boolean;
  /** Size of a sliding window; 0 for none. */
  readonly window: number;
  readonly scale: number;
}

/** Makes the nodes of an attention. @returns the value [B, H, T, K] */
export function attention(
  graph: GraphBuilder,
  { q, k, v, mask, bias, causal, window, scale }: AttentionCall,
): string {
  const { dtype } = q;
  const keys = graph.transpose(forEachHead(graph, k, q), [0, 1, 3, 2]);
  const scaled = graph.node("Mul", [graph.value(q), graph.scalar(scale, dtype)]);
  const products = graph.node("MatMul", [scaled, keys]);
  const scores = bias === undefined ? products : graph.node("Add", [products, graph.as(bias, dtype)]);
  const visible = [
    ...(mask === undefined ? [] : [graph.value(mask)]),
    ...(causal || window > 0 ? [nearby(graph, q.shape[2] as Size, k.shape[2] as Size, causal, window)] : []),
  ];
  const lowest = graph.scalar(dtype === "float16" ? -65504 : -3.4028234663852886e38, dtype);
  // Not added: a query that sees no key gets the mean of all values.
  const seen =
    visible.length === 0
      ? scores
      : graph.node("Where", [visible.reduce((a, b) => graph.node("And", [a, b])), scores, lowest]);
  const weights = graph.node("Softmax", [seen], { axis: { int: -1 } });
  return graph.node("MatMul", [weights, forEachHead(graph, v, q)]);
}

/** bool [T, S], true for the keys that a query sees. */
function nearby(
  graph: GraphBuilder,
  numQueries: Size,
  numKeys: Size,
  causal: boolean,
  window: number,
): string {
  const first = graph.node("Sub", [graph.sizeScalar(numKeys), graph.sizeScalar(numQueries)]);
  const places = graph.unsqueeze(graph.node("Add", [graph.range(numQueries), first]), 1); // [T, 1]
  const keys = graph.unsqueeze(graph.range(numKeys), 0); // [1, S]
  const reasons = [
    ...(causal ? [graph.node("LessOrEqual", [keys, places])] : []),
    ...(window > 0
      ? [graph.node("Greater", [keys, graph.node("Sub", [places, graph.scalar(window, "int64")])])]
      : []),
  ];
  return reasons.reduce((a, b) => graph.node("And", [a, b]));
}

/** Repeats each of G heads for its H / G query heads: [B, H, S, K]. */
function forEachHead(graph: GraphBuilder, kept: GraphTensor, q: GraphTensor): string {
  const [batch = 0, groups = 0, length = 0, width = 0] = kept.shape;
  const [, heads = 0] = q.shape;
  if (typeof groups !== "number" || typeof heads !== "number" || groups === heads) return graph.value(kept);
  const alone = graph.unsqueeze(graph.value(kept), 2); // [B, G, 1, S, K]
  const repeated = graph.node("Expand", [alone, graph.constant([1, 1, heads / groups, 1, 1], "int64")]);
  return graph.reshape(
    repeated,
    [batch, groups, heads / groups, length, width],
    [batch, heads, length, width],
  );
}

/** Rotates feature i < R/2 with feature i + R/2, in float32. @param x - [B, H, T, K] @param cosines - [T, R/2] */
export function rotary(
  graph: GraphBuilder,
  x: GraphTensor,
  cosines: GraphTensor,
  sines: GraphTensor,
): string {
  const half = cosines.shape[1] as number;
  const width = x.shape[3] as number;
  const wide = graph.as(x, "float32");
  const [cos, sin] = [graph.as(cosines, "float32"), graph.as(sines, "float32")];
  const [first, second] = [graph.slice(wide, 3, 0, half), graph.slice(wide, 3, half, 2 * half)];
  const product = (a: string, b: string) => graph.node("Mul", [a, b]);
  const turned = [
    graph.node("Sub", [product(first, cos), product(second, sin)]),
    graph.node("Add", [product(second, cos), product(first, sin)]),
  ];
  const rest = width === 2 * half ? [] : [graph.slice(wide, 3, 2 * half, width)];
  return graph.cast(graph.node("Concat", [...turned, ...rest], { axis: { int: 3 } }), "float32", x.dtype);
}
