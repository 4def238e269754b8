/** What the feeding end of a stream needs of its endpoint. */
export interface ProducerLine {
  item(item: unknown): void;
  end(error: unknown): void;
}

/** The feeding end of a stream: pulls from an iterable only what the consumer has credit for. */
export class StreamProducer {
  readonly #iterator: AsyncIterator<unknown> | Iterator<unknown>;
  readonly #line: ProducerLine;
  #credits = 0;
  #pulling = false;
  #cancelled = false;

  constructor(items: AsyncIterable<unknown> | Iterable<unknown>, line: ProducerLine) {
    this.#iterator = Symbol.asyncIterator in items ? items[Symbol.asyncIterator]() : items[Symbol.iterator]();
    this.#line = line;
  }

  /** Grants so many items more. */
  want(count: number): void {
    this.#credits += count;
    if (!this.#pulling) void this.#pull();
  }

  /** Stops pulling and lets the source clean up. */
  cancel(): void {
    if (this.#cancelled) return;
    this.#cancelled = true;
    if (!this.#pulling) void this.#release();
  }

  /** Never rejects: what the source throws travels to the consumer. */
  async #pull(): Promise<void> {
    this.#pulling = true;
    try {
      while (this.#credits > 0 && !this.#cancelled) {
        const { done, value } = await this.#iterator.next();
        if (done) return this.#end(undefined);
        if (this.#cancelled) break;
        this.#credits -= 1;
        this.#line.item(value);
      }
    } catch (error) {
      return this.#end(error);
    }
    this.#pulling = false;
    if (this.#cancelled) await this.#release();
  }

  #end(error: unknown): void {
    this.#cancelled = true;
    this.#line.end(error);
  }

  async #release(): Promise<void> {
    try {
      await this.#iterator.return?.();
      this.#line.end(undefined);
    } catch (error) {
      this.#line.end(error);
    }
  }
}
