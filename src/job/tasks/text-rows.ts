import { type Tensor, tensor } from "../../compute/tensor/index.ts";
import { TroupeError } from "../../errors/index.ts";
import * as data from "../../library/data/index.ts";
import { familyOf, type TextForm } from "../../library/models/index.ts";
import type { TokenList } from "./pack-texts.ts";
import type { DynamicShapes, Fields, TaskData } from "./task.ts";

/** A row of tokens, with facts about each. */
export interface TextRow {
  readonly ids: readonly number[];
  /** 1 in the second text of a pair, its end included. */
  readonly types: readonly number[];
  /** Index of the word, in the second or only text, that a position belongs to; −1 at others. */
  readonly words: readonly number[];
  /** Whether a token is of a text, and not added by the family. */
  readonly isText: readonly boolean[];
}

/** The tokens of a row. */
export interface TextTokens {
  readonly ids: TokenList;
}

/** Texts as a batch. */
export type TextTensors = {
  readonly inputIds: Tensor;
  /** 0 at padding. */
  readonly attentionMask: Tensor;
  /** For families with token types. */
  readonly tokenTypeIds?: Tensor;
  /** int64 [n + 1], start of each packed sample, and end of the last; undefined unless packed. */
  readonly segments?: Tensor;
};

const none: TextForm = { begin: [], between: [], end: [] };

/** Converts texts to rows of a family's tokens; two texts are joined as in transformers' tokenizers. */
export class TextRows {
  readonly padding: number;
  readonly #tokenizer: data.Tokenizer;
  readonly #joint: Readonly<Record<"begin" | "between" | "end", readonly number[]>>;
  readonly #hasTypes: boolean;
  /** The family's number of positions, or a smaller given length. */
  readonly mostTokens: number;
  readonly #dynamic: DynamicShapes | undefined;

  /** @throws {TroupeError} `DATA_OPTION` without a tokenizer, or if it lacks a token that the family needs */
  constructor({
    config,
    tokenizer,
    length,
    dynamicShapes,
  }: Pick<TaskData, "config" | "tokenizer" | "length" | "dynamicShapes">) {
    if (tokenizer === undefined) throw refuse("a tokenizer for a task with texts", "none");
    const { begin, between, end } = familyOf(config)?.texts ?? none;
    const idsOf = (tokens: readonly string[]) => tokens.map((token) => idOf(tokenizer, token));
    this.#dynamic = dynamicShapes;
    this.padding = Number(config.pad_token_id ?? 0);
    this.#tokenizer = tokenizer;
    this.#joint = { begin: idsOf(begin), between: idsOf(between), end: idsOf(end) };
    this.#hasTypes = Number(config.type_vocab_size ?? 0) > 1;
    this.mostTokens = Math.min(length ?? Number.POSITIVE_INFINITY, mostPositions(config));
  }

