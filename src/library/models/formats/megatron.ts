import { TroupeError } from "../../../errors/index.ts";
import { biases, modules, type WeightRow, weights } from "./weight-map.ts";

/** How Megatron-LM's ranks share a tensor, and how it lies there. */
interface Form {
  /** Whether a part lies the other way round there: [in, out] instead of [out, in]. */
  readonly transposed?: boolean;
  /** How many maps' rows lie in it, head by head, in the order of the checkpoint's version: queries, keys and values; 0 for none. */
  readonly fused?: 0 | 2 | 3;
  /** The dim that tensor-parallel ranks split; undefined where each holds all of it. */
  readonly splitDim?: 0 | 1 | undefined;
  /** Whether its rows are tokens of the vocabulary, to which Megatron adds rows that mean nothing. */
  readonly perToken?: boolean;
  /** Whether Hugging Face has it as the one row of a matrix. */
  readonly asRow?: boolean;
  /** Hugging Face tensors that hold the same once more: of what Megatron's model uses in two places. */
  readonly copies?: readonly string[];
  /** The layer it belongs to; else the pipeline stage. */
  readonly place: number | "first" | "last";
}

/**
 * A tensor of a Megatron-LM model: the Hugging Face tensors that lie in it, one below the other, and how its ranks share it. Names are
 * those below `model.` of the release of 2022, layers numbered through all stages.
 */
export type MegatronTensor = WeightRow<Form, readonly string[]>;

/** A model as Megatron-LM names it. */
export interface MegatronModel {
  readonly numLayers: number;
  readonly numHeads: number;
  readonly vocabSize: number;
  /** Whether its layers can lie on several stages. */
  readonly isPipelined: boolean;
  readonly tensors: readonly MegatronTensor[];
}

/**
 * How Megatron-LM names the model that a Hugging Face config.json describes.
 * @throws {TroupeError} `MODEL_CONFIG` for sizes that are none, and for what Megatron-LM does not have
 */
export type MegatronForm = (config: Readonly<Record<string, unknown>>) => MegatronModel;

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

/** The twelve tensors of layer `index` of a stack. @param here - the layer's name with Hugging Face, before the names of its parts */
export function megatronLayer(
  index: number,
  here: string,
  names: LayerNames,
  { stack = "encoder", place = index }: { stack?: string; place?: Form["place"] } = {},
): MegatronTensor[] {
  const { norms, attention, attentionOut, feedForward, transposed } = names;
  const named = (name: string, ...parts: readonly string[]) => ({
    [`language_model.${stack}.layers.${index}.${name}`]: parts.map((part) => `${here}.${part}`),
  });
  const byRows: Form = { place, splitDim: 1, transposed };
  const byColumns: Form = { place, splitDim: 0 };
  const split = (module: ReturnType<typeof named>, weight: Form, bias: Form): MegatronTensor[] => [
    ...weights<readonly string[], Form>(module, weight),
    ...biases<readonly string[], Form>(module, bias),
  ];
  return [
    ...modules<readonly string[], Form>(named("input_layernorm", norms[0]), { place }),
    ...split(
      named("self_attention.query_key_value", ...attention),
      { ...byColumns, fused: 3, transposed },
      { ...byColumns, fused: 3 },
    ),
    ...split(named("self_attention.dense", attentionOut), byRows, { place }),
    ...modules<readonly string[], Form>(named("post_attention_layernorm", norms[1]), { place }),
    ...split(named("mlp.dense_h_to_4h", feedForward[0]), { ...byColumns, transposed }, byColumns),
    ...split(named("mlp.dense_4h_to_h", feedForward[1]), byRows, { place }),
  ];
}

/** @throws {TroupeError} `MODEL_CONFIG` unless `holds` */
export function checkMegatron(field: string, holds: boolean, expected: string, got: unknown): void {
  if (holds) return;
  throw new TroupeError(
    "MODEL_CONFIG",
    {
      where: "megatron",
      expected: `${field} to be ${expected}`,
      got: JSON.stringify(got) ?? "none",
      hint: "give the model's Hugging Face config.json",
    },
    { fields: { field, got } },
  );
}
