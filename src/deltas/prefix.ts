import { TroupeError } from "../errors.ts";
import { GPT2Attention, LlamaAttention } from "../models/index.ts";
import {
  type Affine,
  behindPrefix,
  Module,
  normal,
  Parameter,
  PrefixHeads,
  setPrefix,
  wrapForward,
} from "../nn/index.ts";
import { ops, Tensor } from "../tensor/index.ts";
import { type Delta, deltaOption, deltaTarget } from "./delta.ts";
import { peftTask } from "./family.ts";

/** What prefix tuning may be told. */
export interface PrefixOptions {
  /** Virtual positions in front of every row; 8 unless told otherwise. */
  readonly numTokens?: number;
  /** A folder as peft writes it whose values it begins with. */
  readonly folder?: string | undefined;
}

/** The keys and values of the virtual positions in every layer. */
class PrefixTable extends Module {
  readonly prompt_embeddings: Parameter;

  constructor(numTokens: number, width: number) {
    super();
    this.prompt_embeddings = new Parameter([numTokens, width], normal(0, 1));
  }

  override forward(): Tensor {
    return this.prompt_embeddings.tensor;
  }
}

/** An attention, the map that makes its keys, and how many heads these are. */
interface Place {
  readonly attention: GPT2Attention | LlamaAttention;
  readonly map: Affine;
  readonly numHeads: number;
}

/**
 * Keys and values in front of every attention's own, trained in place of the model: GPT-2, LLaMA, Mistral and Qwen2. Positions are
 * counted behind them, as transformers does behind what it has seen.
 * @throws {TroupeError} `DELTA_OPTION`
 * @see Li and Liang 2021, https://arxiv.org/abs/2101.00190
 */
export function prefix({ numTokens = 8, folder }: PrefixOptions = {}): Delta {
  if (!Number.isSafeInteger(numTokens) || numTokens < 1)
    throw deltaOption("numTokens", "a whole number ≥ 1", numTokens);
  return {
    peftType: "PREFIX_TUNING",
    folder,
    attach: (model) => {
      const places = placesIn(model);
      const { numHeads, headWidth } = shapeOf(places, model);
      const prompt = new PrefixTable(numTokens, places.length * 2 * numHeads * headWidth);
      Object.assign(model, { prompt }); // a module's name is its property's
      for (const [layer, { attention, map }] of places.entries()) {
        map.prefix = new PrefixHeads(prompt.prompt_embeddings, layer, numHeads, headWidth);
        setPrefix(attention, map.prefix);
      }
      wrapForward(model, (forward, inputs) => {
        const given = inputs as readonly unknown[];
        checkLength(model, given[0], numTokens);
        return behindPrefix(numTokens, () =>
          (forward as Forward)(...given.map((each) => seen(each, numTokens))),
        ) as never;
      });
    },
    trains: () => false,
    entryOf: () => "prompt_embeddings",
    configJson: (model) => {
      const places = placesIn(model);
      const { numHeads, headWidth } = shapeOf(places, model);
      return {
        peft_type: "PREFIX_TUNING",
        task_type: peftTask(model),
        num_virtual_tokens: numTokens,
        token_dim: numHeads * headWidth,
        num_attention_heads: numHeads,
        num_layers: places.length,
        num_transformer_submodules: 1,
        encoder_hidden_size: numHeads * headWidth,
        prefix_projection: false,
      };
    },
  };
}

type Forward = (...inputs: readonly unknown[]) => unknown;

/** A batch or a request with a mask sees the virtual positions too. */
function seen(given: unknown, numTokens: number): unknown {
  const { attentionMask: mask } = (given ?? {}) as { readonly attentionMask?: unknown };
  if (given instanceof Tensor || !(mask instanceof Tensor)) return given;
  const ones = ops.ones([mask.shape[0] ?? 0, numTokens], mask.dtype);
  return { ...(given as object), attentionMask: ops.cat([ones, mask], 1) };
}

function checkLength(model: Module, first: unknown, numTokens: number): void {
  const ids = first instanceof Tensor ? first : (first as { readonly inputIds?: Tensor }).inputIds;
  const { maxPositions = Number.POSITIVE_INFINITY } = model as { readonly maxPositions?: number };
  const length = ids?.shape[1] ?? 0;
  if (numTokens + length <= maxPositions) return;
  throw new TroupeError(
    "MODEL_INPUT",
    {
      where: model.constructor.name,
      expected: `at most ${maxPositions - numTokens} positions behind a prefix of ${numTokens}`,
      got: `${length}`,
    },
    { fields: { length, numTokens, maxPositions } },
  );
}

function placesIn(model: Module): Place[] {
  return [...model.namedModules().values()].flatMap((attention) => {
    const outputs = ({ weight, outputDim }: Affine) =>
      (weight.split?.logicalShape ?? weight.shape)[outputDim] ?? 0;
    if (attention instanceof GPT2Attention)
      return {
        attention,
        map: attention.c_attn,
        numHeads: outputs(attention.c_attn) / 3 / attention.headWidth,
      };
    if (attention instanceof LlamaAttention)
      return { attention, map: attention.k_proj, numHeads: outputs(attention.k_proj) / attention.headWidth };
    return [];
  });
}

function shapeOf(
  places: readonly Place[],
  model: Module,
): { readonly numHeads: number; readonly headWidth: number } {
  const [first] = places;
  if (first === undefined)
    throw deltaTarget(
      "a decoder of GPT-2's or LLaMA's kind for a prefix",
      model.constructor.name,
      "use lora or softPrompt",
    );
  return { numHeads: first.numHeads, headWidth: first.attention.headWidth };
}
