/** Extra cost of an unknown character, relative to the least likely token. */
const UNKNOWN_PENALTY = 10;

/** The likeliest way to a position where a token can end. */
interface Best {
  logProbability: number;
  /** Start of the last token on that way. */
  begin: number;
}

/**
 * SentencePiece's unigram model: of all ways to cut a text into tokens of the vocabulary, the likeliest one, found by
 * Viterbi's algorithm. Of equally likely ways it takes the same one as Hugging Face's tokenizers: at each position
 * where tokens end, the first found from the left. Source: Kudo 2018, section 3.2.
 */
export class UnigramPieces {
  readonly #logProbabilities: ReadonlyMap<string, number>;
  readonly #unknown: number;
  /** Length of the longest token in characters: longer substrings are not looked up. */
  readonly #longest: number;

  /** @param vocabulary - tokens with their log-probabilities, in the order of their ids */
  constructor(vocabulary: readonly (readonly [token: string, logProbability: number])[]) {
    this.#logProbabilities = new Map(vocabulary);
    let least = Number.POSITIVE_INFINITY;
    let longest = 1;
    for (const [token, logProbability] of vocabulary) {
      least = Math.min(least, logProbability);
      longest = Math.max(longest, [...token].length);
    }
    this.#unknown = least - UNKNOWN_PENALTY;
    this.#longest = longest;
  }

  /** Returns the tokens of a piece of text, in order; a character that is in no token stands for itself. */
  encode(piece: string): string[] {
    const characters = [...piece];
    const best: (Best | undefined)[] = [{ logProbability: 0, begin: 0 }];
    for (let begin = 0; begin < characters.length; begin++) this.#extend(characters, begin, best);
    const tokens: string[] = [];
    for (let end = characters.length; end > 0; ) {
      const { begin } = best[end] as Best;
      tokens.push(characters.slice(begin, end).join(""));
      end = begin;
    }
    return tokens.reverse();
  }

  #extend(characters: readonly string[], begin: number, best: (Best | undefined)[]): void {
    const { logProbability: before } = best[begin] as Best;
    const offer = (end: number, logProbability: number) => {
      const known = best[end];
      if (known === undefined || logProbability > known.logProbability) best[end] = { logProbability, begin };
    };
    let isKnown = false;
    let token = "";
    const furthest = Math.min(characters.length, begin + this.#longest);
    for (let end = begin + 1; end <= furthest; end++) {
      token += characters[end - 1];
      const logProbability = this.#logProbabilities.get(token);
      if (logProbability === undefined) continue;
      offer(end, logProbability + before);
      isKnown ||= end === begin + 1;
    }
    if (!isKnown) offer(begin + 1, this.#unknown + before);
  }
}
