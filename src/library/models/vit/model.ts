import * as nn from "../../../compute/nn/index.ts";
import { ops, type Tensor } from "../../../compute/tensor/index.ts";
import { configJsonOf, numLabels } from "../config-fields.ts";
import { EncoderIntermediate, EncoderSelfAttention, initOf, linear, PlainOutput } from "../encoder-parts.ts";
import { type Reads, readOfEach, rowLoss } from "../heads/index.ts";
import { checkPixels } from "../pixels.ts";
import type { ModelOutputs, TaskModel } from "../task-model.ts";
import type { NamedState, StateNaming } from "../weights.ts";
import { both, type ViTConfig, vitConfig, vitNaming } from "./config.ts";
import { vitPlan } from "./tensor-plan.ts";

// B pictures, C channels, P patches, D width, I inner width.

class ViTPatchEmbeddings extends nn.Module {
  readonly projection: nn.Conv2d;

  constructor(config: ViTConfig) {
    super();
    const patch = both(config.patch_size);
    this.projection = new nn.Conv2d(config.num_channels, config.hidden_size, patch, {
      stride: patch,
      init: initOf(config),
    });
  }

  override forward(pixels: Tensor): Tensor {
    return this.projection.forward(pixels).flatten(2).transpose(1, 2); // [B, C, H, W] → [B, P, D]
  }
}

class ViTEmbeddings extends nn.Module {
  readonly cls_token: nn.Parameter;
  readonly position_embeddings: nn.Parameter;
  readonly patch_embeddings: ViTPatchEmbeddings;
  readonly dropout: nn.Dropout;

  constructor(config: ViTConfig) {
    super();
    const [image, patch] = [both(config.image_size), both(config.patch_size)];
    const numPatches = Math.floor(image[0] / patch[0]) * Math.floor(image[1] / patch[1]);
    const { hidden_size: width } = config;
    this.cls_token = new nn.Parameter([1, 1, width], initOf(config));
    this.position_embeddings = new nn.Parameter([1, numPatches + 1, width], initOf(config));
    this.patch_embeddings = new ViTPatchEmbeddings(config);
    this.dropout = new nn.Dropout(config.hidden_dropout_prob);
  }

  override forward(pixels: Tensor): Tensor {
    const patches = this.patch_embeddings.forward(pixels);
    const [batch = 0, , width = 0] = patches.shape;
    const first = this.cls_token.tensor.to(patches.dtype).expand([batch, 1, width]);
    const positions = this.position_embeddings.tensor;
    return this.dropout.forward(ops.cat([first, patches], 1).add(positions)); // [B, P + 1, D]
  }
}

class ViTAttention extends nn.Module {
  readonly attention: EncoderSelfAttention;
  readonly output: PlainOutput;

  constructor(config: ViTConfig, reads: Reads) {
    super();
    this.attention = new EncoderSelfAttention(config, reads);
    this.output = new PlainOutput(config.hidden_size, config);
  }

  override forward(x: Tensor): Tensor {
    return this.output.forward(this.attention.forward(x));
  }
}

/** One layer: attention and feed-forward, each after a norm and added to the residual stream. */
class ViTLayer extends nn.Module {
  readonly attention: ViTAttention;
  readonly intermediate: EncoderIntermediate;
  readonly output: PlainOutput;
  readonly layernorm_before: nn.LayerNorm;
  readonly layernorm_after: nn.LayerNorm;

  constructor(config: ViTConfig, reads: Reads) {
    super();
    const { hidden_size, intermediate_size, layer_norm_eps } = config;
    this.attention = new ViTAttention(config, reads);
    this.intermediate = new EncoderIntermediate(config);
    this.output = new PlainOutput(intermediate_size, config);
    this.layernorm_before = new nn.LayerNorm(hidden_size, layer_norm_eps);
    this.layernorm_after = new nn.LayerNorm(hidden_size, layer_norm_eps);
  }

  override forward(x: Tensor): Tensor {
    const attended = this.attention.forward(this.layernorm_before.forward(x)); // [B, P + 1, D]
    const [sum, normed] = this.layernorm_after.addThenNorm(attended, this.attention.attention.answered(x));
    return sum.add(this.output.forward(this.intermediate.forward(normed)));
  }
}

class ViTEncoder extends nn.Module {
  readonly layer: nn.ModuleList<ViTLayer>;

  constructor(config: ViTConfig) {
    super();
    this.layer = new nn.ModuleList(
      readOfEach(config.num_hidden_layers, "first").map((reads) => new ViTLayer(config, reads)),
    );
  }

  override forward(x: Tensor): Tensor {
    let hidden = x;
    for (const layer of this.layer) hidden = layer.forward(hidden);
    return hidden;
  }
}

/**
 * The stack without a head.
 * @see Dosovitskiy et al. 2020, https://arxiv.org/abs/2010.11929
 */
class ViTModel extends nn.Module {
  readonly embeddings: ViTEmbeddings;
  readonly encoder: ViTEncoder;
  readonly layernorm: nn.LayerNorm;
  readonly #pictures: readonly [number, number, number];

  constructor(config: ViTConfig) {
    super();
    this.embeddings = new ViTEmbeddings(config);
    this.encoder = new ViTEncoder(config);
    this.layernorm = new nn.LayerNorm(config.hidden_size, config.layer_norm_eps);
    this.#pictures = [config.num_channels, ...both(config.image_size)];
  }

  /**
   * @param pixels - [B, C, height, width], float
   * @returns [B, D], the class token's position
   * @throws {TroupeError} `MODEL_INPUT`
   */
  override forward(pixels: Tensor): Tensor {
    checkPixels("ViTModel", pixels, this.#pictures);
    return this.layernorm.forward(this.encoder.forward(this.embeddings.forward(pixels))).squeeze(1);
  }
}

/** ViT for image classification. */
export class ViTForImageClassification extends nn.Module implements TaskModel {
  readonly config: ViTConfig;
  readonly vit: ViTModel;
  readonly classifier: nn.Linear;

  /** @throws {TroupeError} `MODEL_CONFIG` */
  constructor(fields: Readonly<Record<string, unknown>> = {}) {
    super();
    this.config = vitConfig(fields);
    this.vit = new ViTModel(this.config);
    this.classifier = linear(this.config.hidden_size, numLabels(this.config), this.config);
  }

  get stateNaming(): StateNaming {
    return vitNaming;
  }

  get configJson(): NamedState["configJson"] {
    return configJsonOf(this.config, "vit", "ViTForImageClassification");
  }

  get tensorPlan(): nn.TensorPlan {
    return nn.below("vit", vitPlan(this.config));
  }

  /**
   * @param batch.pixelValues - [B, C, height, width], float
   * @param batch.labels - see `rowLoss`
   * @returns `loss`, or `logits` [B, labels]
   */
  override forward(batch: {
    readonly pixelValues: Tensor;
    readonly labels?: Tensor | undefined;
  }): ModelOutputs {
    const { pixelValues, labels } = batch;
    const logits = this.classifier.forward(this.vit.forward(pixelValues));
    return labels === undefined ? { logits } : { loss: rowLoss(logits, labels, this.config.problem_type) };
  }
}
