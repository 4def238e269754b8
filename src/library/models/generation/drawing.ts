import { streamOf } from "../../../compute/nn/index.ts";
import { rowLogProbs } from "../../../compute/objectives/index.ts";
import { empty, ops, scope, type Tensor, tensor } from "../../../compute/tensor/index.ts";
import type { Settled } from "./options.ts";

/** The tokens that may be drawn. */
export type Restriction = Pick<Settled, "temperature" | "topK" | "topP">;

/** Changes the logits of a row in place before its token is chosen. */
export type AdjustRow = (logits: Float32Array, row: number) => void;

/** Changes the logits of a text's next token in place; `numWritten` of its tokens follow the prompt. */
export type AdjustText = (logits: Float32Array, text: readonly number[], numWritten: number) => void;

/** Chosen tokens, one for each row of logits. */
export interface Chosen {
  readonly tokens: readonly number[];
  /** log-probability of each by the model's own logits, in nats: before temperature, restriction and adjustment. */
  readonly logProbs: readonly number[];
}

const NUM_AHEAD = 64;

/** The uniform numbers of one sample: a pure function of seed, prompt, sample and index, whatever else is written. */
export class SampleStream {
  readonly #seed: number;
  readonly #stream: number;
  #first = -1;
  #values = new Float32Array();

  constructor(seed: number, prompt: number, sample: number) {
    const name = sample === 0 ? `${prompt}` : `${prompt}.${sample}`;
    this.#seed = seed;
    this.#stream = streamOf(name === "0" ? "generate" : `generate ${name}`);
  }

  /** The number of token `index` after the prompt, in [0, 1). */
  at(index: number): number {
    const first = index - (index % NUM_AHEAD);
    if (first !== this.#first) {
      this.#first = first;
      const room = () => empty([NUM_AHEAD], { device: "cpu" });
      this.#values = scope(
        () =>
          ops.troupe
            .philoxUniform_(room(), 0, 1, this.#seed, this.#stream, first)
            .toTypedArray() as Float32Array<ArrayBuffer>,
      );
    }
    return this.#values[index - first] as number;
  }
}

/**
 * Chooses a token from each row of logits: the most likely at temperature 0, else by the row's uniform number. As in transformers
 * the temperature applies first, then `topK`, then the fewest of these that together reach `topP`; tokens as likely as the last one
 * kept are kept too.
 * @param logits - float32 [R, V] @param uniforms - R numbers in [0, 1)
 */
export function chooseTokens(
  logits: Tensor,
  uniforms: readonly number[],
  { temperature, topK, topP }: Restriction,
  adjust?: AdjustRow,
): Chosen {
  return scope(() => {
    const scores = adjust === undefined ? logits : adjusted(logits, adjust);
    const tokens =
      temperature === 0
        ? scores.argmax(1)
        : ops.troupe.drawTokens(
            scores,
            tensor(Float32Array.from(uniforms), { device: logits.device as "cpu" }),
            temperature,
            Number.isFinite(topK) ? topK : 0,
            topP,
          );
    const logProbs = [...rowLogProbs(logits, tokens)];
    return { tokens: [...tokens.toTypedArray()].map(Number), logProbs };
  });
}

/** A copy of logits [R, V] with each row changed. */
export function adjusted(logits: Tensor, adjust: AdjustRow): Tensor {
  const { shape, device } = logits;
  const width = shape[1] ?? 0;
  const values = logits.contiguous().toTypedArray() as Float32Array;
  for (let row = 0; row < (shape[0] ?? 0); row++)
    adjust(values.subarray(row * width, (row + 1) * width), row);
  return tensor(values, { shape, device: device as "cpu" });
}

/** Makes tokens that occur in the text less likely, in place. */
export function penalise(logits: Float32Array, text: Iterable<number>, penalty: number): void {
  for (const token of new Set(text)) {
    const logit = logits[token] ?? 0;
    logits[token] = logit > 0 ? logit / penalty : logit * penalty;
  }
}
