import { crossEntropy, Dropout, IGNORE_INDEX, Linear } from "../../../compute/nn/index.ts";
import { ops, type Tensor } from "../../../compute/tensor/index.ts";
import { TroupeError } from "../../../errors/index.ts";
import { checkField } from "../config-fields.ts";
import type { ModelOutputs } from "../task-model.ts";
import type { StateNaming } from "../weights.ts";
import { hasMaskVector, type Wav2Vec2Config } from "./config.ts";
import { GumbelQuantizer } from "./quantizer.ts";
import type { SpeechFamily } from "./speech-family.ts";
import { type SpeechBatch, SpeechWithHead } from "./speech-with-head.ts";
import { speechNaming } from "./state-dict-adapter.ts";

// B recordings, T frames, K others of each, P width in which states and targets are compared.

/** Recordings of which frames are masked, and what each masked one is to be told from. */
export type MaskedSpeech = Omit<SpeechBatch, "labels"> & {
  /** bool or int64 [B, T]: which frames are masked, see `maskFrames`; all states are those of unmasked frames where undefined. */
  readonly maskTimeIndices?: Tensor | undefined;
  /** int64 [B, T, K], places among all B · T frames: what is read of masked frames alone. Without it there is no loss. */
  readonly sampledNegativeIndices?: Tensor | undefined;
};

/** Less than any cosine, over which temperature: no share is left of it. */
const NEVER = -1e9;

/** A speech model that learns from recordings alone: to tell, behind each masked frame, the code of that frame from others'. */
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
      "above 0: frames are masked",
      config.mask_time_prob,
    );
    checkField(
      where,
      "add_adapter",
      !config.add_adapter,
      "false: each frame has its code",
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
   * @returns `projectedStates` and `projectedQuantizedStates` [B, T, P], `codevectorPerplexity`; and where negatives are given `loss`, a sum
   * over the masked frames, of `contrastiveLoss` and, by `diversity_loss_weight`, `diversityLoss`, with what they are made of:
   * `contrastiveLogits` [B, T, 1 + K], the right frame's first, and `codes` int64 [B, T], as `GumbelQuantizer` numbers them
   * @throws {TroupeError} `MODEL_INPUT` for recordings that are too short for one frame, and negatives without masked frames
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
    if (masked === undefined) throw unmasked(this.constructor.name);
    const { contrastive_logits_temperature: temperature, diversity_loss_weight: weight } = this.config;
    const cosines = cosinesWith(states, targets, others).div(temperature); // [B · T, 1 + K]
    const logits = cosines.maskedFill(sameCodes(codes, others), NEVER);
    const asked = masked.to("int64").sub(1).mul(-IGNORE_INDEX).reshape([-1]); // 0, the own target, or nothing
    const contrastiveLoss = crossEntropy(logits, asked, { reduction: "sum" });
    const { num_codevector_groups: groups, num_codevectors_per_group: codesEach } = this.config;
    const unused = perplexity.div(-groups * codesEach).add(1); // 0 where all are used evenly
    const diversityLoss = unused.mul(masked.sum().to("float32"));
    const loss = contrastiveLoss.add(diversityLoss.mul(weight));
    const contrastiveLogits = logits.view([...codes.shape, -1]);
    return { ...outputs, contrastiveLogits, codes, contrastiveLoss, diversityLoss, loss };
  }
}

/** Of each state with its own target, then with K others: [B, T, P], [B, T, P], [B, T, K] → float32 [B · T, 1 + K]. */
function cosinesWith(states: Tensor, targets: Tensor, others: Tensor): Tensor {
  const [state, target] = [unit(states), unit(targets)]; // [B · T, P]
  const all = state.matmul(target.transpose(0, 1)); // [B · T, B · T]
  const places = others.reshape([-1, others.shape[2] ?? 0]); // [B · T, K]
  return ops.cat([state.mul(target).sum([1], true), all.gather(1, places)], 1);
}

/** Whether one of the K has the frame's own code, which nothing could be told from; the frame itself never: bool [B · T, 1 + K]. */
function sameCodes(codes: Tensor, others: Tensor): Tensor {
  const flat = codes.reshape([-1]); // [B · T]
  const numOthers = others.shape[2] ?? 0;
  const found = flat.indexSelect(0, others.reshape([-1])).view([-1, numOthers]);
  const isSame = found.eq(flat.unsqueeze(1)); // [B · T, K]
  return ops.pad(isSame.to("int64"), [1, 0]).ne(0);
}

/** Of a length that is none: as transformers takes it, and nothing beside any other. */
const SMALLEST_SQUARE = 1e-16;

/** Rows of length 1, float32; those of no length stay. */
function unit(rows: Tensor): Tensor {
  const flat = rows.to("float32").reshape([-1, rows.shape.at(-1) ?? 0]);
  return flat.div(flat.square().sum([1], true).add(SMALLEST_SQUARE).sqrt());
}

function unmasked(where: string): TroupeError {
  return new TroupeError("MODEL_INPUT", {
    where,
    expected: "maskTimeIndices beside sampledNegativeIndices",
    got: "none",
    hint: "maskFrames draws both",
  });
}
