import * as nn from "../../compute/nn/index.ts";
import type { Tensor } from "../../compute/tensor/index.ts";
import {
  type CausalBatch,
  type LanguageModel,
  type Logits,
  type Loss,
  requestOf,
  type TextPlaces,
  type TextRequest,
  type TextTargets,
} from "./language-model.ts";
import type { ModelOutputs, TaskModel } from "./task-model.ts";
import { targetsOf } from "./token-ids.ts";
import type { NamedState, StateNaming } from "./weights.ts";

/** The fields of a configuration that an output layer needs. */
export interface CausalConfig {
  readonly vocab_size: number;
  /** Whether the output layer is the token embedding itself. */
  readonly tie_word_embeddings: boolean;
}

/** A stack without an output layer. */
export interface CausalStack extends nn.Module {
  /** @returns [B, T, D], the input of the output layer @throws {TroupeError} `MODEL_INPUT` */
  forward(inputIds: Tensor, places: TextPlaces): Tensor;
}

/** A family of causal stacks: how to build one, its names in files, and its tensor-parallel plan. */
export interface CausalFamily<Config extends CausalConfig> {
  /** Name of the stack in a model with an output layer: `transformer`. */
  readonly prefix: string;
  /** @throws {TroupeError} `MODEL_CONFIG` for fields out of range */
  configOf(fields: Readonly<Record<string, unknown>>): Config;
  build(config: Config): CausalStack;
  /** Name of the token embedding in the stack; the output layer has its shape and initialization. */
  readonly words: string;
  /** Whether the output layer has a bias. Default: no. */
  readonly headBias?: boolean;
  /** Longest context. */
  maxPositions(config: Config): number;
  /** Whether angles of positions depend on the length of the text, so that tokens of several cannot share a row. Default: no. */
  turnsByLength?(config: Config): boolean;
  /** Plan of the stack. */
  plan(config: Config): nn.TensorPlan;
  /** Names in files, without the prefix, of entries that are no parameters. Default: none. */
  readonly buffers?: readonly RegExp[];
  /** Other spellings in files, see {@link StateNaming}. */
  readonly renamed?: StateNaming["renamed"];
  /** @param suffix - of the architecture's name: `ForCausalLM`, or `Model` for the stack alone */
  configJson(config: Config, suffix: string): NamedState["configJson"];
}

/**
 * Names of a family's parameters in files.
 * @param withoutHead - whether an output layer in a file is ignored: the model has none of its own
 */
export function causalNaming<Config extends CausalConfig>(
  { prefix, buffers = [], renamed = [] }: CausalFamily<Config>,
  withoutHead: boolean,
): StateNaming {
  const ignored = withoutHead ? [...buffers, /^lm_head\.weight$/] : buffers;
  return { prefix: `${prefix}.`, ignored, renamed };
}

/** A causal stack with an output layer over its vocabulary: it predicts the next token. A family says which stack. */
export abstract class CausalLanguageModel<Config extends CausalConfig = CausalConfig>
  extends nn.Module
  implements LanguageModel, TaskModel
{
  readonly config: Config;
  readonly #family: CausalFamily<Config>;
  readonly #stack: CausalStack;
  declare readonly lm_head: nn.VocabularyHead;

  /** @throws {TroupeError} `MODEL_CONFIG` for fields out of range */
  constructor(fields: Readonly<Record<string, unknown>>, family: CausalFamily<Config>) {
    super();
    this.config = family.configOf(fields);
    this.#family = family;
    this.#stack = family.build(this.config);
    const { weight } = this.#stack.namedModules().get(family.words) as nn.Embedding;
    const [numWords = 0, width = 0] = weight.shape;
    const head = new nn.VocabularyHead(width, numWords, weight.init, { bias: family.headBias === true });
    if (this.config.tie_word_embeddings) head.weight = weight;
    Object.assign(this, { [family.prefix]: this.#stack, lm_head: head }); // modules are named by their property
  }

  /** Size of the vocabulary: ids are below it. */
  get vocabSize(): number {
    return this.config.vocab_size;
  }

  /** Longest context. */
  get maxPositions(): number {
    return this.#family.maxPositions(this.config);
  }

  /** Whether tokens of several texts can share a row, each with its position. */
  get packs(): boolean {
    return this.#family.turnsByLength?.(this.config) !== true;
  }

  /** Names of these parameters in Hugging Face's files. */
  get stateNaming(): StateNaming {
    return causalNaming(this.#family, this.config.tie_word_embeddings);
  }

  get configJson(): NamedState["configJson"] {
    return this.#family.configJson(this.config, "ForCausalLM");
  }

  get tensorPlan(): nn.TensorPlan {
    return { ...nn.below(this.#family.prefix, this.#family.plan(this.config)), lm_head: nn.vocabulary() };
  }

  override forward(inputIds: Tensor, asked: TextPlaces & TextTargets): Loss;
  override forward(inputIds: Tensor, options?: TextPlaces & { readonly logitsToKeep?: number }): Logits;
  override forward(batch: CausalBatch): ModelOutputs;
  /**
   * @param input - ids [B, T], int64, or a batch: ids, mask and labels in one record
   * @param asked.attentionMask, asked.segments, asked.positionIds - see {@link TextPlaces}
   * @param asked.labels - [B, T], int64, the inputs themselves: position t predicts label t + 1
   * @param asked.targets - [B, T], int64, already shifted: position t predicts target t; −100 is left out of the loss
   * @param asked.logitsToKeep - number of last positions with logits; default all
   * @returns `loss` (float32 scalar, mean nats per token) if there are labels or targets, without ever holding all logits; else
   *   `logits` [B, kept, V]
   * @throws {TroupeError} `MODEL_INPUT`
   */
  override forward(input: Tensor | CausalBatch, asked?: TextRequest): Loss | Logits {
    const { inputIds, request } = requestOf(input, asked);
    const targets = targetsOf(this.constructor.name, inputIds, request);
    const hidden = this.#stack.forward(inputIds, request); // [B, T, D]
    if (targets) return { loss: this.lm_head.forward(hidden, { targets }) };
    return { logits: this.lm_head.forward(hidden, { numPositions: request.logitsToKeep }) }; // [B, kept, V]
  }
}
