import * as nn from "../../compute/nn/index.ts";
import { ops, type Tensor } from "../../compute/tensor/index.ts";
import { deltaOption, type VectorEncoder } from "./delta.ts";

/** Options of a prompt encoder; names and defaults are peft's. */
export interface PromptEncoderOptions {
  /** Three layers, or a bidirectional LSTM followed by two layers. Default: "MLP". */
  readonly kind?: "MLP" | "LSTM";
  /** Hidden features. Default: the width of the vectors. */
  readonly width?: number | undefined;
  /** Layers of the LSTM (default 2), and the dropout between them. */
  readonly numLayers?: number;
  readonly dropout?: number;
}

/**
 * P-tuning: computes a prompt's vectors from others while it is trained. Its parts have peft's names.
 * @throws {TroupeError} `DELTA_OPTION`
 * @see Liu et al. 2021, https://arxiv.org/abs/2103.10385
 */
export function promptEncoder(
  numTokens: number,
  numFeatures: number,
  { kind = "MLP", width = numFeatures, numLayers = 2, dropout = 0 }: PromptEncoderOptions,
): VectorEncoder {
  if (kind !== "MLP" && kind !== "LSTM") throw deltaOption("encoder.kind", "MLP or LSTM", kind);
  for (const [option, size] of Object.entries({ width, numLayers }))
    if (!Number.isSafeInteger(size) || size < 1)
      throw deltaOption(`encoder.${option}`, "a whole number ≥ 1", size);
  if (!(dropout >= 0 && dropout < 1)) throw deltaOption("encoder.dropout", "in [0, 1)", dropout);
  return kind === "MLP"
    ? new LayeredPrompt(numTokens, numFeatures, width)
    : new ReadPrompt(numTokens, numFeatures, { width, numLayers, dropout });
}

class LayeredPrompt extends nn.Module {
  readonly embedding: nn.Embedding;
  readonly mlp_head: nn.Sequential;

  constructor(numTokens: number, numFeatures: number, width: number) {
    super();
    this.embedding = new nn.Embedding(numTokens, numFeatures);
    this.mlp_head = new nn.Sequential(
      new nn.Linear(numFeatures, width),
      nn.activations.relu,
      new nn.Linear(width, width),
      nn.activations.relu,
      new nn.Linear(width, numFeatures),
    );
  }

  override forward(): Tensor {
    return this.mlp_head.forward(this.embedding.weight.tensor);
  }
}

class ReadPrompt extends nn.Module {
  readonly embedding: nn.Embedding;
  readonly lstm_head: Lstm;
  readonly mlp_head: nn.Sequential;

  constructor(
    numTokens: number,
    numFeatures: number,
    shape: { readonly width: number; readonly numLayers: number; readonly dropout: number },
  ) {
    super();
    const { width } = shape;
    this.embedding = new nn.Embedding(numTokens, numFeatures);
    this.lstm_head = new Lstm(numFeatures, shape);
    this.mlp_head = new nn.Sequential(
      new nn.Linear(2 * width, 2 * width),
      nn.activations.relu,
      new nn.Linear(2 * width, numFeatures),
    );
  }

  override forward(): Tensor {
    return this.mlp_head.forward(this.lstm_head.forward(this.embedding.weight.tensor));
  }
}

/**
 * Layers of two LSTMs each, one of which reads the row backwards, with torch's names. Word by word: prompts are short.
 * @see Hochreiter and Schmidhuber 1997
 */
class Lstm extends nn.Module {
  readonly dropout: nn.Dropout;
  readonly #width: number;
  readonly #numLayers: number;

  constructor(
    numInputs: number,
    {
      width,
      numLayers,
      dropout,
    }: { readonly width: number; readonly numLayers: number; readonly dropout: number },
  ) {
    super();
    this.dropout = new nn.Dropout(dropout);
    this.#width = width;
    this.#numLayers = numLayers;
    const bound = 1 / Math.sqrt(width);
    const drawn = (...shape: number[]) => new nn.Parameter(shape, nn.uniform(-bound, bound));
    for (let layer = 0; layer < numLayers; layer++) {
      for (const place of [`l${layer}`, `l${layer}_reverse`]) {
        Object.assign(this, {
          [`weight_ih_${place}`]: drawn(4 * width, layer === 0 ? numInputs : 2 * width),
          [`weight_hh_${place}`]: drawn(4 * width, width),
          [`bias_ih_${place}`]: drawn(4 * width),
          [`bias_hh_${place}`]: drawn(4 * width),
        }); // parameters are named by their property
      }
    }
  }

  /** [n, D] → [n, 2 · width]. */
  override forward(row: Tensor): Tensor {
    let x = row;
    for (let layer = 0; layer < this.#numLayers; layer++) {
      const given = layer === 0 ? x : this.dropout.forward(x);
      const backwards = this.#read(given.flip([0]), `l${layer}_reverse`).flip([0]);
      x = ops.cat([this.#read(given, `l${layer}`), backwards], 1);
    }
    return x;
  }

  /** [n, in] → [n, width], from first to last. */
  #read(row: Tensor, place: string): Tensor {
    const own = this as unknown as Readonly<Record<string, nn.Parameter>>;
    const of = (name: string) => (own[`${name}_${place}`] as nn.Parameter).tensor;
    const given = ops.linear(row, of("weight_ih"), of("bias_ih")); // [n, 4 · width]
    const states: Tensor[] = [];
    let state = ops.zeros([1, this.#width], given.dtype);
    let cell = state;
    for (const own of given.split(1, 0)) {
      const gates = own.add(ops.linear(state, of("weight_hh"), of("bias_hh"))).chunk(4, 1);
      const [input, forget, candidate, output] = gates as [Tensor, Tensor, Tensor, Tensor];
      cell = forget.sigmoid().mul(cell).add(input.sigmoid().mul(candidate.tanh()));
      state = output.sigmoid().mul(cell.tanh());
      states.push(state);
    }
    return ops.cat(states, 0);
  }
}
