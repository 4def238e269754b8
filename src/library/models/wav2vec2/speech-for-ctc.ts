import { ctcLoss, Dropout, type Linear } from "../../../compute/nn/index.ts";
import { linear } from "../encoder-parts.ts";
import type { ModelOutputs } from "../task-model.ts";
import { outputWidth, type SpeechConfig } from "./config.ts";
import { numAdapted, numFrames } from "./features.ts";
import type { SpeechFamily } from "./speech-family.ts";
import { type SpeechBatch, SpeechWithHead } from "./speech-with-head.ts";

/** A speech model for speech recognition by CTC. */
export abstract class SpeechForCTC<Config extends SpeechConfig> extends SpeechWithHead<Config> {
  readonly dropout: Dropout;
  readonly lm_head: Linear;

  /** @throws {TroupeError} `MODEL_CONFIG` */
  constructor(fields: Readonly<Record<string, unknown>>, family: SpeechFamily<Config>) {
    super(family, fields);
    this.dropout = new Dropout(this.config.final_dropout);
    this.lm_head = linear(outputWidth(this.config), this.config.vocab_size, this.config);
  }

  /**
   * @returns `loss`, by `ctc_loss_reduction`, or `logits` [B, T, V]
   * @throws {TroupeError} `MODEL_INPUT` for recordings that are too short for one frame
   */
  override forward(batch: SpeechBatch): ModelOutputs {
    const { attentionMask, labels } = batch;
    const logits = this.lm_head.forward(this.dropout.forward(this.states(batch))); // [B, T, V]
    if (labels === undefined) return { logits };
    const { pad_token_id, ctc_loss_reduction: reduction, ctc_zero_infinity: zeroInfinity } = this.config;
    const heard = attentionMask && numFrames(attentionMask.to("int64").sum([1]), this.config);
    const inputLengths = heard && numAdapted(heard, this.config);
    return {
      loss: ctcLoss(logits, labels, { inputLengths, blank: Number(pad_token_id), reduction, zeroInfinity }),
    };
  }
}
