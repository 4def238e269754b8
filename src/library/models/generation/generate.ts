import { evaluating } from "../../../compute/nn/index.ts";
import { scope, type Tensor } from "../../../compute/tensor/index.ts";
import type { LanguageModel } from "../language-model.ts";
import type { NamedState } from "../weights.ts";
import { searchBeams } from "./beams.ts";
import { draw, indexOfMax, penalise, uniformAt } from "./drawing.ts";
import { type GenerateOptions, type Settled, settle } from "./options.ts";
import { Continuation, Reply, type Seq2SeqModel, type Writer } from "./writer.ts";

/** A model that generates text: a continuation, or an encoder-decoder's reply. */
export type GenerativeModel = LanguageModel | Seq2SeqModel;

/**
 * Generates text: continues prompts, or replies to them with an encoder-decoder. Each token computes one position; keys and values of
 * earlier ones are cached in memory that is allocated once. Only beyond the model's context, which slides over longer texts, is the
 * context computed again for each token. Several prompts run in one batch, with the results of separate runs up to rounding. The model
 * is in evaluation mode meanwhile. At temperature 0 and with beams the tokens equal those of transformers' `generate`.
 * @param prompts - the tokens of one text, or of several; at least one each
 * @returns each prompt with its continuation, or an encoder-decoder's reply after its first token; including the stop token that ended
 *   it
 * @throws {TroupeError} `GENERATE_OPTION`; `MODEL_INPUT` for ids outside the vocabulary
 */
export function generate(
  model: GenerativeModel,
  prompts: readonly number[],
  options: GenerateOptions,
): number[];
export function generate(
  model: GenerativeModel,
  prompts: readonly (readonly number[])[],
  options: GenerateOptions,
): number[][];
export function generate(
  model: GenerativeModel,
  prompts: readonly number[] | readonly (readonly number[])[],
  options: GenerateOptions,
): number[] | number[][] {
  const isOne = prompts.length === 0 || typeof prompts[0] === "number";
  const rows = isOne ? [prompts as readonly number[]] : (prompts as readonly (readonly number[])[]);
  const texts = write(model, rows, options);
  return isOne ? (texts[0] as number[]) : texts;
}

function write(
  model: GenerativeModel,
  prompts: readonly (readonly number[])[],
  options: GenerateOptions,
): number[][] {
  const fields = "configJson" in model ? (model as NamedState).configJson : {};
  const settled = settle(prompts, options, fields);
  const rows = prompts.flatMap((prompt) => Array.from({ length: settled.numBeams }, () => prompt));
  return evaluating(model, () => {
    using writer: Writer = fields.is_encoder_decoder
      ? new Reply(model as Seq2SeqModel, rows, settled)
      : new Continuation(model as LanguageModel, rows, settled);
    if (settled.maxNewTokens === 0)
      return prompts.map((_, row) => [...(writer.begun[row * settled.numBeams] ?? [])]);
    return settled.numBeams > 1
      ? searchBeams(writer, settled, adjusting(writer, settled))
      : writeOne(writer, settled);
  });
}

/** Generates token by token, the most likely or a sampled one. */
function writeOne(writer: Writer, options: Settled): number[][] {
  const { maxNewTokens, temperature, seed, firstRow, stopTokens, padToken } = options;
  const texts = writer.begun.map((begun) => [...begun]);
  const ended = texts.map(() => false);
  const adjust = adjusting(writer, options);
  for (let index = 0; index < maxNewTokens && ended.includes(false); index++) {
    const chosen = scope(() => {
      const logits = writer.next(texts); // [B, V]
      if (temperature === 0 && adjust === undefined) return [...mostLikely(logits)];
      return rowsOf(logits).map((row, place) => {
        if (ended[place]) return padToken;
        adjust?.(row, texts[place] ?? []);
        return temperature === 0
          ? indexOfMax(row)
          : draw(row, options, uniformAt(seed, firstRow + place, index));
      });
    });
    for (const [row, text] of texts.entries()) {
      const token = ended[row] ? padToken : (chosen[row] as number);
      text.push(token);
      if (stopTokens.includes(token)) ended[row] = true;
    }
  }
  return texts.map((text, row) => endedAt(text, writer.begun[row]?.length ?? 0, stopTokens));
}

/** A function that changes a row's logits before a token is chosen; undefined if there is no change. */
function adjusting(
  { begun }: Writer,
  { repetitionPenalty, forcedFirstToken, forcedLastToken, maxNewTokens }: Settled,
): ((row: Float32Array, text: readonly number[]) => void) | undefined {
  const numBegun = Math.max(...begun.map(({ length }) => length));
  if (repetitionPenalty === 1 && forcedFirstToken === undefined && forcedLastToken === undefined)
    return undefined;
  return (row, text) => {
    if (repetitionPenalty !== 1) penalise(row, text, repetitionPenalty);
    const forced =
      text.length === numBegun
        ? forcedFirstToken
        : text.length === numBegun + maxNewTokens - 1
          ? forcedLastToken
          : undefined;
    if (forced === undefined) return;
    row.fill(Number.NEGATIVE_INFINITY);
    row[forced] = 0;
  };
}

/** Cuts a text after its end. */
function endedAt(text: readonly number[], begun: number, stopTokens: readonly number[]): number[] {
  const end = text.findIndex((token, place) => place >= begun && stopTokens.includes(token));
  return end < 0 ? [...text] : text.slice(0, end + 1);
}

function mostLikely(logits: Tensor): number[] {
  return [...logits.argmax(1).toTypedArray()].map(Number);
}

function rowsOf(logits: Tensor): Float32Array[] {
  const width = logits.shape[1] ?? 0;
  const values = logits.contiguous().toTypedArray() as Float32Array;
  return Array.from({ length: logits.shape[0] ?? 0 }, (_, row) =>
    values.slice(row * width, (row + 1) * width),
  );
}
