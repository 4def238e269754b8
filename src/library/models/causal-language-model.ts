import {
  below,
  type Embedding,
  Module,
  type TensorPlan,
  VocabularyHead,
  vocabulary,
} from "../../compute/nn/index.ts";
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

/** A family of causal stacks: names in files of its model with an output layer, and tensor-parallel plans. */
export interface CausalFamily<Config extends CausalConfig> {
  /** Name of the stack in a model with an output layer: `transformer`. */
  readonly prefix: string;
  /** Longest context. */
  maxPositions(config: Config): number;
  /** Plan of the stack. */
  plan(config: Config): TensorPlan;
  /** @param withoutHead - whether an output layer in a file is ignored because the model has none of its own */
  naming(withoutHead: boolean): StateNaming;
  configJson(config: Config): NamedState["configJson"];
}

/** A causal stack with an output layer over its vocabulary: it predicts the next token. A family says which stack. */
export abstract class CausalLanguageModel<Config extends CausalConfig = CausalConfig>
  extends Module
  implements LanguageModel, TaskModel
{
  readonly config: Config;
  readonly #family: CausalFamily<Config>;
  abstract readonly lm_head: VocabularyHead;

  constructor(family: CausalFamily<Config>, config: Config) {
    super();
    this.config = config;
    this.#family = family;
  }

  /** Size of the vocabulary: ids are below it. */
  get vocabSize(): number {
    return this.config.vocab_size;
  }

  /** Longest context. */
  get maxPositions(): number {
    return this.#family.maxPositions(this.config);
  }

  /** Names of these parameters in Hugging Face's files. */
  get stateNaming(): StateNaming {
    return this.#family.naming(this.config.tie_word_embeddings);
  }

  get configJson(): NamedState["configJson"] {
    return this.#family.configJson(this.config);
  }

  get tensorPlan(): TensorPlan {
    return { ...below(this.#family.prefix, this.#family.plan(this.config)), lm_head: vocabulary() };
  }

  /** An output layer of the shape and initialization of an embedding, or the embedding itself if they are tied. */
  protected headOver({ weight }: Embedding, options: { readonly bias?: boolean } = {}): VocabularyHead {
    const [numWords = 0, width = 0] = weight.shape;
    const head = new VocabularyHead(width, numWords, weight.init, options);
    if (this.config.tie_word_embeddings) head.weight = weight;
    return head;
  }

  /** The input of the output layer: [B, T] → [B, T, D]. @throws {TroupeError} `MODEL_INPUT` */
  protected abstract states(inputIds: Tensor, places: TextPlaces): Tensor;

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
    const hidden = this.states(inputIds, request); // [B, T, D]
    if (targets) return { loss: this.lm_head.forward(hidden, { targets }) };
    return { logits: this.lm_head.forward(hidden, { numPositions: request.logitsToKeep }) }; // [B, kept, V]
  }
}
