import * as nn from "../../compute/nn/index.ts";
import { ops, Tensor } from "../../compute/tensor/index.ts";
import { ownValue } from "../../errors/untrusted/index.ts";
import type { Reader } from "../models/index.ts";
import {
  type CommonDeltaOptions,
  type Delta,
  deltaOption,
  deltaTarget,
  type VectorEncoder,
} from "./delta.ts";
import { amongFamilies, headsOf, peftTask } from "./family.ts";
import { promptEntry } from "./peft-names.ts";
import { type PromptEncoderOptions, promptEncoder } from "./prompt-encoder.ts";
import { liesIn } from "./target.ts";

/** Options of {@link softPrompt}. */
export interface SoftPromptOptions extends CommonDeltaOptions {
  /** Number of virtual tokens before every row. Default: 8. */
  readonly numTokens?: number;
  /** Computes the tokens' vectors by a network, as in P-tuning. Default: null, which trains the vectors themselves. */
  readonly encoder?: PromptEncoderOptions | null;
  /** Name of the embedding that looks up tokens. Default: the model's only one over its complete vocabulary. */
  readonly embedding?: string;
}

/** Trained vectors. */
export class Prompt extends nn.Module {
  readonly prompt_embeddings: nn.Parameter;

  constructor(numTokens: number, width: number) {
    super();
    this.prompt_embeddings = new nn.Parameter([numTokens, width], nn.normal(0, 1));
  }

  override forward(): Tensor {
    return this.prompt_embeddings.tensor;
  }
}

/** Replaces the embeddings of the first positions by the vectors of the virtual tokens. */
class InFront extends nn.Module {
  readonly #prompt: VectorEncoder;

  /** @param prompt - a child of another module */
  constructor(prompt: VectorEncoder) {
    super();
    this.#prompt = prompt;
  }

  /** @param rows - [B, n + T, D], of which the first n are replaced */
  override forward(rows: Tensor): Tensor {
    const vectors = this.#prompt.forward();
    const [numTokens = 0] = vectors.shape;
    return joined(vectors, rows.narrow(1, numTokens, (rows.shape[1] ?? 0) - numTokens));
  }
}

/** [n, D] and [B, T, D] → [B, n + T, D]. */
function joined(vectors: Tensor, rows: Tensor): Tensor {
  const prompt = vectors.to(rows.dtype).unsqueeze(0);
  return ops.cat([prompt.expand([rows.shape[0] ?? 0, ...prompt.shape.slice(1)]), rows], 1);
}

/**
 * Trained vectors before every row: prompt tuning, or P-tuning if an encoder computes them. The model is frozen. A decoder has n more
 * positions, without labels, and is refused by `generate`; an encoder-decoder reads them with its encoder.
 * @throws {TroupeError} `DELTA_OPTION`
 * @see Lester et al. 2021, https://arxiv.org/abs/2104.08691
 */
export function softPrompt(options: SoftPromptOptions = {}): Delta {
  const { numTokens = 8, encoder = null, folder } = options;
  if (!Number.isSafeInteger(numTokens) || numTokens < 1)
    throw deltaOption("numTokens", "a whole number ≥ 1", numTokens);
  const savedOf = (model: nn.Module) => options.modulesToSave ?? headsOf(model);
  const prompts = new WeakMap<nn.Module, VectorEncoder>();
  const made = (model: nn.Module, numRows: number, width: number) => {
    const prompt = encoder === null ? new Prompt(numRows, width) : promptEncoder(numRows, width, encoder);
    prompts.set(model, prompt.train(model.training));
    return prompt;
  };
  return {
    peftType: encoder === null ? "PROMPT_TUNING" : "P_TUNING",
    folder,
    attach: (model) => {
      checkModel(model);
      const reader = readerOf(model);
      if (reader !== undefined) {
        // peft has as many again for the decoder, which it never reads.
        const prompt = made(model, 2 * numTokens, reader.width);
        // Modules are named by their property. Virtual tokens have no place in a row of several texts.
        Object.assign(model, { prompt, packs: false });
        nn.wrapForward(reader.stack, (forward, inputs) => {
          const [words, ...rest] = inputs as unknown as [Tensor, ...unknown[]];
          const vectors = prompt.forward().narrow(0, 0, numTokens);
          return (forward as Forward)(joined(vectors, words), ...rest) as never;
        });
        nn.wrapForward(
          model,
          (forward, inputs) =>
            (forward as Forward)(
              ...(inputs as readonly unknown[]).map((each) => seen(each, numTokens)),
            ) as never,
        );
        return;
      }
      const embedding = tokenEmbedding(model, options.embedding);
      const prompt = made(model, numTokens, widthOf(model, options));
      Object.assign(embedding, { prompt });
      embedding.behind = new InFront(prompt);
      nn.wrapForward(model, (forward, inputs) => {
        // The cache counts tokens, which virtual ones are not.
        if (nn.isWriting())
          throw deltaTarget(
            "a model that can generate",
            `a ${model.constructor.name} with a soft prompt`,
            "use prefix or lora to generate",
          );
        return (forward as Forward)(...lengthened(inputs, numTokens)) as never;
      });
    },
    trains: (name, model) => liesIn(name, savedOf(model)),
    // In peft, only models with low-rank maps are nested one level deeper.
    entryOf: (name) => (/(?:^|\.)prompt\./.test(name) ? promptEntry(name) : `base_model.${name}`),
    ...(encoder !== null && { encoder: (model: nn.Module) => prompts.get(model) as VectorEncoder }),
    configJson: (model) => ({
      peft_type: encoder === null ? "PROMPT_TUNING" : "P_TUNING",
      task_type: peftTask(model),
      num_virtual_tokens: numTokens,
      token_dim: widthOf(model, options),
      num_transformer_submodules: readerOf(model) === undefined ? 1 : 2,
      ...(encoder === null
        ? { prompt_tuning_init: "RANDOM" }
        : encoderJson(encoder, widthOf(model, options))),
      modules_to_save: savedOf(model).length === 0 ? null : savedOf(model),
    }),
  };
}

