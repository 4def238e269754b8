import { checkField } from "../config-fields.ts";
import { biases, modules, type WeightRow, weights } from "./weight-map.ts";

/** Layout of a tensor in Megatron-LM, and how its ranks split it. */
interface Form {
  /** Whether Hugging Face's matrices are transposed there: [in, out] instead of [out, in]. */
  readonly transposed?: boolean;
  /** Number of maps whose rows are interleaved by head, in the order of the checkpoint's version: queries, keys and values; 0: none. */
  readonly fused?: 0 | 2 | 3;
  /** The dim that tensor-parallel ranks split; undefined if each has all of it. */
  readonly splitDim?: 0 | 1 | undefined;
  /** Whether its rows are tokens of the vocabulary, which Megatron pads. */
  readonly perToken?: boolean;
  /** Whether Hugging Face has it as a matrix of one row. */
  readonly asRow?: boolean;
  /** Hugging Face's copies of it, where Megatron's model uses one tensor twice. */
  readonly copies?: readonly string[];
  /** Its layer, else the first or last pipeline stage. */
  readonly place: number | "first" | "last";
}

/**
 * A tensor of a Megatron-LM model: the Hugging Face tensors that it stacks, and how ranks split it. Names are those below `model.` in
 * the release of 2022, with layers numbered across all stages.
 */
export type MegatronTensor = WeightRow<Form, readonly string[]>;

/** A model in Megatron-LM's names. */
export interface MegatronModel {
  readonly numLayers: number;
  readonly numHeads: number;
  readonly vocabSize: number;
  /** Whether several stages can split its layers. */
  readonly isPipelined: boolean;
  readonly tensors: readonly MegatronTensor[];
}

/**
 * Maps the model of a Hugging Face config.json to Megatron-LM's names.
 * @throws {TroupeError} `MODEL_CONFIG` for invalid sizes, and for settings that Megatron-LM lacks
 */
export type MegatronForm = (config: Readonly<Record<string, unknown>>) => MegatronModel;

/** Hugging Face's names in the layers of a family. */
export interface LayerNames {
  /** The norm before attention, and the one before the feed-forward half. */
  readonly norms: readonly [string, string];
  /** Queries, keys and values: one matrix, or three. */
  readonly attention: readonly string[];
  readonly attentionOut: string;
  readonly feedForward: readonly [string, string];
  /** Whether matrices are [in, out]. */
  readonly transposed: boolean;
}

/** The twelve tensors of layer `index` of a stack. @param here - Hugging Face's name of the layer, before those of its parts */
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
  checkField("megatron", field, holds, expected, got, "give the model's Hugging Face config.json");
}
