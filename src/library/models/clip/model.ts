import * as nn from "../../../compute/nn/index.ts";
import { arange, ops, type Tensor } from "../../../compute/tensor/index.ts";
import { configJsonOf } from "../config-fields.ts";
import { firstOf } from "../heads/index.ts";
import { checkPixels } from "../pixels.ts";
import { type AttentionRequest, ProjectedAttention } from "../projected-attention.ts";
import type { ModelOutputs, TaskModel } from "../task-model.ts";
import { checkTokenIds } from "../token-ids.ts";
import type { NamedState, StateNaming } from "../weights.ts";
import {
  type ClipConfig,
  type ClipTextConfig,
  type ClipTowerConfig,
  type ClipVisionConfig,
  clipConfig,
} from "./config.ts";
import { clipPlan } from "./tensor-plan.ts";

// B pictures and texts, T positions, P patches, D width, E width of the common space.

class ClipMLP extends nn.Module {
  readonly fc1: nn.Linear;
  readonly fc2: nn.Linear;

  constructor(config: ClipTowerConfig) {
    super();
    const { hidden_size: width, intermediate_size: inner, hidden_act: activation } = config;
    const std = config.initializer_factor / Math.sqrt(2 * width);
    this.fc1 = new nn.Linear(width, inner, { init: nn.normal(0, std), biasInit: nn.zeros, activation });
    this.fc2 = new nn.Linear(inner, width, { init: widthInit(config), biasInit: nn.zeros });
  }

  override forward(x: Tensor): Tensor {
    return this.fc2.forward(this.fc1.forward(x));
  }
}

/** Output of a tower's layer: its stream, and the other tower's result. */
interface Carrying {
  readonly hidden: Tensor;
  readonly carried: Tensor | undefined;
}

class ClipEncoderLayer extends nn.Module {
  readonly self_attn: ProjectedAttention;
  readonly layer_norm1: nn.LayerNorm;
  readonly mlp: ClipMLP;
  readonly layer_norm2: nn.LayerNorm;

  constructor(config: ClipTowerConfig) {
    super();
    const { hidden_size: width, layer_norm_eps } = config;
    this.self_attn = new ProjectedAttention(width, config.num_attention_heads, {
      dropout: config.attention_dropout,
      init: widthInit(config),
    });
    this.layer_norm1 = new nn.LayerNorm(width, layer_norm_eps);
    this.mlp = new ClipMLP(config);
    this.layer_norm2 = new nn.LayerNorm(width, layer_norm_eps);
  }

  /** @param carried - returned unchanged: in a pipeline, tensors for later stages pass through all layers */
  override forward(x: Tensor, seen: AttentionRequest, carried?: Tensor): Carrying {
    const attended = this.self_attn.forward(this.layer_norm1.forward(x), seen); // [B, T, D]
    const [sum, normed] = this.layer_norm2.addThenNorm(attended, x);
    return { hidden: sum.add(this.mlp.forward(normed)), carried: carried?.alias() };
  }
}

class ClipEncoder extends nn.Module {
  /** Marks the start of the residual stream. */
  readonly start: nn.Identity;
  readonly layers: nn.ModuleList<ClipEncoderLayer>;

  constructor(config: ClipTowerConfig) {
    super();
    this.start = new nn.Identity();
    this.layers = nn.ModuleList.of(config.num_hidden_layers, () => new ClipEncoderLayer(config));
  }

  override forward(x: Tensor, seen: AttentionRequest, carried?: Tensor): Carrying {
    let state: Carrying = { hidden: this.start.forward(x), carried };
    for (const layer of this.layers) state = layer.forward(state.hidden, seen, state.carried);
    return state;
  }
}

class ClipTextEmbeddings extends nn.Module {
  readonly token_embedding: nn.Embedding;
  readonly position_embedding: nn.Embedding;

  constructor(config: ClipTextConfig) {
    super();
    const init = nn.normal(0, 0.02 * config.initializer_factor);
    this.token_embedding = new nn.Embedding(config.vocab_size, config.hidden_size, init);
    this.position_embedding = new nn.Embedding(config.max_position_embeddings, config.hidden_size, init);
  }

  override forward(inputIds: Tensor): Tensor {
    const positions = this.position_embedding.forward(arange(inputIds.shape[1] ?? 0, { dtype: "int64" })); // [T, D]
    return this.token_embedding.forward(inputIds).add(positions);
  }
}

class ClipTextModel extends nn.Module {
  readonly embeddings: ClipTextEmbeddings;
  readonly encoder: ClipEncoder;
  readonly final_layer_norm: nn.LayerNorm;
  readonly #config: ClipTextConfig;

