import { ops, scope, type Tensor, tensor } from "../../../compute/tensor/index.ts";
import { type AdjustText, adjusted } from "./drawing.ts";
import type { Settled } from "./options.ts";
import type { Writer } from "./writer.ts";

// As in transformers 5 (generation/utils.py, `_beam_search`), with the same float32 scores, so that ties resolve alike.

/** A text with its score: the sum of its tokens' log-probabilities, or a function of it. */
interface Beam {
  readonly text: readonly number[];
  readonly score: number;
}

/** A continuation of a beam. */
interface Candidate extends Beam {
  /** Index of the beam that it continues, within its prompt. */
  readonly beam: number;
  /** Whether it ends here. */
  readonly ends: boolean;
}

/** Below every score: marks a place without a text. */
const LOWEST = -1e9;

/** The beams of one prompt. */
class PromptBeams {
  running: readonly Beam[];
  #finished: readonly (Beam & { readonly isFinished: boolean })[];
  #mayImprove = true;
  readonly #options: Settled;
  readonly #begun: number;

  constructor(begun: readonly number[], options: Settled) {
    const { numBeams } = options;
    this.#options = options;
    this.#begun = begun.length;
    // Only the first beam starts with a score: equal beams would all give the same text.
    this.running = Array.from({ length: numBeams }, (_, beam) => ({
      text: begun,
      score: beam === 0 ? 0 : LOWEST,
    }));
    this.#finished = Array.from({ length: numBeams }, () => ({
      text: begun,
      score: LOWEST,
      isFinished: false,
    }));
  }

  /** The likeliest text that has ended. */
  get best(): readonly number[] {
    return this.#finished[0]?.text ?? [];
  }

  /** Whether a better text could still end; with early stopping false once as many have ended as there are beams. */
  get mayImprove(): boolean {
    return this.#mayImprove;
  }

  get isFull(): boolean {
    return this.#finished.every(({ isFinished }) => isFinished);
  }

  /**
   * Takes the likeliest continuations, best first: moves ended ones to the finished texts and continues as many others as there are beams.
   * @returns for each running beam the index of the one it continues
   */
  take(candidates: readonly Candidate[]): number[] {
    const { numBeams, lengthPenalty, earlyStopping } = this.#options;
    const next = best(
      candidates.map((candidate) => ({ ...candidate, score: lowered(candidate.score, candidate.ends) })),
      numBeams,
    );
    const length = (candidates[0]?.text.length ?? 0) - this.#begun;
    const isClosed = (this.isFull && earlyStopping === true) || !this.#mayImprove;
    // Candidates after the first ones are spare, so that enough beams continue; they may not end.
    const ended = candidates.map(({ text, score, ends }, place) => {
      const isFinished = ends && place < numBeams;
      const averaged = Math.fround(score / Math.fround(length ** lengthPenalty));
      return { text, isFinished, score: lowered(lowered(averaged, isClosed), !isFinished) };
    });
    this.#finished = best([...this.#finished, ...ended], numBeams);
    this.running = next;
    return next.map(({ beam }) => beam);
  }

  /** @param mostTokens - maximum number of added tokens @see `_check_early_stop_heuristic` */
  lookAhead(mostTokens: number): void {
    const { lengthPenalty, earlyStopping } = this.#options;
    const length =
      earlyStopping === "never" && lengthPenalty > 0
        ? mostTokens
        : (this.running[0]?.text.length ?? 0) - this.#begun;
    const possible = Math.fround((this.running[0]?.score ?? 0) / length ** lengthPenalty);
    const worst = Math.min(...this.#finished.map(({ score }) => score));
    const isBetter = this.#finished.some(({ isFinished }) => possible > (isFinished ? worst : LOWEST));
    this.#mayImprove = this.#mayImprove && isBetter;
  }
}

/**
 * Beam search: finds the likeliest text of each prompt among several that are continued in parallel.
 * @param writer - with groups of `numBeams` rows, one group per prompt
 * @param adjust - changes the log-probabilities of a row in place, depending on its text
 * @returns each prompt's beginning and generated tokens, its end included
 */
export function searchBeams(writer: Writer, options: Settled, adjust: AdjustText | undefined): number[][] {
  const { numBeams, maxNewTokens, stopTokens, earlyStopping } = options;
  const prompts = writer.begun
    .filter((_, row) => row % numBeams === 0)
    .map((begun) => new PromptBeams(begun, options));
  const numKept = Math.max(2, 1 + stopTokens.length) * numBeams;
  for (let step = 1; step <= maxNewTokens; step++) {
    const texts = prompts.flatMap(({ running }) => running.map(({ text }) => text));
    const found = scope(() =>
      likeliest(writer.next(texts), prompts, numKept, adjust && ((row, text) => adjust(row, text, step - 1))),
    );
    const rows: number[] = [];
    let allEnd = true;
    for (const [index, prompt] of prompts.entries()) {
      const candidates = (found[index] ?? []).map(({ beam, token, score }): Candidate => {
        const ends = stopTokens.includes(token) || step === maxNewTokens;
        allEnd = allEnd && ends;
        return { text: [...(prompt.running[beam]?.text ?? []), token], score, beam, ends };
      });
      rows.push(...prompt.take(candidates).map((beam) => index * numBeams + beam));
    }
    for (const prompt of prompts) prompt.lookAhead(maxNewTokens);
    const isOver =
      !prompts.some(({ mayImprove }) => mayImprove) ||
      (earlyStopping === true && prompts.every(({ isFull }) => isFull)) ||
      allEnd;
    if (isOver) break;
    if (rows.some((row, place) => row !== place)) writer.select(rows);
  }
  return prompts.map(({ best: text }) => [...text]);
}

/** The `count` likeliest continuations of each prompt's beams, best first. */
function likeliest(
  logits: Tensor,
  prompts: readonly PromptBeams[],
  count: number,
  adjust: ((row: Float32Array, text: readonly number[]) => void) | undefined,
): { readonly beam: number; readonly token: number; readonly score: number }[][] {
  const [, vocabSize = 0] = logits.shape;
  const running = prompts.flatMap(({ running: beams }) => beams);
  const own = logits.logSoftmax(1); // [B·n, V]
  const changed =
    adjust === undefined ? own : adjusted(own, (row, beam) => adjust(row, running[beam]?.text ?? []));
  const scores = tensor(
    running.map(({ score }) => [score]),
    { dtype: "float32" },
  );
  const [values, indices] = ops.topk(changed.add(scores).view([prompts.length, -1]), count); // [B, count]
  const [flatValues, flatIndices] = [values.toTypedArray(), indices.toTypedArray()];
  return prompts.map((_, prompt) =>
    Array.from({ length: count }, (_, place) => {
      const index = Number(flatIndices[prompt * count + place]);
      return {
        beam: Math.floor(index / vocabSize),
        token: index % vocabSize,
        score: Number(flatValues[prompt * count + place]),
      };
    }),
  );
}

/** The `count` best, in order; equal scores keep their order. */
function best<T extends { readonly score: number }>(of: readonly T[], count: number): T[] {
  return of.toSorted((a, b) => b.score - a.score).slice(0, count);
}

/** Replaces the score by one below all others if `isOut`. */
function lowered(score: number, isOut: boolean): number {
  return isOut ? Math.fround(score + LOWEST) : score;
}
