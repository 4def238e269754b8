import { type PagedText, Pages, type PlacedToken } from "../../../compute/nn/index.ts";
import { type Tensor, tensor } from "../../../compute/tensor/index.ts";
import type { LanguageModel } from "../language-model.ts";
import { type GenerativeModel, type Seq2SeqModel, startTokenOf } from "./generative-model.ts";

/** A token of a pass. */
export interface IdentifiedToken extends PlacedToken {
  readonly id: number;
}

/** A prompt that an encoder reads: the keys and values of its tokens are made once, for all texts that reply to it. */
export interface Source {
  readonly tokens: readonly number[];
  readonly text: PagedText;
  /** Number of texts that reply to it, and of those who may open one. */
  numReaders: number;
}

/**
 * Texts that a model writes in pages: continued prompts, or replies to prompts that its encoder reads. The keys and values of an
 * encoder's states lie in pages of their own, once for each prompt.
 */
export class PagedTexts implements Disposable {
  readonly #model: GenerativeModel;
  readonly #isReply: boolean;
  readonly #pages: Pages;
  readonly #sources: Pages;
  readonly #sourceOf = new Map<PagedText, Source>();
  /** The prompts that the next pass reads. */
  #fresh: Source[] = [];

  /** @param mostTexts - at a time @param maxNewTokens - of each */
  constructor(
    model: GenerativeModel,
    prompts: readonly (readonly number[])[],
    { mostTexts, maxNewTokens }: { readonly mostTexts: number; readonly maxNewTokens: number },
  ) {
    this.#model = model;
    this.#isReply = startTokenOf(model) !== undefined;
    const longest = prompts.reduce((most, { length }) => Math.max(most, length), 0);
    const length = (this.#isReply ? 1 : longest) + maxNewTokens;
    this.#pages = new Pages(mostTexts, Math.min(length, this.maxPositions));
    this.#sources = new Pages(Math.min(mostTexts, prompts.length), longest);
  }

  /** Longest context. */
  get maxPositions(): number {
    return this.#model.maxPositions ?? Number.POSITIVE_INFINITY;
  }

  /** Bytes of all keys and values. */
  get bytes(): number {
    return this.#pages.bytes + this.#sources.bytes;
  }

  /** Number of tokens that the encoder reads in the next pass. */
  get numFresh(): number {
    return this.#fresh.reduce((sum, { tokens }) => sum + tokens.length, 0);
  }

  /** Takes up a prompt that texts reply to, until the caller leaves it and they are released. */
  read(tokens: readonly number[]): Source {
    const text = this.#sources.open();
    this.#sources.grow(text, tokens.length);
    const source = { tokens, text, numReaders: 1 };
    this.#fresh.push(source);
    return source;
  }

  /** Gives a prompt up that no further text replies to. */
  leave(source: Source): void {
    source.numReaders--;
    if (source.numReaders === 0) this.#sources.release(source.text);
  }

  /** Begins an empty text. @param source - the prompt that it replies to */
  open(source?: Source): PagedText {
    return this.#replying(this.#pages.open(), source);
  }

  /** Begins a text with the first `length` positions of another, which it shares. */
  share(text: PagedText, length: number): PagedText {
    return this.#replying(this.#pages.share(text, length), this.#sourceOf.get(text));
  }

  /** Begins an empty text in place of another. */
  restart(text: PagedText): PagedText {
    const empty = this.open(this.#sourceOf.get(text));
    this.release(text);
    return empty;
  }

  /** Makes room for further positions, which the next pass must write. */
  grow(text: PagedText, numPositions: number): void {
    this.#pages.grow(text, numPositions);
  }

  release(text: PagedText): void {
    this.#pages.release(text);
    const source = this.#sourceOf.get(text);
    this.#sourceOf.delete(text);
    if (source !== undefined) this.leave(source);
  }

  /**
   * Computes tokens in one row, and what the encoder makes of new prompts.
   * @param count - number of the last tokens whose logits are wanted, at least one
   * @returns float32 [count, V]
   */
  pass(tokens: readonly IdentifiedToken[], count: number): Tensor {
    const fresh = this.#fresh.splice(0);
    const read = {
      pages: this.#sources,
      fresh: fresh.map(({ text }) => text),
      of: (text: PagedText) => (this.#sourceOf.get(text) as Source).text,
    };
    return this.#pages.pass(
      tokens,
      () => this.#logits(tokens, fresh, count),
      this.#isReply ? read : undefined,
    );
  }

  [Symbol.dispose](): void {
    this.#pages[Symbol.dispose]();
    this.#sources[Symbol.dispose]();
  }

  #replying(text: PagedText, source: Source | undefined): PagedText {
    if (source === undefined) return text;
    source.numReaders++;
    this.#sourceOf.set(text, source);
    return text;
  }

  #logits(tokens: readonly IdentifiedToken[], fresh: readonly Source[], count: number): Tensor {
    const row = (values: readonly number[]) => tensor(values, { dtype: "int64", shape: [1, values.length] });
    const [ids, positionIds] = [row(tokens.map(({ id }) => id)), row(tokens.map(({ position }) => position))];
    if (!this.#isReply) {
      const model = this.#model as LanguageModel;
      return model.forward(ids, { positionIds, logitsToKeep: count }).logits.select(0, 0).to("float32");
    }
    let end = 0;
    const ends = fresh.map(({ tokens: { length } }) => {
      end += length;
      return end;
    });
    const { logits } = (this.#model as Seq2SeqModel).forward({
      inputIds: row(fresh.flatMap(({ tokens: own }) => own)),
      segments: fresh.length === 0 ? undefined : tensor([0, ...ends], { dtype: "int64" }),
      decoderInputIds: ids,
      decoderPositionIds: positionIds,
    });
    return (logits as Tensor)
      .select(0, 0)
      .narrow(0, tokens.length - count, count)
      .to("float32");
  }
}
