/** What was sent last, in bounded memory, for pages that come back. */
export class Replay {
  readonly #maxCharacters: number;
  #texts: { readonly number: number; readonly text: string }[] = [];
  #numCharacters = 0;

  constructor(maxCharacters: number) {
    this.#maxCharacters = maxCharacters;
  }

  /** @param number - rises by one with each text */
  push(number: number, text: string): void {
    this.#texts.push({ number, text });
    this.#numCharacters += text.length;
    let numGone = 0;
    while (this.#numCharacters > this.#maxCharacters && numGone < this.#texts.length) {
      this.#numCharacters -= this.#texts[numGone++]?.text.length ?? 0;
    }
    if (numGone > 0) this.#texts = this.#texts.slice(numGone);
  }

  /** @returns what came after text `number`, up to `latest`; undefined where some of it is gone */
  since(number: number, latest: number): readonly string[] | undefined {
    if (number === latest) return [];
    if (number > latest || (this.#texts[0]?.number ?? Number.POSITIVE_INFINITY) > number + 1)
      return undefined;
    return this.#texts.filter((entry) => entry.number > number).map(({ text }) => text);
  }
}
