import { evaluating, isPrefixed } from "../../../compute/nn/index.ts";
import { scope } from "../../../compute/tensor/index.ts";
import { TroupeError } from "../../../errors/index.ts";
import type { LanguageModel } from "../language-model.ts";
import { searchBeams } from "./beams.ts";
import { type AdjustText, chooseTokens, penalise, SampleStream } from "./drawing.ts";
import { Ending } from "./ending.ts";
import { configJsonOf, type GenerativeModel, type Seq2SeqModel, startTokenOf } from "./generative-model.ts";
import { Generator, type WrittenSample } from "./generator.ts";
import { type GenerateOptions, type Settled, settle } from "./options.ts";
import { Continuation, PagedContinuation, Reply, type Writer } from "./writer.ts";

/** A text that a model has written. */
export interface GeneratedText {
  /** The prompt's tokens, or an encoder-decoder's first, then those written. */
  readonly sequence: readonly number[];
  /** The tokens written, the stop token that ended it included. */
  readonly tokens: readonly number[];
  /** log-probability of each, in nats, by the model's own logits: before temperature, restriction and penalty. Empty with beams. */
  readonly logProbs: readonly number[];
  /** The tokens decoded, without the stop token or text that ended it; absent without a tokenizer. */
  readonly text?: string;
}

/**
 * Generates text: continues prompts, or replies to them with an encoder-decoder. A new token costs a pass over its position alone; keys
 * and values of earlier positions are kept, in pages where the model can (`Generator`). Several prompts run at once, and differ from
 * separate runs by rounding only. The model is in evaluation mode meanwhile. At temperature 0 and with beams the tokens equal those
 * of transformers' `generate`.
 * @param prompts - the tokens of one text, or of several; at least one each
 * @returns each prompt with its continuation, or an encoder-decoder's reply after its first token; including the stop token that ended
 *   it; the samples of a prompt one after the other
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
  const texts = generateTexts(model, rows, options).map(({ sequence }) => [...sequence]);
  return isOne && options.samples === undefined ? (texts[0] as number[]) : texts;
}

/**
 * Generates text as {@link generate} does, and tells what was drawn.
 * @param prompts - tokens, at least one each, or strings for the tokenizer
 * @returns for each prompt its samples, one after the other
 * @throws {TroupeError} as {@link generate}
 */
export function generateTexts(
  model: GenerativeModel,
  prompts: readonly (string | readonly number[])[],
  options: GenerateOptions,
): GeneratedText[] {
  const start = startTokenOf(model);
  const settled = settle(prompts, options, configJsonOf(model));
  const { samples, numBeams, maxNewTokens, stopTexts, tokenizer } = settled;
  if (stopTexts.length > 0 && tokenizer === undefined) throw lacksTokenizer("stopTexts");
  const ending = new Ending(settled);
  const encoded = prompts.map((prompt) => tokensOf(prompt, settled));
  const done = (row: number, tokens: readonly number[], logProbs: readonly number[]): GeneratedText => {
    const begun = start !== undefined ? [start] : (encoded[Math.floor(row / samples)] ?? []);
    const text = ending.textOf(tokens);
    return { sequence: [...begun, ...tokens], tokens, logProbs, ...(text !== undefined && { text }) };
  };
  if (maxNewTokens === 0)
    return Array.from({ length: samples * prompts.length }, (_, row) => done(row, [], []));
  return evaluating(model, () => {
    const adjust = adjusting(settled);
    const isPaged = canPage(model);
    if (numBeams === 1 && isPaged) {
      using generator = new Generator(model, encoded, { options: settled, ending, adjust });
      const texts: WrittenSample[] = [];
      while (!generator.isDone) texts.push(...scope(() => generator.step()));
      return texts
        .toSorted((a, b) => a.prompt - b.prompt || a.sample - b.sample)
        .map(({ tokens, logProbs }, row) => done(row, tokens, logProbs));
    }
    const rows = encoded.flatMap((prompt) => Array.from({ length: samples * numBeams }, () => prompt));
    using writer: Writer = isPaged
      ? new PagedContinuation(model, rows, settled)
      : start !== undefined
        ? new Reply(model as Seq2SeqModel, rows, settled)
        : new Continuation(model as LanguageModel, rows, settled);
    if (numBeams === 1)
      return writeRows(writer, settled, ending, adjust).map(([tokens, logProbs], row) =>
        done(row, tokens, logProbs),
      );
    const numBegun = (row: number) => writer.begun[row * numBeams]?.length ?? 0;
    const texts = searchBeams(writer, settled, adjust);
    return texts.map((text, row) => done(row, writtenIn(text.slice(numBegun(row)), settled), []));
  });
}

