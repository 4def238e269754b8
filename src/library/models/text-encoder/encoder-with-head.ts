import { below, Module, type Parameter, type TensorPlan, vocabulary } from "../../../compute/nn/index.ts";
import type { Tensor } from "../../../compute/tensor/index.ts";
import type { EncoderBatch, ModelOutputs, TaskModel } from "../task-model.ts";
import type { NamedState, StateNaming } from "../weights.ts";
import type { HeadConfig, HeadNeeds, TextEncoder, TextEncoderFamily } from "./text-encoder.ts";

/** An encoder, under its family's name, with the head of a task. */
export abstract class EncoderWithHead<Config extends HeadConfig = HeadConfig>
  extends Module
  implements TaskModel
{
  readonly config: Config;
  readonly #family: TextEncoderFamily<Config>;
  readonly #encoder: TextEncoder;
  readonly #suffix: string;
  readonly #needs: HeadNeeds;

  /**
   * @param suffix - of the architecture's name: `ForMaskedLM`
   * @throws {TroupeError} `MODEL_CONFIG` for fields out of range
   */
  constructor(
    family: TextEncoderFamily<Config>,
    fields: Readonly<Record<string, unknown>>,
    suffix: string,
    needs: HeadNeeds = { reads: "all", pooled: false },
  ) {
    super();
    this.config = family.configOf(fields);
    this.#family = family;
    this.#suffix = suffix;
    this.#needs = needs;
    this.#encoder = family.build(this.config, needs);
    Object.assign(this, { [family.prefix]: this.#encoder }); // modules are named by their property
  }

  /** Returns `loss` for a batch with labels, else the head's output. */
  abstract override forward(batch: EncoderBatch): ModelOutputs;

  get stateNaming(): StateNaming {
    const { decoderName: decoder, config } = this;
    const isTied = decoder !== undefined && config.tie_word_embeddings;
    return this.#family.naming(isTied ? [`${decoder}.weight`, `${decoder}.bias`] : []);
  }

  get configJson(): NamedState["configJson"] {
    return this.#family.configJson(this.config, this.#family.architecture + this.#suffix);
  }

  get tensorPlan(): TensorPlan {
    const { decoderName: decoder } = this;
    return {
      ...below(this.#family.prefix, this.#family.plan(this.config, this.#needs.reads)),
      ...(decoder !== undefined && { [decoder]: vocabulary({ input: "replicated" }) }),
    };
  }

  /** Name of the output layer for words, which is split by words and may be tied; undefined for other heads. */
  protected get decoderName(): string | undefined {
    return undefined;
  }

  /** The head's dropout. */
  protected get dropoutProbability(): number {
    return this.#family.dropoutOf(this.config);
  }

  /** The embedding of words, to which an output layer may be tied. */
  protected get wordEmbedding(): Parameter {
    return this.#encoder.embeddings.word_embeddings.weight;
  }

  /** [B, T, D]; if the head reads only first positions, there may be no others. */
  protected encode(batch: EncoderBatch): Tensor {
    return this.#encoder.forward(batch);
  }

  /** First positions of the result of {@link encode}: [B, D]. */
  protected first(hidden: Tensor, batch: EncoderBatch): Tensor {
    return this.#encoder.first(hidden, batch);
  }

  /** First positions, pooled if the head needs that. */
  protected pool(hidden: Tensor, batch: EncoderBatch): Tensor {
    return (this.#encoder.pooler as NonNullable<TextEncoder["pooler"]>).forward(this.first(hidden, batch));
  }
}
