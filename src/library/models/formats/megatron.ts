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
  /** How many maps' rows lie in it, head by head, in the order of the checkpoint's version: queries, keys and values; 0 for none. */
  readonly fused: 0 | 2 | 3;
  /** The dim that tensor-parallel ranks split; undefined where each holds the whole tensor. */
  readonly splitDim: 0 | 1 | undefined;
  /** Whether its rows are tokens of the vocabulary, to which Megatron adds rows that mean nothing. */
  readonly perToken: boolean;
  /** Whether Hugging Face has it as the one row of a matrix. */
  readonly asRow: boolean;
  /** Hugging Face tensors that hold the same once more: of what Megatron's model uses in two places. */
  readonly copies: readonly string[];
  /** The layer it belongs to; else the pipeline stage. */
  readonly place: number | "first" | "last";
}

/** A model as Megatron-LM names it. */
export interface MegatronModel {
  readonly numLayers: number;
  readonly numHeads: number;
  readonly vocabSize: number;
  /** Whether its layers can lie on several stages. */
  readonly isPipelined: boolean;
  readonly tensors: readonly MegatronTensor[];
}

type Form = Partial<
  Pick<MegatronTensor, "transposed" | "fused" | "splitDim" | "perToken" | "asRow" | "copies">
>;

/** One tensor; what `form` leaves out is the plain case. */
export function megatronTensor(
  place: MegatronTensor["place"],
  name: string,
  parts: string | readonly string[],
  form: Form = {},
): MegatronTensor {
  const { transposed = false, fused = 0, splitDim, perToken = false, asRow = false, copies = [] } = form;
  const all = typeof parts === "string" ? [parts] : parts;
  return { name, parts: all, transposed, fused, splitDim, perToken, asRow, copies, place };
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

/** Weight and bias of one module. */
export function megatronModule(
  place: MegatronTensor["place"],
  name: string,
  parts: readonly string[],
  weight: Form = {},
  bias: Form = {},
): MegatronTensor[] {
  const each = (kind: string, form: Form) =>
    megatronTensor(
      place,
      `${name}.${kind}`,
      parts.map((part) => `${part}.${kind}`),
      form,
    );
  return [each("weight", weight), each("bias", bias)];
}

/** The twelve tensors of layer `index` of a stack. */
export function megatronLayer(
  index: number,
  names: LayerNames,
  { stack = "encoder", place = index }: { stack?: string; place?: MegatronTensor["place"] } = {},
): MegatronTensor[] {
  const layer = `language_model.${stack}.layers.${index}`;
  const { norms, attention, attentionOut, feedForward, transposed } = names;
  const both = (name: string, parts: readonly string[], weight: Form, bias: Form = {}) =>
    megatronModule(place, `${layer}.${name}`, parts, weight, bias);
  const byColumns = { splitDim: 0 } as const;
  const byRows = { splitDim: 1, transposed } as const;
  return [
    ...both("input_layernorm", [norms[0]], {}),
    ...both(
      "self_attention.query_key_value",
      attention,
      { ...byColumns, fused: 3, transposed },
      { ...byColumns, fused: 3 },
    ),
    ...both("self_attention.dense", [attentionOut], byRows),
    ...both("post_attention_layernorm", [norms[1]], {}),
    ...both("mlp.dense_h_to_4h", [feedForward[0]], { ...byColumns, transposed }, byColumns),
    ...both("mlp.dense_4h_to_h", [feedForward[1]], byRows),
  ];
}
