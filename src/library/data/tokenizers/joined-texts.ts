import { TroupeError } from "../../../errors/index.ts";
import type { Span } from "./aligned-text.ts";
import type { HuggingFaceTokenizer } from "./hugging-face.ts";

/** The text that is cut where two together are too long; "refuse": none, an error is thrown. */
export type Truncation = "longest-first" | "only-first" | "only-second" | "refuse";

/** Options of {@link joinTexts}. */
export interface JoinOptions {
  /** The longest row, with special tokens. Default: no limit. */
  readonly mostTokens?: number;
  /** Default: "longest-first". */
  readonly truncation?: Truncation;
  /** Whether the tokenizer's special tokens are added around and between the texts. Default: true. */
  readonly specialTokens?: boolean;
}

/** A row of tokens, with the type, text and range of each. */
export interface JoinedTexts {
  readonly ids: readonly number[];
  /** `token_type_ids`: the tokenizer's numbers of the parts of a row. */
  readonly types: readonly number[];
  /** The text of each token, 0 or 1; undefined for special tokens. */
  readonly sources: readonly (0 | 1 | undefined)[];
  /** The range of each token in its text, in UTF-16 units; [0, 0] for special tokens. */
  readonly spans: readonly Span[];
}

/** One of a row's tokens. */
interface Token {
  readonly id: number;
  readonly type: number;
  readonly source: 0 | 1 | undefined;
  readonly span: Span;
}

/** An element of a row: a special token, or one of the texts. */
type Place = { readonly id: number; readonly type: number } | { readonly text: 0 | 1; readonly type: number };

interface Piece {
  readonly Sequence?: { readonly id: string; readonly type_id: number };
  readonly SpecialToken?: { readonly id: string; readonly type_id: number };
}

interface PostProcessor {
  readonly type: string;
  readonly processors?: readonly PostProcessor[];
  readonly single?: readonly Piece[];
  readonly pair?: readonly Piece[];
  readonly special_tokens?: Readonly<Record<string, { readonly ids: readonly number[] }>>;
  readonly cls?: readonly [token: string, id: number];
  readonly sep?: readonly [token: string, id: number];
}

/**
 * Joins one text, or two, into a row of tokens like the tokenizer's `post_processor`: the same as transformers' fast
 * tokenizers return for a text and its `text_pair`.
 * @throws {TroupeError} `TOKENIZER_TOO_LONG` where the row is too long and the text that may be cut is too short
 */
export function joinTexts(
  tokenizer: HuggingFaceTokenizer,
  texts: readonly [first: string] | readonly [first: string, second: string],
  {
    mostTokens = Number.POSITIVE_INFINITY,
    truncation = "longest-first",
    specialTokens = true,
  }: JoinOptions = {},
): JoinedTexts {
  const processor = tokenizer.spec.tokenizer.post_processor as PostProcessor | null | undefined;
  const places = specialTokens ? placesOf(processor ?? undefined, texts.length) : bare(texts.length);
  const encoded = texts.map((text) => tokenizer.encodeWithSpans(text));
  const room = mostTokens - places.filter((place) => "id" in place).length;
  const kept = shares(
    // Tokens beyond the longest row do not matter.
    encoded.map(({ ids }) => Math.min(ids.length, mostTokens)),
    room,
    truncation,
  );
  const row = places.flatMap((place): readonly Token[] => {
    if ("id" in place) return [{ id: place.id, type: place.type, source: undefined, span: [0, 0] as Span }];
    const { text: source, type } = place;
    const { ids, spans } = encoded[source] as (typeof encoded)[number];
    return ids.slice(0, kept[source]).map((id, index) => ({ id, type, source, span: spans[index] as Span }));
  });
  return {
    ids: row.map(({ id }) => id),
    types: row.map(({ type }) => type),
    sources: row.map(({ source }) => source),
    spans: row.map(({ span }) => span),
  };
}

function bare(numTexts: number): readonly Place[] {
  const first: Place = { text: 0, type: 0 };
  return numTexts === 1 ? [first] : [first, { text: 1, type: 1 }];
}

function placesOf(processor: PostProcessor | undefined, numTexts: number): readonly Place[] {
  if (processor === undefined) return bare(numTexts);
  const { type, processors = [], cls, sep } = processor;
  if (type === "Sequence")
    return placesOf(
      processors.find((one) => one.type !== "ByteLevel"),
      numTexts,
    );
  if (type === "TemplateProcessing") return templated(processor, numTexts);
  if (cls === undefined || sep === undefined) return bare(numTexts);
  const [begin, end] = [cls[1], sep[1]];
  const first: readonly Place[] = [
    { id: begin, type: 0 },
    { text: 0, type: 0 },
    { id: end, type: 0 },
  ];
  if (numTexts === 1) return first;
  // RoBERTa has two end tokens between the texts, and no types.
  return type === "RobertaProcessing"
    ? [...first, { id: end, type: 0 }, { text: 1, type: 0 }, { id: end, type: 0 }]
    : [...first, { text: 1, type: 1 }, { id: end, type: 1 }];
}

function templated({ single, pair, special_tokens }: PostProcessor, numTexts: number): readonly Place[] {
  const pieces = (numTexts === 1 ? single : pair) ?? [];
  return pieces.flatMap(({ Sequence: text, SpecialToken: special }): readonly Place[] => {
    if (text !== undefined) return [{ text: text.id === "A" ? 0 : 1, type: text.type_id }];
    if (special === undefined) return [];
    return (special_tokens?.[special.id]?.ids ?? []).map((id) => ({ id, type: special.type_id }));
  });
}

/** Number of tokens that are kept of each text. */
function shares(lengths: readonly number[], room: number, truncation: Truncation): readonly number[] {
  const [first = 0, second = 0] = lengths;
  const excess = first + second - room;
  if (!(excess > 0)) return lengths;
  if (truncation === "longest-first" && room >= 0)
    return lengths.length === 1 ? [room] : longestFirst(first, second, room);
  const cut = truncation === "only-second" ? 1 : 0;
  const left = (lengths[cut] ?? 0) - excess;
  if (left > 0 && truncation !== "refuse") return cut === 0 ? [left, second] : [first, left];
  throw new TroupeError("TOKENIZER_TOO_LONG", {
    where: "joinTexts",
    expected: `texts that fit ${room} tokens${truncation === "refuse" ? "" : ` by "${truncation}"`}`,
    got: `${lengths.join(" and ")}`,
    hint: "allow more tokens, or another truncation",
  });
}

/**
 * Divides `room` tokens between two texts: the longer one is cut to the shorter one's length first, then both; an odd
 * token goes to the longer one, else the second.
 */
export function longestFirst(first: number, second: number, room: number): readonly [number, number] {
  if (first + second <= room) return [first, second];
  const [shorter, longer] = first > second ? [second, first] : [first, second];
  const half = Math.floor(room / 2);
  const kept: readonly [number, number] =
    shorter > half ? [half, room - half] : [shorter, Math.min(longer, room - shorter)];
  return first > second ? [kept[1], kept[0]] : kept;
}
