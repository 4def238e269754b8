import { Conv1d, LayerNorm, Linear, Module, ModuleList } from "../../../compute/nn/index.ts";
import { ops, type Tensor } from "../../../compute/tensor/index.ts";
import { outputWidth, type SpeechConfig } from "./config.ts";

// B recordings, T frames, D width of the layers, O output width.

class AdapterLayer extends Module {
  readonly conv: Conv1d;

  constructor({ adapter_kernel_size, adapter_stride: stride }: SpeechConfig, width: number) {
    super();
    this.conv = new Conv1d(width, 2 * width, adapter_kernel_size, { stride, padding: 1 });
  }

  /** [B, O, T] → [B, O, T′]. */
  override forward(x: Tensor): Tensor {
    return ops.glu(this.conv.forward(x), 1);
  }
}

/** Convolutions that reduce the number of frames after the layers. */
export class SpeechAdapter extends Module {
  readonly proj: Linear | null;
  readonly proj_layer_norm: LayerNorm | null;
  readonly layers: ModuleList<AdapterLayer>;

  constructor(config: SpeechConfig) {
    super();
    const { hidden_size, num_adapter_layers } = config;
    const width = outputWidth(config);
    this.proj = width === hidden_size ? null : new Linear(hidden_size, width);
    this.proj_layer_norm = width === hidden_size ? null : new LayerNorm(width);
    this.layers = ModuleList.of(num_adapter_layers, () => new AdapterLayer(config, width));
  }

  /** [B, T, D] → [B, T′, O]. */
  override forward(hidden: Tensor): Tensor {
    const projected = this.proj === null ? hidden : this.proj.forward(hidden);
    const normed = this.proj_layer_norm === null ? projected : this.proj_layer_norm.forward(projected);
    let frames = normed.transpose(1, 2); // [B, O, T]
    for (const layer of this.layers) frames = layer.forward(frames);
    return frames.transpose(1, 2);
  }
}