  constructor(config: ClipTextConfig) {
    super();
    this.embeddings = new ClipTextEmbeddings(config);
    this.encoder = new ClipEncoder(config);
    this.final_layer_norm = new nn.LayerNorm(config.hidden_size, config.layer_norm_eps);
    this.#config = config;
  }

  /** @returns [B, D], at each text's end */
  override forward(inputIds: Tensor, attentionMask: Tensor | undefined): Tensor {
    const { vocab_size, max_position_embeddings, eos_token_id: end } = this.#config;
    checkTokenIds("CLIPTextModel", inputIds, vocab_size, max_position_embeddings);
    const mask = attentionMask && nn.paddingMask(attentionMask);
    const { hidden } = this.encoder.forward(this.embeddings.forward(inputIds), { causal: true, mask });
    const normed = this.final_layer_norm.forward(hidden); // [B, T, D]
    const ends = end === 2 ? inputIds : inputIds.eq(end).to("int64"); // [B, T]
    const place = ends
      .argmax(1)
      .view([-1, 1, 1])
      .expand([inputIds.shape[0] ?? 0, 1, normed.shape[2] ?? 0]);
    return normed.gather(1, place).squeeze(1);
  }
}

class ClipVisionEmbeddings extends nn.Module {
  readonly class_embedding: nn.Parameter;
  readonly patch_embedding: nn.Conv2d;
  readonly position_embedding: nn.Embedding;

  constructor(config: ClipVisionConfig) {
    super();
    const { hidden_size: width, num_channels, image_size, patch_size, initializer_factor: factor } = config;
    const numPatches = Math.floor(image_size / patch_size) ** 2;
    const init = nn.normal(0, config.initializer_range * factor);
    this.class_embedding = new nn.Parameter([width], nn.normal(0, factor / Math.sqrt(width)));
    this.patch_embedding = new nn.Conv2d(num_channels, width, patch_size, {
      stride: patch_size,
      bias: false,
      init,
    });
    this.position_embedding = new nn.Embedding(numPatches + 1, width, init);
  }

  override forward(pixels: Tensor): Tensor {
    const patches = this.patch_embedding.forward(pixels).flatten(2).transpose(1, 2); // [B, P, D]
    const [batch = 0, numPatches = 0, width = 0] = patches.shape;
    const first = this.class_embedding.tensor.to(patches.dtype).expand([batch, 1, width]);
    const positions = this.position_embedding.forward(arange(numPatches + 1, { dtype: "int64" }));
    return ops.cat([first, patches], 1).add(positions); // [B, P + 1, D]
  }
}

class ClipVisionModel extends nn.Module {
  readonly embeddings: ClipVisionEmbeddings;
  readonly pre_layrnorm: nn.LayerNorm;
  readonly encoder: ClipEncoder;
  readonly post_layernorm: nn.LayerNorm;
  readonly #pictures: readonly [number, number, number];

  constructor(config: ClipVisionConfig) {
    super();
    this.embeddings = new ClipVisionEmbeddings(config);
    this.pre_layrnorm = new nn.LayerNorm(config.hidden_size, config.layer_norm_eps);
    this.encoder = new ClipEncoder(config);
    this.post_layernorm = new nn.LayerNorm(config.hidden_size, config.layer_norm_eps);
    this.#pictures = [config.num_channels, config.image_size, config.image_size];
  }

  /**
   * @param carried - the other tower's result
   * @returns [B, D], and `carried`
   */
  override forward(pixels: Tensor, carried: Tensor): { readonly pooled: Tensor; readonly carried: Tensor } {
    checkPixels("CLIPVisionModel", pixels, this.#pictures);
    const embedded = this.pre_layrnorm.forward(this.embeddings.forward(pixels)); // [B, P + 1, D]
    const state = this.encoder.forward(embedded, {}, carried);
    return {
      pooled: firstOf(this.post_layernorm.forward(state.hidden)),
      carried: state.carried ?? carried,
    };
  }
}

/** Pictures with their texts, row by row. */
export type PicturesWithTexts = {
  /** [B, T], int64. */
  readonly inputIds: Tensor;
  /** [B, channels, height, width], float. */
  readonly pixelValues: Tensor;
  /** [B, T], 0 at padding. */
  readonly attentionMask?: Tensor | undefined;
};

/**
 * CLIP: pictures and texts in one space, each picture nearest to its own text.
 * @see Radford et al. 2021, https://arxiv.org/abs/2103.00020
 */
export class CLIPModel extends nn.Module implements TaskModel {
  readonly config: ClipConfig;
  /** Natural logarithm of the similarities' scale. */
  readonly logit_scale: nn.Parameter;
  readonly text_model: ClipTextModel;
  readonly vision_model: ClipVisionModel;
  readonly visual_projection: nn.Linear;
  readonly text_projection: nn.Linear;