  /** @returns the id of a special token. @throws {TroupeError} `DATA_OPTION` if the tokenizer lacks it */
  idOf(token: string): number {
    return idOf(this.#tokenizer, token);
  }

  /** Makes a row of one or two texts. If it is too long, the longer text is cut first. */
  join(first: string, second?: string): TextRow {
    const ids = [...this.#tokenizer.encode(first)];
    if (second === undefined) return this.#row([], ids.map(withoutWord));
    return this.#row(ids, [...this.#tokenizer.encode(second)].map(withoutWord), true);
  }

  /** All tokens of a text of any length, in a few bytes each. */
  tokensOf(text: string): data.TokenArray {
    const { begin, end } = this.#joint;
    const encoded = this.#tokenizer.encode(text);
    if (begin.length + end.length === 0) return encoded;
    const all = new Uint32Array(begin.length + encoded.length + end.length);
    all.set(begin);
    all.set(encoded, begin.length);
    all.set(end, begin.length + encoded.length);
    return all;
  }

  /** Makes a row of words with their indices, optionally after a text. */
  joinWords(words: readonly string[], before?: string): TextRow {
    // A byte-level vocabulary spells a word with the space before it.
    const space = this.#tokenizer.legalCuts === "before-whitespace" ? " " : "";
    const pieces = words.flatMap((word, place) =>
      [...this.#tokenizer.encode(place === 0 ? word : space + word)].map((id) => ({ id, word: place })),
    );
    const first = before === undefined ? [] : [...this.#tokenizer.encode(before)];
    return this.#row(first, pieces, before !== undefined);
  }

  /** Width of a batch: in training with dynamic shapes that of its longest row, rounded up; else `length`. */
  widthOf(rows: readonly TextTokens[], split: string, length: number): number {
    if (this.#dynamic === undefined || split !== "train") return length;
    const { multiple } = this.#dynamic;
    return Math.min(length, Math.ceil(this.longest(rows) / multiple) * multiple);
  }

  /** With dynamic shapes: how `sampleDataset` groups training rows by length. */
  bucketsOf(train: readonly TextTokens[]): { readonly buckets?: data.LengthBuckets } {
    if (this.#dynamic === undefined || this.#dynamic.isPacked === true) return {};
    const { window, isStep = false } = this.#dynamic;
    return { buckets: { window, isStep, lengthOf: (index) => train[index]?.ids.length ?? 0 } };
  }

  /** @returns the length of the longest row */
  longest(rows: Iterable<TextTokens>): number {
    let most = 1;
    for (const { ids } of rows) most = Math.max(most, ids.length);
    return most;
  }

  /** Calls {@link stack} with the batch's {@link widthOf}; packed samples are concatenated. */
  stackTo(samples: readonly { readonly row: TextRow }[], split: string, length: number): TextTensors {
    const rows = samples.map(({ row }) => row);
    if (!this.#isPacked(split)) return this.stack(rows, this.widthOf(rows, split, length));
    const row = { ids: rows.flatMap(({ ids }) => ids), types: rows.flatMap(({ types }) => types) };
    const bounds = [0];
    for (const { ids } of rows) bounds.push((bounds.at(-1) ?? 0) + ids.length);
    return { ...this.stack([row], this.#packedWidth(rows)), segments: tensor(bounds, { dtype: "int64" }) };
  }

  /** How samples of a split are packed; undefined if each has its own row. */
  packingOf(split: string): { readonly multiple: number; readonly padding: number } | undefined {
    if (!this.#isPacked(split)) return undefined;
    return { multiple: this.#dynamic?.multiple ?? 1, padding: this.padding };
  }

  /** Lays out tokens, or a value for each, as {@link stackTo} lays out tokens. int64 */
  padTo(lists: readonly TokenList[], split: string, length: number, padding: number): Tensor {
    const rows = lists.map((ids) => ({ ids }));
    if (!this.#isPacked(split)) return this.pad(lists, this.widthOf(rows, split, length), padding);
    return this.pad([lists.flatMap((list) => [...list])], this.#packedWidth(rows), padding);
  }

  #isPacked(split: string): boolean {
    return this.#dynamic?.isPacked === true && split === "train";
  }

  #packedWidth(rows: readonly TextTokens[]): number {
    const { multiple = 1 } = this.#dynamic ?? {};
    return Math.ceil(rows.reduce((sum, { ids }) => sum + ids.length, 0) / multiple) * multiple;
  }

  /** int64 [rows, length], padded at the end. */
  stack(rows: readonly Pick<TextRow, "ids" | "types">[], length: number): TextTensors {
    const ids = rows.map((row) => row.ids);
    const present = ids.map((row) => row.map(() => 1));
    const types = rows.map((row) => row.types);
    return {
      inputIds: this.pad(ids, length, this.padding),
      attentionMask: this.pad(present, length, 0),
      ...(this.#hasTypes && { tokenTypeIds: this.pad(types, length, 0) }),
    };
  }

  /** Pads lists of at most `length` values: int64 [rows, length]. */
  pad(rows: readonly TokenList[], length: number, padding: number): Tensor {
    const values = BigInt64Array.from({ length: rows.length * length }, () => BigInt(padding));
    for (const [row, list] of rows.entries())
      for (const [place, value] of list.entries()) values[row * length + place] = BigInt(value);
    return tensor(values, { shape: [rows.length, length] });
  }

  #row(
    first: readonly number[],
    second: readonly { readonly id: number; readonly word: number }[],
    isPair = false,
  ): TextRow {
    const { begin, end } = this.#joint;
    const between = isPair ? this.#joint.between : [];
    const room = Math.max(0, this.mostTokens - begin.length - between.length - end.length);
    const [ofFirst, ofSecond] = data.longestFirst(first.length, second.length, room);
    const head = [...begin, ...first.slice(0, ofFirst), ...between];
    const tail = second.slice(0, ofSecond);
    return {
      ids: [...head, ...tail.map(({ id }) => id), ...end],
      types: [...head.map(() => 0), ...[...tail, ...end].map(() => Number(isPair))],
      words: [...head.map(() => -1), ...tail.map(({ word }) => word), ...end.map(() => -1)],
      isText: [
        ...begin.map(() => false),
        ...first.slice(0, ofFirst).map(() => true),
        ...between.map(() => false),
        ...tail.map(() => true),
        ...end.map(() => false),
      ],
    };
  }
}

const withoutWord = (id: number) => ({ id, word: -1 });

/** Maximum number of tokens in a row of a family. */
function mostPositions(config: Fields): number {
  const { max_position_embeddings: most, n_positions, text_config } = config;
  if (text_config !== undefined) return mostPositions(text_config as Fields);
  const positions = Number(most ?? n_positions ?? Number.POSITIVE_INFINITY);
  return familyOf(config)?.texts?.maxTokens?.(positions, config) ?? positions;
}

function idOf(tokenizer: data.Tokenizer, token: string): number {
  const [id, ...more] = tokenizer.encode(token);
  if (id !== undefined && more.length === 0) return id;
  throw refuse(`a tokenizer in which ${token} is one token`, `${more.length + 1}`);
}

function refuse(expected: string, got: string): TroupeError {
  return new TroupeError("DATA_OPTION", {
    where: "tasks",
    expected,
    got,
    hint: "give the model's own: a folder with tokenizer.json, or with vocab.txt",
    fields: { got },
  });
}
