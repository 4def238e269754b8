import { Decoding, type Module } from "../../../compute/nn/index.ts";
import { hold, noGrad, scope, type Tensor, tensor } from "../../../compute/tensor/index.ts";
import type { LanguageModel, Logits } from "../language-model.ts";
import type { NamedState } from "../weights.ts";

/** An encoder-decoder that generates text: T5, BART. */
export interface Seq2SeqModel extends Module, NamedState {
  forward(batch: {
    readonly inputIds: Tensor;
    readonly attentionMask?: Tensor | undefined;
    readonly decoderInputIds?: Tensor | undefined;
  }): Readonly<Record<string, Tensor>>;
}

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

/** Generates a text for each input, which is encoded once, padded on the right. */
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
