import * as nn from "../../../compute/nn/index.ts";
import { type Tensor, zeros } from "../../../compute/tensor/index.ts";
import { type NamesOf, optionErrors, refuseUnknown } from "../../../errors/index.ts";
import type { ExpertConfig } from "../family.ts";
import type { LanguageModel, Logits, Loss, TextPlaces, TextRequest, TextTargets } from "../language-model.ts";
import { checkTokenIds, placesIn, targetsOf } from "../token-ids.ts";
import { type GPT2Config, gpt2Config } from "./config.ts";
import { GPT2Attention, GPT2MLP } from "./model.ts";
import { gpt2StackPlan } from "./tensor-plan.ts";

// B batch, T positions, D width, V vocabulary.

const expertNames: NamesOf<ExpertConfig> = {
  ...{ numExperts: true, auxiliaryWeight: true, residual: true, mixture: true },
};

/** The loss and its parts. */
export interface MixtureLoss extends Loss {
  /** float32 scalar: sum of the layers' auxiliary losses, unweighted; at best the number of layers. */
  readonly auxiliaryLoss: Tensor;
  /** The terms of `loss`, to be reported by name; the auxiliary one is weighted. */
  readonly losses: { readonly crossEntropy: Tensor; readonly auxiliary: Tensor };
}

/** One layer: attention, and a mixture of experts instead of the feed-forward half. */
class GPT2MoEBlock extends nn.Module {
  readonly ln_1: nn.LayerNorm;
  readonly attn: GPT2Attention;
  readonly ln_2: nn.LayerNorm;
  readonly moe: nn.MixtureOfExperts;
  readonly dropout: nn.Dropout;

  constructor(config: GPT2Config, experts: ExpertConfig, layerIndex: number) {
    super();
    const { n_embd, n_inner, layer_norm_epsilon, initializer_range, activation_function, n_layer } = config;
    const init = nn.normal(0, initializer_range);
    this.ln_1 = new nn.LayerNorm(n_embd, layer_norm_epsilon);
    this.attn = new GPT2Attention(config, layerIndex);
    this.ln_2 = new nn.LayerNorm(n_embd, layer_norm_epsilon);
    this.moe = new nn.MixtureOfExperts(
      n_embd,
      new nn.ExpertMLP(experts.numExperts, n_embd, n_inner ?? 4 * n_embd, {
        activation: activation_function,
        init,
        outInit: nn.normal(0, initializer_range / Math.sqrt(2 * n_layer)),
      }),
      { ...experts.mixture, init, ...(experts.residual === true && { residual: new GPT2MLP(config) }) },
    );
    this.dropout = new nn.Dropout(config.resid_pdrop);
  }

  /**
   * @param x - [B, T, D]
   * @param auxiliary - scalar: sum of earlier layers' auxiliary losses
   * @param mask - as in GPT-2's layer
   */
  override forward(
    x: Tensor,
    auxiliary: Tensor,
    mask?: Tensor | nn.PackedRow,
  ): [x: Tensor, auxiliary: Tensor] {
    const attended = this.attn.forward(this.ln_1.forward(x), mask); // [B, T, D]
    const [sum, normed] = this.ln_2.addThenNorm(attended, x); // both [B, T, D]
    const { output, auxiliaryLoss } = this.moe.forward(normed); // [B, T, D]
    return [sum.add(this.dropout.forward(output)), auxiliary.add(auxiliaryLoss)];
  }
}

/** GPT-2 with experts in every layer, for causal language modelling. */
export class GPT2MoELMHeadModel extends nn.Module implements LanguageModel, nn.TensorSplittable {
  readonly config: GPT2Config;
  readonly auxiliaryWeight: number;
  readonly wte: nn.Embedding;
  readonly wpe: nn.Embedding;
  readonly drop: nn.Dropout;
  readonly h: nn.ModuleList<GPT2MoEBlock>;
  readonly ln_f: nn.LayerNorm;
  readonly lm_head: nn.VocabularyHead;

