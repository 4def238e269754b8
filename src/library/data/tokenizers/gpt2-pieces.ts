const maxCachedPieces = 1 << 17;
const maxCachedLength = 64;

/** A token that stands for itself, as a `tokenizer.json` lists it. */
export interface SpecialToken {
  readonly content: string;
  /** Whether it takes the white space before it in, and behind it. */
  readonly lstrip?: boolean | undefined;
  readonly rstrip?: boolean | undefined;
}

/**
 * Encodes a text piece by piece as GPT-2 splits it, remembering the pieces. Byte pairs never merge across pieces,
 * so the result equals encoding the text whole; since words repeat, it is several times faster.
 * Source: Radford et al. 2019, section 2.2; the expression is that of the published encoder.
 */
export class Gpt2Pieces {
  // White space is Unicode's. \s of JavaScript has U+FEFF and lacks U+0085, which the published encoder has the other way round.
  readonly #piece =
    /'s|'t|'re|'ve|'m|'ll|'d| ?\p{L}+| ?\p{N}+| ?[^\p{White_Space}\p{L}\p{N}]+|\p{White_Space}+(?!\P{White_Space})|\p{White_Space}+/gu;
  readonly #special: RegExp | undefined;
  readonly #specials: readonly SpecialToken[];
  readonly #prefixSpace: boolean;
  readonly #encodePiece: (piece: string) => number[];
  readonly #cache = new Map<string, number[]>();

  /**
   * @param specials - tokens that stand for themselves wherever the text holds them
   * @param encodePiece - tokens of one piece or special
   * @param prefixSpace - whether a text that does not begin with a space is read as if it did, as RoBERTa's may be
   */
  constructor(
    specials: readonly SpecialToken[],
    encodePiece: (piece: string) => number[],
    { prefixSpace = false }: { readonly prefixSpace?: boolean } = {},
  ) {
    this.#specials = specials.toSorted((a, b) => b.content.length - a.content.length);
    this.#encodePiece = encodePiece;
    this.#prefixSpace = prefixSpace;
    if (specials.length > 0) this.#special = new RegExp(`(${this.#specials.map(pattern).join("|")})`, "u");
  }

  /** The tokens of `text`. */
  encode(text: string): number[] {
    const ids: number[] = [];
    for (const [index, section] of this.#sections(text).entries()) {
      if (section === "") continue;
      // Between two sections stands what separated them.
      const special = index % 2 === 1 && this.#specials.find(({ content }) => section.includes(content));
      if (special) {
        ids.push(...this.#encodePiece(special.content));
        continue;
      }
      const spaced = this.#prefixSpace && !section.startsWith(" ") ? ` ${section}` : section;
      for (const match of spaced.matchAll(this.#piece)) {
        for (const id of this.#cached(match[0])) ids.push(id);
      }
    }
    return ids;
  }

  #sections(text: string): readonly string[] {
    return this.#special === undefined ? [text] : text.split(this.#special);
  }

  #cached(piece: string): number[] {
    const known = this.#cache.get(piece);
    if (known !== undefined) return known;
    const ids = this.#encodePiece(piece);
    if (piece.length <= maxCachedLength) {
      // Emptying it whole is cheaper than keeping an order of use, and happens once per some 100 MB of prose.
      if (this.#cache.size >= maxCachedPieces) this.#cache.clear();
      // A piece cut from a text keeps that whole text alive: the copy does not.
      this.#cache.set(Buffer.from(piece).toString(), ids);
    }
    return ids;
  }
}

function pattern({ content, lstrip, rstrip }: SpecialToken): string {
  const space = "\\p{White_Space}*";
  return `${lstrip ? space : ""}${literal(content)}${rstrip ? space : ""}`;
}

/** The expression that matches `text` and nothing else. */
export function literal(text: string): string {
  return text.replace(/[\\^$.*+?()[\]{}|/]/g, "\\$&");
}
