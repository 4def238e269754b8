import * as nn from "../../compute/nn/index.ts";
import { ops, Tensor } from "../../compute/tensor/index.ts";
import { TroupeError } from "../../errors/index.ts";
import type { PrefixedAttention, PrefixedStack } from "../models/index.ts";
import { type Delta, deltaOption, deltaTarget, type VectorEncoder } from "./delta.ts";
import { amongFamilies, peftTask } from "./family.ts";
import { promptEntry } from "./peft-names.ts";
import { Prompt } from "./soft-prompt.ts";

/** Options of {@link prefix} tuning. */
export interface PrefixOptions {
  /** Number of virtual tokens before every row. Default: 8. */
  readonly numTokens?: number;
  /**
   * Computes keys and values from narrower trained vectors, by two layers with this many features between them. Default: null, which
   * trains keys and values themselves.
   */
  readonly projection?: number | null;
  /** Number of layers with keys and values. Default: the model's. For an encoder-decoder peft counts the encoder's layers. */
  readonly numLayers?: number | undefined;
  /** A peft folder with initial values. */
  readonly folder?: string | undefined;
}

/** Trained keys and values of the virtual tokens in every layer. */
class PlainTable extends Prompt implements nn.PrefixTable {
  part(layerIndex: number, width: number): Tensor {
    return this.prompt_embeddings.tensor.narrow(1, layerIndex * width, width);
  }
}

/** Keys and values computed from a narrower table; its parts have peft's names. */
class ProjectedTable extends nn.Module implements nn.PrefixTable {
  readonly embedding: nn.Embedding;
  readonly transform: nn.Sequential;
  readonly #inner: nn.Linear;
  readonly #outer: nn.Linear;

