import { crossEntropy, Dropout, IGNORE_INDEX, Linear } from "../../../compute/nn/index.ts";
import { ops, type Tensor } from "../../../compute/tensor/index.ts";
import { checkField } from "../config-fields.ts";
import type { ModelOutputs } from "../task-model.ts";
import { inputError } from "../token-ids.ts";
import type { StateNaming } from "../weights.ts";
import { hasMaskVector, speechNaming, type Wav2Vec2Config } from "./config.ts";
import { GumbelQuantizer } from "./quantizer.ts";
import type { SpeechFamily } from "./speech-family.ts";
import { type SpeechBatch, SpeechWithHead } from "./speech-with-head.ts";

// B recordings, T frames, K distractors of each, P width in which states and targets are compared.

/** Recordings with masked frames, and their distractors. */
export type MaskedSpeech = Omit<SpeechBatch, "labels"> & {
  /** bool or int64 [B, T]: masked frames, see `maskFrames`. Default: none. */
  readonly maskTimeIndices?: Tensor | undefined;
  /** int64 [B, T, K], indices of distractors among all B · T frames, read at masked frames only. Without it there is no loss. */
  readonly sampledNegativeIndices?: Tensor | undefined;
};

/** Below any cosine at any temperature: its share is 0. */
const NEVER = -1e9;

/** A speech model for pre-training on recordings alone: at each masked frame it tells the frame's own code from distractors'. */
export class SpeechForPreTraining extends SpeechWithHead<Wav2Vec2Config> {
  readonly dropout_features: Dropout;
  readonly quantizer: GumbelQuantizer;
  readonly project_hid: Linear;
  readonly project_q: Linear;

  /** @throws {TroupeError} `MODEL_CONFIG` */
  constructor(fields: Readonly<Record<string, unknown>>, family: SpeechFamily<Wav2Vec2Config>) {
    super(family, fields);
    const { config } = this;
    const { codevector_dim: width, num_codevector_groups: groups, proj_codevector_dim: compared } = config;
    const where = this.constructor.name;
    checkField(where, "codevector_dim", width % groups === 0, `a multiple of ${groups} codebooks`, width);
    checkField(
      where,
      "mask_time_prob",
      hasMaskVector(config),
      "above 0: frames are masked in pre-training",
      config.mask_time_prob,
    );
    checkField(
      where,
      "add_adapter",
      !config.add_adapter,
      "false: each frame needs its code",
      config.add_adapter,
    );
    this.dropout_features = new Dropout(config.feat_quantizer_dropout);
    this.quantizer = new GumbelQuantizer(config);
    this.project_hid = new Linear(config.hidden_size, compared);
    this.project_q = new Linear(width, compared);
  }

  override get stateNaming(): StateNaming {
    return speechNaming(super.stateNaming.prefix, []);
  }

  /**
   * @returns `projectedStates` and `projectedQuantizedStates` [B, T, P], `codevectorPerplexity`; with distractors also `loss`, a sum
   *   over the masked frames of `contrastiveLoss` and `diversityLoss`, weighted by `diversity_loss_weight`; both of these;
   *   `contrastiveLogits` [B, T, 1 + K], the right frame's first; and `codes` int64 [B, T], see `GumbelQuantizer`
   */
  override forward({
    maskTimeIndices,
    sampledNegativeIndices: others,
    ...batch
  }: MaskedSpeech): ModelOutputs {
    const masked = maskTimeIndices?.ne(0); // bool [B, T]
    const { hidden, carried } = this.run(batch, {
      masked,
      carry: (normed) => {
        const { vectors, codes, perplexity } = this.quantizer.forward(
          this.dropout_features.forward(normed),
          masked,
        );
        return { targets: this.project_q.forward(vectors), codes, perplexity };
      },
    });
    const states = this.project_hid.forward(hidden);
    const { targets, codes, perplexity } = carried as { targets: Tensor; codes: Tensor; perplexity: Tensor };
    const outputs = {
      projectedStates: states,
      projectedQuantizedStates: targets,
      codevectorPerplexity: perplexity,
    };
    if (others === undefined) return outputs;
    const expected = "maskTimeIndices with sampledNegativeIndices";
    if (masked === undefined)
      throw inputError(this.constructor.name, expected, "none", {}, "maskFrames draws both");
    const { contrastive_logits_temperature: temperature, diversity_loss_weight: weight } = this.config;
    const cosines = cosinesWith(states, targets, others).div(temperature); // [B · T, 1 + K]
    const logits = cosines.maskedFill(sameCodes(codes, others), NEVER);
    const asked = masked.to("int64").sub(1).mul(-IGNORE_INDEX).reshape([-1]); // 0, the own target, or ignored
    const contrastiveLoss = crossEntropy(logits, asked, { reduction: "sum" });
    const { num_codevector_groups: groups, num_codevectors_per_group: codesEach } = this.config;
    const unused = perplexity.div(-groups * codesEach).add(1); // 0 where all are used evenly
    const diversityLoss = unused.mul(masked.sum().to("float32"));
    const loss = contrastiveLoss.add(diversityLoss.mul(weight));
    const contrastiveLogits = logits.view([...codes.shape, -1]);
    return { ...outputs, contrastiveLogits, codes, contrastiveLoss, diversityLoss, loss };
  }
}

/** Cosines of each state with its own target, then with K others: [B, T, P], [B, T, P], [B, T, K] → float32 [B · T, 1 + K]. */
function cosinesWith(states: Tensor, targets: Tensor, others: Tensor): Tensor {
  const [state, target] = [unit(states), unit(targets)]; // [B · T, P]
  const all = state.matmul(target.transpose(0, 1)); // [B · T, B · T]
  const places = others.reshape([-1, others.shape[2] ?? 0]); // [B · T, K]
  return ops.cat([state.mul(target).sum([1], true), all.gather(1, places)], 1);
}

/** Whether a distractor has the frame's own code, which makes them equal; false for the frame itself: bool [B · T, 1 + K]. */
function sameCodes(codes: Tensor, others: Tensor): Tensor {
  const flat = codes.reshape([-1]); // [B · T]
  const numOthers = others.shape[2] ?? 0;
  const found = flat.indexSelect(0, others.reshape([-1])).view([-1, numOthers]);
  const isSame = found.eq(flat.unsqueeze(1)); // [B · T, K]
  return ops.pad(isSame.to("int64"), [1, 0]).ne(0);
}

/** Added to squared lengths, as in transformers, so that zero rows stay zero; negligible for others. */
const SMALLEST_SQUARE = 1e-16;

/** Scales rows to length 1, float32; zero rows stay. */
function unit(rows: Tensor): Tensor {
  const flat = rows.to("float32").reshape([-1, rows.shape.at(-1) ?? 0]);
  return flat.div(flat.square().sum([1], true).add(SMALLEST_SQUARE).sqrt());
}
