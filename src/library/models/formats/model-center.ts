/** A tensor of a model of ModelCenter, and Hugging Face's that holds the same. */
export interface ModelCenterTensor {
  readonly name: string;
  /** Hugging Face's. */
  readonly of: string;
  /** Which of the three maps in one matrix it is: queries, keys or values; undefined where it is all of `of`. */
  readonly third?: 0 | 1 | 2;
  /** Whether Hugging Face has the matrix the other way round. */
  readonly transposed?: boolean;
  /**
   * That another tensor of ModelCenter's stands for `of` as well: `equal`, where both are used and must hold the same; `unread`, where
   * this one is of no use to its model, whatever it holds.
   */
  readonly copy?: "equal" | "unread";
}

/** A model as ModelCenter names it. */
export interface ModelCenterModel {
  readonly tensors: readonly ModelCenterTensor[];
  /** Names there of heads that Hugging Face's model has none of. */
  readonly ignored: readonly RegExp[];
  /** Names with Hugging Face of what is a copy, or no parameter. */
  readonly ignoredHere: readonly RegExp[];
}

/** Weight and bias of one module, or its weight alone. */
export function modules(
  pairs: readonly (readonly [modelCenter: string, huggingFace: string])[],
  { bias = true }: { bias?: boolean } = {},
): ModelCenterTensor[] {
  const kinds = bias ? ["weight", "bias"] : ["weight"];
  return pairs.flatMap(([there, here]) =>
    kinds.map((kind) => ({ name: `${there}.${kind}`, of: `${here}.${kind}` })),
  );
}

/** The maps of an attention, by their names with Hugging Face: queries, keys, values and what is behind them. */
export function attention(
  block: string,
  [query, key, value, out]: readonly [string, string, string, string],
  form: { bias?: boolean } = {},
): ModelCenterTensor[] {
  const name = `${block}.self_attention`;
  return modules(
    [
      [`${name}.project_q`, query],
      [`${name}.project_k`, key],
      [`${name}.project_v`, value],
      [`${name}.attention_out`, out],
    ],
    form,
  );
}
