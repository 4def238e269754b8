import { Decoding, type PagedText } from "../../../compute/nn/index.ts";
import { hold, noGrad, scope, type Tensor, tensor } from "../../../compute/tensor/index.ts";
import type { LanguageModel, Logits } from "../language-model.ts";
import { type GenerativeModel, type Seq2SeqModel, startTokenOf } from "./generative-model.ts";
import { PagedTexts } from "./paged-texts.ts";

/** A batch of texts in generation, which computes each position once. */
export interface Writer extends Disposable {
  /** Tokens before the generated ones, for each row: the prompt, or an encoder-decoder's first token. */
  readonly begun: readonly (readonly number[])[];
  /**
   * @param texts - all rows' tokens so far, one longer on each call
   * @returns logits of the next tokens, [B, V], in the caller's scope
   */
  next(texts: readonly (readonly number[])[]): Tensor;
  /** Replaces row b by the former row `rows[b]`. */
  select(rows: readonly number[]): void;
}

/** Rows padded to one length, and a mask. */
export interface PaddedRows {
  readonly ids: Tensor;
  /** Undefined if nothing is padded. */
  readonly present: Tensor | undefined;
}

/** int64 [B, T] and bool [B, T]. */
function padRows(rows: readonly (readonly number[])[], padToken: number, side: "left" | "right"): PaddedRows {
  const length = Math.max(...rows.map((row) => row.length));
  const filled = <T>(row: readonly T[], padding: T) => {
    const gap = new Array<T>(length - row.length).fill(padding);
    return side === "left" ? [...gap, ...row] : [...row, ...gap];
  };
  const ids = tensor(
    rows.map((row) => filled(row, padToken)),
    { dtype: "int64" },
  );
  if (rows.every((row) => row.length === length)) return { ids, present: undefined };
  const present = rows.map((row) =>
    filled(
      row.map(() => 1),
      0,
    ),
  );
  return { ids, present: tensor(present, { dtype: "bool" }) };
}

/** Continues prompts, padded on the left. Beyond the model's context the last positions are computed again for each token. */
export class Continuation implements Writer {
  readonly begun: readonly (readonly number[])[];
  readonly #model: LanguageModel;
  readonly #padToken: number;
  readonly #longest: number;
  readonly #decoding: Decoding;

