import type { Module } from "../../../compute/nn/index.ts";
import type { Tensor } from "../../../compute/tensor/index.ts";
import type { LanguageModel } from "../language-model.ts";
import type { NamedState } from "../weights.ts";

/** A model that generates text: a continuation, or an encoder-decoder's reply. */
export type GenerativeModel = LanguageModel | Seq2SeqModel;

/** An encoder-decoder that generates text: T5, BART. */
export interface Seq2SeqModel extends Module, NamedState {
  /** Longest text of the decoder, and of the encoder. Default: any. */
  readonly maxPositions?: number;
  /** Whether several texts can share a row of either, by `segments` and `decoderPositionIds`. Default: no. */
  readonly packs?: boolean;
  forward(batch: {
    readonly inputIds: Tensor;
    readonly attentionMask?: Tensor | undefined;
    readonly segments?: Tensor | undefined;
    readonly decoderInputIds?: Tensor | undefined;
    readonly decoderPositionIds?: Tensor | undefined;
  }): Readonly<Record<string, Tensor>>;
}

/** Returns the token that an encoder-decoder's texts begin with; undefined for a model that continues its prompts. */
export function startTokenOf(model: GenerativeModel): number | undefined {
  const { is_encoder_decoder: isTwo, decoder_start_token_id: start } = configJsonOf(model);
  return isTwo === true ? Number(start) : undefined;
}

/** Returns the fields of a model's config.json; none for a model of one's own. */
export function configJsonOf(model: GenerativeModel): Readonly<Record<string, unknown>> {
  return "configJson" in model ? (model as NamedState).configJson : {};
}