  /** @throws `MODEL_CONFIG` for fields out of range */
  constructor(fields: Partial<GPT2Config>, experts: ExpertConfig) {
    super();
    const config = gpt2Config(fields);
    refuseUnknown("MODEL_CONFIG", "ExpertConfig", experts, expertNames);
    const { auxiliaryWeight = 0.01 } = experts;
    if (!(auxiliaryWeight >= 0))
      throw optionErrors("MODEL_CONFIG", "ExpertConfig")("auxiliaryWeight", "≥ 0", auxiliaryWeight);
    const init = nn.normal(0, config.initializer_range);
    this.config = config;
    this.auxiliaryWeight = auxiliaryWeight;
    this.wte = new nn.Embedding(config.vocab_size, config.n_embd, init);
    this.wpe = new nn.Embedding(config.n_positions, config.n_embd, init);
    this.drop = new nn.Dropout(config.embd_pdrop);
    this.h = nn.ModuleList.of(config.n_layer, (layer) => new GPT2MoEBlock(config, experts, layer));
    this.ln_f = new nn.LayerNorm(config.n_embd, config.layer_norm_epsilon);
    this.lm_head = new nn.VocabularyHead(config.n_embd, config.vocab_size, init);
    if (config.tie_word_embeddings) this.lm_head.weight = this.wte.weight;
  }

  /** Attention and vocabulary are split; every tensor-parallel rank has all experts, and all positions of their tokens. */
  get tensorPlan(): nn.TensorPlan {
    const stack = Object.entries(gpt2StackPlan(this.config)).filter(([name]) => !name.startsWith("h.*.mlp."));
    return {
      ...Object.fromEntries(stack),
      "h.*.moe": nn.replicated(),
      "h.*.dropout": { kind: "sequence", input: "sequence", output: "sequence" },
      lm_head: nn.vocabulary(),
    };
  }

  /** Size of the vocabulary: ids are below it. */
  get vocabSize(): number {
    return this.config.vocab_size;
  }

  /** Tokens of several texts can share a row, each with its position. */
  get packs(): boolean {
    return true;
  }

  get maxPositions(): number {
    return this.config.n_positions;
  }

  override forward(inputIds: Tensor, asked: TextPlaces & TextTargets): MixtureLoss;
  override forward(inputIds: Tensor, options?: TextPlaces & { readonly logitsToKeep?: number }): Logits;
  /**
   * @param inputIds - [B, T], int64
   * @param request - as in GPT-2
   * @returns `loss`, including the weighted auxiliary loss, or `logits` [B, kept, V]
   * @throws `MODEL_INPUT`
   */
  override forward(inputIds: Tensor, request: TextRequest = {}): MixtureLoss | Logits {
    const { length, mask, positions } = placesIn("GPT2MoELMHeadModel", inputIds, request);
    checkTokenIds("GPT2MoELMHeadModel", inputIds, this.vocabSize, this.maxPositions, length);
    const targets = targetsOf("GPT2MoELMHeadModel", inputIds, request);
    const placed = this.wpe.forward(positions ?? nn.positionsHere(length)); // [T, D]
    let x = this.drop.forward(this.wte.forward(inputIds).add(placed)); // [B, T, D]
    let auxiliaryLoss = zeros([]);
    for (const block of this.h) [x, auxiliaryLoss] = block.forward(x, auxiliaryLoss, mask);
    const hidden = this.ln_f.forward(x); // [B, T, D]
    if (!targets) return { logits: this.lm_head.forward(hidden, { numPositions: request.logitsToKeep }) };
    const crossEntropy = this.lm_head.forward(hidden, { targets });
    const auxiliary = auxiliaryLoss.mul(this.auxiliaryWeight);
    return { loss: crossEntropy.add(auxiliary), auxiliaryLoss, losses: { crossEntropy, auxiliary } };
  }
}
