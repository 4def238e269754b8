import { ops, scope, type Tensor, tensor } from "../../../compute/tensor/index.ts";
import type { Settled } from "./options.ts";
import type { Writer } from "./writer.ts";

// As transformers 5 has it (generation/utils.py, `_beam_search`), score by score in float32, so that ties fall alike.

/** A text with the sum of its tokens' log-probabilities, or what is made of it. */
interface Beam {
  readonly text: readonly number[];
  readonly score: number;
}

/** A continuation of a beam. */
interface Candidate extends Beam {
  /** Of the beam it goes on from, among those of its prompt. */
  readonly beam: number;
  /** Whether it has come to an end. */
  readonly ends: boolean;
}

/** Below every score: a place that no text has. */
const NOBODY = -1e9;

/** The beams of one prompt. */
class PromptBeams {
  running: readonly Beam[];
  #finished: readonly (Beam & { readonly isWhole: boolean })[];
  #mayImprove = true;
  readonly #options: Settled;
  readonly #begun: number;

  constructor(begun: readonly number[], options: Settled) {
    const { numBeams } = options;
    this.#options = options;
    this.#begun = begun.length;
    // All start alike: only the first may go on, or all would say the same.
    this.running = Array.from({ length: numBeams }, (_, beam) => ({
      text: begun,
      score: beam === 0 ? 0 : NOBODY,
    }));
    this.#finished = Array.from({ length: numBeams }, () => ({ text: begun, score: NOBODY, isWhole: false }));
  }

  /** The likeliest text that has ended. */
  get best(): readonly number[] {
    return this.#finished[0]?.text ?? [];
  }

  /** Whether it could still come to a better end; false once as many have ended as there are beams, where that is to be enough. */
  get mayImprove(): boolean {
    return this.#mayImprove;
  }

  get isFull(): boolean {
    return this.#finished.every(({ isWhole }) => isWhole);
  }

  /**
   * Takes the likeliest continuations, best first: those that end into the finished, and of the others as many as there are beams.
   * @returns of each beam that runs on the one it goes on from
   */
  take(candidates: readonly Candidate[]): number[] {
    const { numBeams, lengthPenalty, earlyStopping } = this.#options;
    const next = best(
      candidates.map((candidate) => ({ ...candidate, score: lowered(candidate.score, candidate.ends) })),
      numBeams,
    );
    const length = (candidates[0]?.text.length ?? 0) - this.#begun;
    const isClosed = (this.isFull && earlyStopping === true) || !this.#mayImprove;
    // Those behind the first ones stand by, so that enough run on; they may not end.
    const ended = candidates.map(({ text, score, ends }, place) => {
      const isWhole = ends && place < numBeams;
      const averaged = Math.fround(score / Math.fround(length ** lengthPenalty));
      return { text, isWhole, score: lowered(lowered(averaged, isClosed), !isWhole) };
    });
    this.#finished = best([...this.#finished, ...ended], numBeams);
    this.running = next;
    return next.map(({ beam }) => beam);
  }

  /** @param mostTokens - that may be added in all @see `_check_early_stop_heuristic` */
  lookAhead(mostTokens: number): void {
    const { lengthPenalty, earlyStopping } = this.#options;
    const length =
      earlyStopping === "never" && lengthPenalty > 0
        ? mostTokens
        : (this.running[0]?.text.length ?? 0) - this.#begun;
    const possible = Math.fround((this.running[0]?.score ?? 0) / length ** lengthPenalty);
    const worst = Math.min(...this.#finished.map(({ score }) => score));
    const isBetter = this.#finished.some(({ isWhole }) => possible > (isWhole ? worst : NOBODY));
    this.#mayImprove = this.#mayImprove && isBetter;
  }
}

/**
 * The likeliest text of each prompt, of several that are pursued at once.
 * @param writer - of rows in groups of `numBeams`, one group a prompt
 * @param adjust - changes the log-probabilities of a row in place, by its text
 * @returns what each prompt began with and what was written, its end included
 */
export function searchBeams(
  writer: Writer,
  options: Settled,
  adjust: ((row: Float32Array, text: readonly number[]) => void) | undefined,
): number[][] {
  const { numBeams, maxNewTokens, stopTokens, earlyStopping } = options;
  const prompts = writer.begun
    .filter((_, row) => row % numBeams === 0)
    .map((begun) => new PromptBeams(begun, options));
  const numKept = Math.max(2, 1 + stopTokens.length) * numBeams;
  for (let step = 1; step <= maxNewTokens; step++) {
    const texts = prompts.flatMap(({ running }) => running.map(({ text }) => text));
    const found = scope(() => likeliest(writer.next(texts), prompts, numKept, adjust));
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

/** Of each prompt the `count` likeliest continuations of its beams, best first. */
function likeliest(
  logits: Tensor,
  prompts: readonly PromptBeams[],
  count: number,
  adjust: ((row: Float32Array, text: readonly number[]) => void) | undefined,
): { readonly beam: number; readonly token: number; readonly score: number }[][] {
  const [, vocabSize = 0] = logits.shape;
  const running = prompts.flatMap(({ running: beams }) => beams);
  const own = logits.logSoftmax(1); // [B·n, V]
  const adjusted = adjust === undefined ? own : adjustedBy(own, running, adjust);
  const scores = tensor(
    running.map(({ score }) => [score]),
    { dtype: "float32" },
  );
  const [values, indices] = ops.topk(adjusted.add(scores).view([prompts.length, -1]), count); // [B, count]
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

function adjustedBy(
  logProbabilities: Tensor,
  running: readonly Beam[],
  adjust: (row: Float32Array, text: readonly number[]) => void,
): Tensor {
  const { shape } = logProbabilities;
  const values = logProbabilities.contiguous().toTypedArray() as Float32Array;
  const width = shape[1] ?? 0;
  for (const [row, { text }] of running.entries())
    adjust(values.subarray(row * width, (row + 1) * width), text);
  return tensor(values, { shape });
}

/** The `count` of the highest score, the first of equal ones first. */
function best<T extends { readonly score: number }>(of: readonly T[], count: number): T[] {
  return of.toSorted((a, b) => b.score - a.score).slice(0, count);
}

/** A score that nothing of worth has, where it is to count no more. */
function lowered(score: number, isOut: boolean): number {
  return isOut ? Math.fround(score + NOBODY) : score;
}
