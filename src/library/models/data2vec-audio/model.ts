import { activations, Conv1d, Module, ModuleList, normal } from "../../../compute/nn/index.ts";
import { ops, type Tensor } from "../../../compute/tensor/index.ts";
import { ofFamily } from "../of-family.ts";
import type { SpeechFamily } from "../wav2vec2/speech-family.ts";
import { SpeechForSequenceClassification } from "../wav2vec2/speech-for-classification.ts";
import { SpeechForCTC } from "../wav2vec2/speech-for-ctc.ts";
import { type Data2VecAudioConfig, data2vecAudioConfig, data2vecAudioConfigJson } from "./config.ts";

// B recordings, T frames, D width.

class PositionalConvolution extends Module {
  readonly conv: Conv1d;
  readonly #activation: (x: Tensor) => Tensor;

  constructor(config: Data2VecAudioConfig) {
    super();
    const {
      hidden_size: width,
      conv_pos_kernel_size: kernel,
      num_conv_pos_embedding_groups: groups,
    } = config;
    const init = normal(0, Math.sqrt((2 * groups) / (kernel * width))); // He et al. 2015
    this.conv = new Conv1d(width, width, kernel, { padding: Math.floor(kernel / 2), groups, init });
    this.#activation = activations[config.feat_extract_activation];
  }

  /** [B, D, T] → [B, D, T]. */
  override forward(x: Tensor): Tensor {
    const [, width = 0, length = 0] = x.shape;
    const convolved = this.conv.forward(x).narrow(2, 0, length); // an even kernel adds a frame
    const normed = ops.layerNorm(convolved.transpose(1, 2), [width]); // without weight and bias
    return this.#activation(normed.transpose(1, 2));
  }
}

/** Positions of frames by a sequence of convolutions. */
class StackedPositions extends Module {
  readonly layers: ModuleList<PositionalConvolution>;

  constructor(config: Data2VecAudioConfig) {
    super();
    this.layers = ModuleList.of(config.num_conv_pos_embeddings, () => new PositionalConvolution(config));
  }

  /** [B, T, D] → [B, T, D]. */
  override forward(x: Tensor): Tensor {
    let hidden = x.transpose(1, 2);
    for (const layer of this.layers) hidden = layer.forward(hidden);
    return hidden.transpose(1, 2);
  }
}

const data2vecAudio: SpeechFamily<Data2VecAudioConfig> = {
  prefix: "data2vec_audio",
  configOf: data2vecAudioConfig,
  positions: (config) => new StackedPositions(config),
  configJson: data2vecAudioConfigJson,
};

/**
 * data2vec's audio model for speech recognition: wav2vec 2's layers with its own positional convolutions.
 * @see Baevski et al. 2022, https://arxiv.org/abs/2202.03555
 */
export class Data2VecAudioForCTC extends ofFamily(SpeechForCTC<Data2VecAudioConfig>, data2vecAudio) {}

/** data2vec's audio model for classification of recordings. */
export class Data2VecAudioForSequenceClassification extends ofFamily(
  SpeechForSequenceClassification<Data2VecAudioConfig>,
  data2vecAudio,
) {}