  constructor(
    model: LanguageModel,
    prompts: readonly (readonly number[])[],
    options: { readonly padToken: number; readonly maxNewTokens: number },
  ) {
    this.begun = prompts;
    this.#model = model;
    this.#padToken = options.padToken;
    this.#longest = Math.max(...prompts.map((prompt) => prompt.length));
    const capacity = Math.min(model.maxPositions, this.#longest + options.maxNewTokens);
    this.#decoding = new Decoding(capacity, this.#presentOf(capacity));
  }

  next(texts: readonly (readonly number[])[]): Tensor {
    const length = this.#longest + (texts[0]?.length ?? 0) - (this.begun[0]?.length ?? 0);
    const { capacity, length: past } = this.#decoding;
    if (length > capacity) return this.#slid(texts);
    if (past === 0)
      return scope(() => this.#pass(this.#decoding, padRows(texts, this.#padToken, "left").ids));
    const last = tensor(
      texts.map((text) => [text.at(-1) as number]),
      { dtype: "int64" },
    );
    return this.#pass(this.#decoding, last);
  }

  select(rows: readonly number[]): void {
    scope(() => this.#decoding.select(tensor(rows, { dtype: "int64" })));
  }

  [Symbol.dispose](): void {
    this.#decoding[Symbol.dispose]();
    this.#decoding.present?.dispose();
  }

  #pass(decoding: Decoding, ids: Tensor): Tensor {
    const length = ids.shape[1] ?? 0;
    return decoding.pass(length, () => {
      const attentionMask = decoding.present?.narrow(1, 0, decoding.length + length);
      const options = { logitsToKeep: 1, ...(attentionMask && { attentionMask }) };
      return logitsOf(this.#model.forward(ids, options));
    });
  }

  /** Computes the last positions that fit the context, without a cache. */
  #slid(texts: readonly (readonly number[])[]): Tensor {
    const windows = texts.map((text) => text.slice(-this.#model.maxPositions));
    return scope(() => {
      const { ids, present } = padRows(windows, this.#padToken, "left");
      using fresh = new Decoding(ids.shape[1] ?? 0, present);
      return this.#pass(fresh, ids);
    });
  }

  /** The mask of all positions: generated ones, and those of prompts without padding. */
  #presentOf(capacity: number): Tensor | undefined {
    if (this.begun.every(({ length }) => length === this.#longest)) return undefined;
    const rows = this.begun.map(({ length }) =>
      Array.from({ length: capacity }, (_, place) => Number(place >= this.#longest - length)),
    );
    return hold(() => tensor(rows, { dtype: "bool" }));
  }
}

/**
 * Continues prompts whose keys and values lie in pages, or replies to them: without padding, and rows that continue one text share its
 * pages. Beyond the model's context the last positions are computed again for each token.
 */
export class PagedContinuation implements Writer {
  readonly begun: readonly (readonly number[])[];
  readonly #texts: PagedTexts;
  /** The text of each row; rows that begin with one prompt share one until their first token. */
  #kept: PagedText[];

  constructor(
    model: GenerativeModel,
    prompts: readonly (readonly number[])[],
    { maxNewTokens }: { readonly maxNewTokens: number },
  ) {
    const start = startTokenOf(model);
    this.begun = start === undefined ? prompts : prompts.map(() => [start]);
    this.#texts = new PagedTexts(model, prompts, { mostTexts: prompts.length, maxNewTokens });
    const open = (prompt: readonly number[]) => {
      if (start === undefined) return this.#texts.open();
      const source = this.#texts.read(prompt);
      const text = this.#texts.open(source);
      this.#texts.leave(source);
      return text;
    };
    const opened = new Map([...new Set(prompts)].map((prompt) => [prompt, open(prompt)]));
    this.#kept = prompts.map((prompt) => opened.get(prompt) as PagedText);
  }

  next(texts: readonly (readonly number[])[]): Tensor {
    const { maxPositions } = this.#texts;
    const firsts = texts.map((text) => Math.max(0, text.length - maxPositions));
    for (const [row, kept] of this.#kept.entries()) {
      if ((firsts[row] ?? 0) === 0 || kept.length < maxPositions) continue;
      this.#kept[row] = this.#texts.restart(kept);
    }
    const rows = new Map(this.#kept.map((kept, row) => [kept, row]));
    const placed = [...rows].flatMap(([text, row]) => {
      const [begin, own] = [text.length, (texts[row] ?? []).slice(firsts[row])];
      this.#texts.grow(text, own.length - begin);
      return own.slice(begin).map((id, index) => ({
        text,
        position: begin + index,
        id,
        isLast: begin + index + 1 === own.length,
      }));
    });
    const tokens = [...placed.filter(({ isLast }) => !isLast), ...placed.filter(({ isLast }) => isLast)];
    const order = [...rows.keys()];
    const places = this.#kept.map((kept) => order.indexOf(kept));
    const made = this.#texts.pass(tokens, order.length);
    const logits = made.indexSelect(0, tensor(places, { dtype: "int64" }));
    // From here on each row writes a text of its own.
    const first = new Set<PagedText>();
    this.#kept = this.#kept.map((kept) => {
      if (first.has(kept)) return this.#texts.share(kept, kept.length);
      first.add(kept);
      return kept;
    });
    return logits;
  }

  select(rows: readonly number[]): void {
    const before = this.#kept;
    this.#kept = rows.map((row) => {
      const kept = before[row] as PagedText;
      return this.#texts.share(kept, kept.length);
    });
    for (const kept of before) this.#texts.release(kept);
  }

  [Symbol.dispose](): void {
    this.#texts[Symbol.dispose]();
  }
}

/** Generates a text for each input without pages: it is encoded once, padded on the right. */
export class Reply implements Writer {
  readonly begun: readonly (readonly number[])[];
  readonly #model: Seq2SeqModel;
  readonly #source: PaddedRows;
  readonly #decoding: Decoding;

  constructor(
    model: Seq2SeqModel,
    sources: readonly (readonly number[])[],
    options: { readonly padToken: number; readonly maxNewTokens: number },
  ) {
    const { ids, present } = scope(() => padRows(sources, options.padToken, "right"));
    this.#source = { ids: hold(ids), present: present && hold(present) };
    this.begun = sources.map(() => [Number(model.configJson.decoder_start_token_id)]);
    this.#model = model;
    this.#decoding = new Decoding(1 + options.maxNewTokens);
  }

  next(texts: readonly (readonly number[])[]): Tensor {
    const { ids: inputIds, present: attentionMask } = this.#source;
    const past = this.#decoding.length;
    const decoderInputIds = tensor(
      texts.map((text) => text.slice(past)),
      { dtype: "int64" },
    );
    return this.#decoding.pass(decoderInputIds.shape[1] ?? 0, () =>
      logitsOf(this.#model.forward({ inputIds, attentionMask, decoderInputIds }) as Logits),
    );
  }

  select(rows: readonly number[]): void {
    scope(() => this.#decoding.select(tensor(rows, { dtype: "int64" })));
  }

  [Symbol.dispose](): void {
    this.#decoding[Symbol.dispose]();
    this.#source.ids.dispose();
    this.#source.present?.dispose();
  }
}

/** [B, T, V] → [B, V], logits of the last position, in float32. */
function logitsOf({ logits }: Logits): Tensor {
  const { shape } = logits;
  return noGrad(() => logits.select(1, (shape[1] ?? 1) - 1).to("float32"));
}
