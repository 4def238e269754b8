import { refusal } from "./refusal.ts";

/**
 * The table of a SentencePiece model that says what its normalization makes of characters: a double-array trie over the bytes of what is
 * replaced, then what replaces it, one behind the other.
 * Source: Yata 2007 (the trie); `precompiled_charsmap` of SentencePiece's `normalizer_spec`.
 */
export class Charsmap {
  readonly #units: Uint32Array;
  readonly #replacements: Buffer;

  /** @param base64 - `precompiled_charsmap` of a `tokenizer.json` */
  constructor(base64: string) {
    const bytes = Buffer.from(base64, "base64");
    const numUnits = bytes.length < LENGTH_BYTES ? 0 : bytes.readUInt32LE(0) / UNIT_BYTES;
    if (!(Number.isInteger(numUnits) && LENGTH_BYTES + numUnits * UNIT_BYTES <= bytes.length))
      throw refusal(
        "precompiled_charsmap: a table within its bytes",
        `${numUnits} units in ${bytes.length} bytes`,
      );
    this.#units = Uint32Array.from({ length: numUnits }, (_, unit) =>
      bytes.readUInt32LE(LENGTH_BYTES + unit * UNIT_BYTES),
    );
    this.#replacements = bytes.subarray(LENGTH_BYTES + numUnits * UNIT_BYTES);
  }

  /** Returns the replacement of the first characters of `text`, as few of them as the table has; undefined where it has none. */
  replacementOf(text: string): string | undefined {
    const [root = 0] = this.#units;
    let place = offsetOf(root);
    for (const byte of Buffer.from(text)) {
      place ^= byte;
      const unit = this.#units[place] ?? 0;
      if (byte === 0 || labelOf(unit) !== byte) return undefined;
      place ^= offsetOf(unit);
      if (endsKey(unit)) return this.#replacementAt((this.#units[place] ?? 0) & VALUE_BITS);
    }
    return undefined;
  }

  #replacementAt(begin: number): string {
    const end = this.#replacements.indexOf(0, begin);
    if (begin > this.#replacements.length || end < 0 || end - begin > MAX_REPLACEMENT_BYTES)
      throw refusal(
        `precompiled_charsmap: replacements of at most ${MAX_REPLACEMENT_BYTES} bytes, each with its end`,
        `${end - begin}`,
      );
    return this.#replacements.toString("utf8", begin, end);
  }
}

const [LENGTH_BYTES, UNIT_BYTES] = [4, 4];
/** The most bytes that replace one character; the longest in published tables has 55. */
const MAX_REPLACEMENT_BYTES = 256;
const VALUE_BITS = 0x7fffffff;

const labelOf = (unit: number): number => (unit & 0x800000ff) >>> 0;

const offsetOf = (unit: number): number => (unit >>> 10) << ((unit & 0x200) >>> 6);

const endsKey = (unit: number): boolean => (unit & 0x100) !== 0;