function tokensOf(prompt: string | readonly number[], { tokenizer }: Settled): readonly number[] {
  if (typeof prompt !== "string") return prompt;
  if (tokenizer !== undefined) return [...tokenizer.encode(prompt)];
  throw lacksTokenizer("prompts that are strings");
}

function lacksTokenizer(what: string): TroupeError {
  const operands = { where: "generate", expected: `a tokenizer for ${what}`, got: "none", fields: {} };
  return new TroupeError("GENERATE_OPTION", operands);
}

/** Whether texts of any lengths can be written in pages. */
function canPage(model: GenerativeModel): boolean {
  const { dtype } = [...model.parameters()][0] ?? {};
  return model.packs === true && dtype !== "float64" && !isPrefixed(model);
}

/** Writes all rows token by token, side by side. */
function writeRows(
  writer: Writer,
  options: Settled,
  ending: Ending,
  adjust: AdjustText | undefined,
): (readonly [tokens: number[], logProbs: number[]])[] {
  const { maxNewTokens, samples, seed, firstPrompt, padToken } = options;
  const texts = writer.begun.map((begun) => [...begun]);
  const written = texts.map((): [tokens: number[], logProbs: number[]] => [[], []]);
  const streams = texts.map(
    (_, row) => new SampleStream(seed, firstPrompt + Math.floor(row / samples), row % samples),
  );
  const ended = texts.map(() => false);
  for (let index = 0; index < maxNewTokens && ended.includes(false); index++) {
    const { tokens, logProbs } = scope(() =>
      chooseTokens(
        writer.next(texts),
        streams.map((stream) => stream.at(index)),
        options,
        adjust && ((logits, row) => adjust(logits, texts[row] ?? [], index)),
      ),
    );
    for (const [row, text] of texts.entries()) {
      const token = ended[row] ? padToken : (tokens[row] as number);
      text.push(token);
      if (ended[row]) continue;
      const [own, ownLogProbs] = written[row] as [number[], number[]];
      const logProb = logProbs[row] as number;
      own.push(token);
      ownLogProbs.push(logProb);
      options.onToken?.({ prompt: Math.floor(row / samples), sample: row % samples, token, logProb });
      ended[row] = ending.isReached(own);
    }
  }
  return written;
}

/** A function that changes a row's logits before a token is chosen; undefined if there is no change. */
function adjusting({
  repetitionPenalty,
  forcedFirstToken,
  forcedLastToken,
  maxNewTokens,
}: Settled): AdjustText | undefined {
  if (repetitionPenalty === 1 && forcedFirstToken === undefined && forcedLastToken === undefined)
    return undefined;
  return (row, text, numWritten) => {
    if (repetitionPenalty !== 1) penalise(row, text, repetitionPenalty);
    const forced =
      numWritten === 0 ? forcedFirstToken : numWritten === maxNewTokens - 1 ? forcedLastToken : undefined;
    if (forced === undefined) return;
    row.fill(Number.NEGATIVE_INFINITY);
    row[forced] = 0;
  };
}

/** Cuts what a beam has written after its end. */
function writtenIn(written: readonly number[], { stopTokens }: Settled): readonly number[] {
  const end = written.findIndex((token) => stopTokens.includes(token));
  return end < 0 ? written : written.slice(0, end + 1);
}