  /** @throws {TroupeError} `MODEL_CONFIG` */
  constructor(fields: Readonly<Record<string, unknown>> = {}) {
    super();
    this.config = clipConfig(fields);
    const { text_config, vision_config, projection_dim, initializer_factor, logit_scale_init_value } =
      this.config;
    this.logit_scale = new nn.Parameter([], nn.fromValues([logit_scale_init_value]));
    this.text_model = new ClipTextModel(text_config);
    this.vision_model = new ClipVisionModel(vision_config);
    const projection = (width: number) =>
      new nn.Linear(width, projection_dim, {
        bias: false,
        init: nn.normal(0, initializer_factor / Math.sqrt(width)),
      });
    this.visual_projection = projection(vision_config.hidden_size);
    this.text_projection = projection(text_config.hidden_size);
  }

  get stateNaming(): StateNaming {
    return { prefix: "", ignored: [/^(text|vision)_model\.embeddings\.position_ids$/] };
  }

  get configJson(): NamedState["configJson"] {
    const { text_config, vision_config, ...own } = this.config;
    return configJsonOf(
      {
        ...own,
        text_config: { model_type: "clip_text_model", ...text_config },
        vision_config: { model_type: "clip_vision_model", ...vision_config },
      },
      "clip",
      "CLIPModel",
    );
  }

  get tensorPlan(): nn.TensorPlan {
    const { text_config, vision_config } = this.config;
    return {
      ...nn.below("text_model", clipPlan(text_config, "text")),
      ...nn.below("vision_model", clipPlan(vision_config, "vision")),
    };
  }

  /**
   * The loss is the mean of both cross entropies: of each picture among the texts, and of each text among the pictures of
   * this batch, or of the batches of all replicas, R of them.
   * @param replicas - ranks that compute this together, each on its batch of B: the mean of their losses is that of one rank with all
   *   batches. In a job's loss: `rank.axes.dp`
   * @returns `loss`, unless there are more pictures than texts or fewer, `logitsPerImage` and `logitsPerText` [B, R·B],
   *   `imageEmbeds` and `textEmbeds` [B, E], of length 1
   */
  override forward(
    { inputIds, pixelValues, attentionMask }: PicturesWithTexts,
    replicas: Replicas = ALONE,
  ): ModelOutputs {
    const text = this.text_projection.forward(this.text_model.forward(inputIds, attentionMask));
    const { pooled, carried } = this.vision_model.forward(pixelValues, unit(text));
    const [textEmbeds, imageEmbeds] = [carried, unit(this.visual_projection.forward(pooled))];
    const scale = this.logit_scale.tensor.exp();
    const among = (rows: Tensor, others: Tensor) =>
      rows.matmul(replicas.allGather(others).transpose(0, 1)).mul(scale); // [B, R·B]
    const logitsPerText = among(textEmbeds, imageEmbeds);
    // With one replica one is the transpose of the other, with the same bits.
    const logitsPerImage =
      replicas.size === 1 ? logitsPerText.transpose(0, 1) : among(imageEmbeds, textEmbeds);
    const outputs = { logitsPerImage, logitsPerText, imageEmbeds, textEmbeds };
    const numRows = inputIds.shape[0] ?? 0;
    if (numRows !== pixelValues.shape[0]) return outputs;
    const own = arange(numRows, { dtype: "int64" }).add(replicas.index * numRows);
    const loss = nn
      .crossEntropy(logitsPerText, own)
      .add(nn.crossEntropy(logitsPerImage.contiguous(), own))
      .mul(0.5);
    return { loss, ...outputs };
  }
}

/** The ranks among which CLIP's loss compares: a job's `rank.axes.dp`. */
export interface Replicas {
  /** This rank's index, from 0. */
  readonly index: number;
  readonly size: number;
  /** All replicas' rows along dim 0, in order, on each of them; differentiable. */
  allGather(rows: Tensor): Tensor;
}

const ALONE: Replicas = { index: 0, size: 1, allGather: (rows) => rows };

function unit(rows: Tensor): Tensor {
  return rows.div(rows.square().sum([1], true).sqrt());
}

function widthInit(config: ClipTowerConfig): nn.Initializer {
  const { hidden_size, num_hidden_layers, initializer_factor } = config;
  return nn.normal(0, initializer_factor / Math.sqrt(2 * hidden_size * num_hidden_layers));
}
