/**
 * A tensor of a Megatron-LM model: what it is called there, of which Hugging Face tensors it is made, and how its ranks
 * share it. Names are those below `model.` of the release of 2022, layers numbered through all stages.
 */
export interface MegatronTensor {
  readonly name: string;
  /** The Hugging Face tensors that lie in it, one below the other. */
  readonly parts: readonly string[];
  /** Whether a part lies the other way round there: [in, out] instead of [out, in]. */
  readonly transposed: boolean;
  /** Whether its rows are the queries, keys and values of heads, whose order depends on the checkpoint's version. */
  readonly fused: boolean;
  /** The dim that tensor-parallel ranks split; undefined where each holds the whole tensor. */
  readonly splitDim: 0 | 1 | undefined;
  /** Whether its rows are tokens of the vocabulary, to which Megatron adds rows that mean nothing. */
  readonly perToken: boolean;
  /** The layer it belongs to; else the pipeline stage. */
  readonly place: number | "first" | "last";
}

/** A model as Megatron-LM names it. */
export interface MegatronModel {
  readonly numLayers: number;
  readonly numHeads: number;
  readonly vocabSize: number;
  readonly tensors: readonly MegatronTensor[];
}

type Form = Partial<Pick<MegatronTensor, "transposed" | "fused" | "splitDim" | "perToken">>;

/** One tensor; what `form` leaves out is the plain case. */
export function megatronTensor(
  place: MegatronTensor["place"],
  name: string,
  parts: string | readonly string[],
  form: Form = {},
): MegatronTensor {
  const { transposed = false, fused = false, splitDim, perToken = false } = form;
  const all = typeof parts === "string" ? [parts] : parts;
  return { name, parts: all, transposed, fused, splitDim, perToken, place };
}

/** How the layers of a family hold what both families have. */
export interface LayerNames {
  /** The layer norm before attention, and the one before the feed-forward half. */
  readonly norms: readonly [string, string];
  /** Queries, keys and values: one matrix, or three. */
  readonly attention: readonly string[];
  readonly attentionOut: string;
  readonly feedForward: readonly [string, string];
  /** Whether matrices lie as [in, out]. */
  readonly transposed: boolean;
}

/** The twelve tensors of layer `index`. */
export function megatronLayer(index: number, names: LayerNames): MegatronTensor[] {
  const layer = `language_model.encoder.layers.${index}`;
  const { norms, attention, attentionOut, feedForward, transposed } = names;
  const both = (
    name: string,
    parts: readonly string[],
    weight: Form,
    bias: Form = {},
  ): readonly MegatronTensor[] => [
    megatronTensor(
      index,
      `${layer}.${name}.weight`,
      parts.map((part) => `${part}.weight`),
      weight,
    ),
    megatronTensor(
      index,
      `${layer}.${name}.bias`,
      parts.map((part) => `${part}.bias`),
      bias,
    ),
  ];
  const byColumns = { splitDim: 0 } as const;
  const byRows = { splitDim: 1, transposed } as const;
  return [
    ...both("input_layernorm", [norms[0]], {}),
    ...both(
      "self_attention.query_key_value",
      attention,
      { ...byColumns, fused: true, transposed },
      { ...byColumns, fused: true },
    ),
    ...both("self_attention.dense", [attentionOut], byRows),
    ...both("post_attention_layernorm", [norms[1]], {}),
    ...both("mlp.dense_h_to_4h", [feedForward[0]], { ...byColumns, transposed }, byColumns),
    ...both("mlp.dense_4h_to_h", [feedForward[1]], byRows),
  ];
}