function encoderJson(
  { kind = "MLP", width, numLayers = 2, dropout = 0 }: PromptEncoderOptions,
  numFeatures: number,
) {
  return {
    encoder_reparameterization_type: kind,
    encoder_hidden_size: width ?? numFeatures,
    encoder_num_layers: numLayers,
    encoder_dropout: dropout,
  };
}

type Forward = (...inputs: readonly unknown[]) => unknown;

/** Values at virtual positions, by name of the input. */
const prefixes: Readonly<Record<string, number>> = {
  inputIds: 0,
  attentionMask: 1,
  tokenTypeIds: 0,
  labels: nn.IGNORE_INDEX,
  targets: nn.IGNORE_INDEX,
};

/** Extends a batch, or token ids and a request, by n positions at the start of every input with a value for each position. */
function lengthened(inputs: readonly unknown[], numTokens: number): readonly unknown[] {
  const [first, request] = inputs;
  if (!(first instanceof Tensor)) return [longer(first as Named, numTokens), ...inputs.slice(1)];
  return [
    inFront(first, 0, numTokens),
    ...(request === undefined ? [] : [longer(request as Named, numTokens)]),
  ];
}

type Named = Readonly<Record<string, unknown>>;

function longer(named: Named, numTokens: number): Named {
  return Object.fromEntries(
    Object.entries(named).map(([name, value]) => {
      const prefix = ownValue(prefixes, name);
      const isText = prefix !== undefined && value instanceof Tensor && value.ndim === 2;
      return [name, isText ? inFront(value, prefix, numTokens) : value];
    }),
  );
}

function inFront(ids: Tensor, value: number, numTokens: number): Tensor {
  const prefix = ops
    .zeros([ids.shape[0] ?? 0, numTokens], ids.dtype)
    .add(value)
    .to(ids.dtype);
  return ops.cat([prefix, ids], 1);
}

/** Extends the mask of an encoder's input by n positions. */
function seen(given: unknown, numTokens: number): unknown {
  const { attentionMask: mask } = (given ?? {}) as Named;
  return mask instanceof Tensor ? { ...(given as Named), attentionMask: inFront(mask, 1, numTokens) } : given;
}

/** The part of an encoder-decoder that reads words. */
function readerOf(model: nn.Module): Reader | undefined {
  return amongFamilies((deltas) => deltas.reader?.(model));
}

function checkModel(model: nn.Module): void {
  const { is_encoder_decoder: isTwo } =
    (model as { readonly configJson?: { is_encoder_decoder?: unknown } }).configJson ?? {};
  const reader = readerOf(model);
  const isTwoUnknown = isTwo === true && reader === undefined;
  if (isTwoUnknown || peftTask(model) === "QUESTION_ANS")
    throw deltaTarget("a model with extensible positions", model.constructor.name, "use lora");
  // Here peft looks up words in a shared table that neither stack reads.
  if (reader?.sharesWords === false)
    throw deltaTarget(
      "a model whose stacks share their embedding",
      model.constructor.name,
      "use prefix or lora",
    );
}

function widthOf(model: nn.Module, { embedding }: SoftPromptOptions): number {
  return readerOf(model)?.width ?? tokenEmbedding(model, embedding).weight.shape[1] ?? 0;
}

function tokenEmbedding(model: nn.Module, name: string | undefined): nn.Embedding {
  const { vocab_size: numTokens } =
    (model as { readonly configJson?: { vocab_size?: unknown } }).configJson ?? {};
  const found = [...model.namedModules()].filter(
    ([each, module]) =>
      module instanceof nn.Embedding &&
      (name === undefined
        ? (module.weight.split?.logicalShape ?? module.weight.shape)[0] === numTokens
        : each === name),
  );
  if (found.length === 1) return found[0]?.[1] as nn.Embedding;
  throw deltaTarget("one embedding of tokens", `${found.length} of them`, "name it: embedding");
}