  constructor(
    numTokens: number,
    width: number,
    layers: { readonly inner: number; readonly outputs: number },
  ) {
    super();
    this.embedding = new nn.Embedding(numTokens, width);
    this.#inner = new nn.Linear(width, layers.inner);
    this.#outer = new nn.Linear(layers.inner, layers.outputs);
    this.transform = new nn.Sequential(this.#inner, nn.activations.tanh, this.#outer);
  }

  override forward(): Tensor {
    return this.transform.forward(this.embedding.weight.tensor);
  }

  /** Computes the outputs of one layer only: other layers may be recomputed at other times or be on other stages. */
  part(layerIndex: number, width: number): Tensor {
    const inner = this.#inner.forward(this.embedding.weight.tensor).tanh(); // [n, inner]
    const [weight, bias] = [this.#outer.weight, this.#outer.bias as nn.Parameter].map(({ tensor }) =>
      tensor.narrow(0, layerIndex * width, width),
    );
    return ops.linear(inner, weight as Tensor, bias);
  }
}

/** Limit of tokens, layers and features: an untrusted adapter_config.json may contain any number. */
const MAX_SIZE = 1 << 16;

/**
 * Trained keys and values before those of every attention; the model is frozen. For decoders whose family supports it. Positions
 * count from the end of the prefix, as in transformers.
 * @throws {TroupeError} `DELTA_OPTION`
 * @see Li and Liang 2021, https://arxiv.org/abs/2101.00190
 */
export function prefix({ numTokens = 8, projection = null, numLayers, folder }: PrefixOptions = {}): Delta {
  const sizes = { numTokens, projection, numLayers };
  for (const [option, size] of Object.entries(sizes))
    if (size != null && !(Number.isSafeInteger(size) && size >= 1 && size <= MAX_SIZE))
      throw deltaOption(option, `a whole number from 1 to ${MAX_SIZE}`, size);
  return {
    peftType: "PREFIX_TUNING",
    folder,
    attach: (model) => {
      const found = stackOf(model);
      const { numHeads, headWidth, layers } = shapeOf(found, model, numLayers);
      const width = numHeads * headWidth;
      const outputs = layers.length * 2 * width;
      const prompt =
        projection === null
          ? new PlainTable(numTokens, outputs)
          : new ProjectedTable(numTokens, width, { inner: projection, outputs });
      Object.assign(model, { prompt }); // modules are named by their property
      for (const [index, { attention, map }] of found.attentions.entries()) {
        map.prefix = new nn.PrefixHeads(prompt, layers[index % layers.length] as number, numHeads, headWidth);
        nn.setPrefix(attention, map.prefix);
      }
      nn.wrapForward(found.stack, (forward, inputs) => {
        checkLength(model, found, inputs[0], numTokens);
        return nn.behindPrefix(numTokens, () => forward(...inputs)) as never;
      });
      nn.wrapForward(
        model,
        (forward, inputs) =>
          (forward as Forward)(
            ...(inputs as readonly unknown[]).map((each) => seen(each, found.maskName, numTokens)),
          ) as never,
      );
    },
    trains: () => false,
    entryOf: promptEntry,
    ...(projection !== null && { encoder: (model: nn.Module) => (model as unknown as Prefixed).prompt }),
    configJson: (model) => {
      const { numHeads, headWidth, layers } = shapeOf(stackOf(model), model, numLayers);
      return {
        peft_type: "PREFIX_TUNING",
        task_type: peftTask(model),
        num_virtual_tokens: numTokens,
        token_dim: numHeads * headWidth,
        num_attention_heads: numHeads,
        num_layers: layers.length,
        num_transformer_submodules: peftTask(model) === "SEQ_2_SEQ_LM" ? 2 : 1,
        encoder_hidden_size: projection ?? numHeads * headWidth,
        prefix_projection: projection !== null,
      };
    },
  };
}

type Forward = (...inputs: readonly unknown[]) => unknown;
type Prefixed = { readonly prompt: VectorEncoder };

/** Extends the mask of a batch or a request to the virtual tokens. */
function seen(given: unknown, maskName: string, numTokens: number): unknown {
  const mask = (given as Readonly<Record<string, unknown>> | undefined)?.[maskName];
  if (given instanceof Tensor || !(mask instanceof Tensor)) return given;
  const ones = ops.ones([mask.shape[0] ?? 0, numTokens], mask.dtype);
  return { ...(given as object), [maskName]: ops.cat([ones, mask], 1) };
}

/** @param first - token ids or words, [B, T] or [B, T, D], alone or in a batch */
function checkLength(
  model: nn.Module,
  { maxPositions }: PrefixedStack,
  first: unknown,
  numTokens: number,
): void {
  const ids = first instanceof Tensor ? first : (first as { readonly inputIds?: Tensor }).inputIds;
  const length = ids?.shape[1] ?? 0;
  if (numTokens + length <= maxPositions) return;
  throw new TroupeError("MODEL_INPUT", {
    where: model.constructor.name,
    expected: `at most ${maxPositions - numTokens} positions after a prefix of ${numTokens}`,
    got: `${length}`,
    fields: { length, numTokens, maxPositions },
  });
}

/** @throws {TroupeError} `DELTA_TARGET` for a model whose attentions do not support a prefix */
function stackOf(model: nn.Module): PrefixedStack {
  const found = amongFamilies((deltas) => deltas.prefix?.(model));
  if (found !== undefined) return found;
  throw deltaTarget(
    "a decoder of this library for a prefix",
    model.constructor.name,
    "use lora or softPrompt",
  );
}

/** The number of heads with keys, and the index of each layer's part of the table. */
function shapeOf(
  { attentions, stack }: PrefixedStack,
  model: nn.Module,
  numLayers = attentions.length,
): { readonly numHeads: number; readonly headWidth: number; readonly layers: readonly number[] } {
  const { map, parts, attention } = attentions[0] as PrefixedAttention;
  if (numLayers < attentions.length)
    throw deltaTarget(`a prefix for each of ${attentions.length} layers`, `one for ${numLayers}`);
  const numOutputs = (map.weight.split?.logicalShape ?? map.weight.shape)[map.outputDim] ?? 0;
  const { headWidth } = attention;
  // For an encoder-decoder peft has a second pair in each layer, for the encoder's states, which it never reads.
  const step = stack === model ? 1 : 2;
  const layers = Array.from({ length: numLayers }, (_, index) => (step * index) % numLayers);
  return { numHeads: numOutputs / parts / headWidth, headWidth, layers };
}
