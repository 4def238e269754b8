import { empty, hold, itemBytes, noGrad, ops, scope, type Tensor, tensor } from "../../tensor/index.ts";
import type { AttentionOptions } from "./attention.ts";

// N tokens of a pass, H query heads, G key/value heads, K head width, P pages of a slab.

/** Positions of a page: those that `troupe::paged_attention_` reads side by side. */
const PAGE_POSITIONS = 8;

/** Maximum number of slabs that all texts take, if they share little. A GPU's attention reads from at most 216. */
const NUM_SLABS = 128;

/** The least columns of a pass's table of pages. */
const FEWEST_COLUMNS = 8;

/** A text whose keys and values lie in pages. Only {@link Pages} changes it. */
export interface PagedText {
  /** Indices of its pages, in order. Other texts with the same beginning may have them too. */
  readonly pages: readonly number[];
  /** Number of positions with keys and values. */
  readonly length: number;
  /** Number of positions that it shares with others, if their last page is not full; else 0. Those that follow begin a page. */
  readonly shared: number;
}

/** A token of a pass. */
export interface PlacedToken {
  readonly text: PagedText;
  readonly position: number;
}

/** Texts that those of a pass read besides themselves, complete: what an encoder has made of their prompts. */
export interface ReadTexts {
  /** Where their keys and values lie, of {@link crossAttention}. */
  readonly pages: Pages;
  /** The texts that have none yet: the pass makes them, in one row, one after the other. */
  readonly fresh: readonly PagedText[];
  /** The one that a text of the pass reads. */
  of(text: PagedText): PagedText;
}

/** Slabs of one attention: keys [P, G, K, 8], values [P, G, 8, K]. */
interface KeptPages {
  readonly keys: Tensor[];
  readonly values: Tensor[];
}

/** The places that the tokens of a pass attend to, as tensors, int64. */
interface Places {
  readonly pages: Pages;
  /** [texts, 1 + most pages]: what a text shares, then its pages. */
  readonly table: Tensor;
  /** [N] */
  readonly texts: Tensor;
  /** [N]: the last position that a token sees. */
  readonly positions: Tensor;
}

/** Places in texts that they read besides their own. */
interface ReadPlaces extends Places {
  /** [2, M]: the text and the position of each token whose keys and values the pass makes. */
  readonly written: Tensor;
}

interface Pass {
  readonly own: Places;
  readonly read: ReadPlaces | undefined;
}

let current: Pass | undefined;

/**
 * The keys and values of many texts that a model writes, of any lengths, in pages of eight positions. Texts with the same beginning
 * share its pages, and each goes on in a page of its own; one that does so once more gets a copy of the last. Memory grows with the
 * pages in use, and pages of texts that have ended are used again.
 */
export class Pages implements Disposable {
  /** Maximum number of positions of a text. */
  readonly mostPositions: number;
  readonly #slabPages: number;
  /** Number of texts that have each page. */
  readonly #uses: number[] = [];
  readonly #free: number[] = [];
  readonly #kept = new Map<object, KeptPages>();
  /** Pages to copy before the next pass, from and to. */
  #copies: (readonly [from: number, to: number])[] = [];

  /** @param mostTexts - at a time @param mostPositions - of each: slabs are a small part of what all of them need */
  constructor(mostTexts: number, mostPositions: number) {
    const mostPages = mostTexts * (1 + Math.ceil(mostPositions / PAGE_POSITIONS));
    this.#slabPages = Math.ceil(mostPages / NUM_SLABS);
    this.mostPositions = mostPositions;
  }

  /** Bytes of all keys and values. */
  get bytes(): number {
    const slabs = [...this.#kept.values()].flatMap(({ keys, values }) => [...keys, ...values]);
    return slabs.reduce((sum, { numel, dtype }) => sum + numel * itemBytes(dtype), 0);
  }

  /** Begins an empty text. */
  open(): PagedText {
    return { pages: [], length: 0, shared: 0 };
  }

  /** Begins a text with the first `length` positions of another, which it shares. */
  share(text: PagedText, length: number): PagedText {
    const shared = length > text.shared ? text.shared : 0;
    const pages = text.pages.slice(0, numPages(length, shared));
    for (const page of pages) this.#uses[page] = (this.#uses[page] ?? 0) + 1;
    return { pages, length, shared };
  }

  /** Makes room for further positions, which the next pass must write. */
  grow(text: PagedText, numPositions: number): void {
    const own = text as { readonly pages: number[]; length: number; shared: number };
    const last = own.pages.length - 1;
    const written = own.pages[last];
    if (written !== undefined && !isFull(own) && this.#uses[written] !== 1) {
      if (own.shared === 0) {
        own.shared = own.length;
      } else {
        const copy = this.#take();
        this.#copies.push([written, copy]);
        this.#leave(written);
        own.pages[last] = copy;
      }
    }
    own.length += numPositions;
    while (own.pages.length < numPages(own.length, own.shared)) own.pages.push(this.#take());
  }

  /** Gives up a text, and the pages that no other has. */
  release({ pages }: PagedText): void {
    for (const page of pages) this.#leave(page);
  }

  /**
   * Runs a forward over tokens in one row, [1, N], without gradients and in a tensor scope. Its {@link selfAttention} writes their
   * keys and values to the pages, and each token sees its own text up to its position.
   * @param read - other texts, for {@link crossAttention}
   */
  pass<T>(tokens: readonly PlacedToken[], body: () => T, read?: ReadTexts): T {
    const outer = current;
    return noGrad(() =>
      scope(() => {
        const own = this.#places(tokens);
        try {
          current = { own, read: read === undefined ? undefined : read.pages.#read(tokens, read) };
          return body();
        } finally {
          current = outer;
        }
      }),
    );
  }

  /** The places of tokens, in tables of their texts; `others` are in the table too. */
  #places(tokens: readonly PlacedToken[], others: readonly PagedText[] = []): Places {
    for (const kept of this.#kept.values()) this.#prepare(kept);
    this.#copies = [];
    const texts = [...new Set([...others, ...tokens.map(({ text }) => text)])];
    const rows = new Map(texts.map((text, row) => [text, row]));
    // Rounded up: a block's calls are alike for longer, and so are replayed.
    const most = Math.max(FEWEST_COLUMNS, ...texts.map(({ pages }) => 1 + pages.length));
    const columns = 2 ** Math.ceil(Math.log2(most));
    const table = new BigInt64Array(texts.length * columns);
    for (const [row, { shared, pages }] of texts.entries())
      for (const [column, entry] of [shared, ...pages].entries())
        table[row * columns + column] = BigInt(entry);
    return {
      pages: this,
      table: tensor(table, { shape: [texts.length, columns] }),
      texts: integers(tokens.map(({ text }) => rows.get(text) as number)),
      positions: integers(tokens.map(({ position }) => position)),
    };
  }

  #read(tokens: readonly PlacedToken[], { fresh, of }: ReadTexts): ReadPlaces {
    const last = tokens.map(({ text }) => of(text)).map((text) => ({ text, position: text.length - 1 }));
    const rows = fresh.flatMap(({ length }, row) => new Array<number>(length).fill(row));
    const positions = fresh.flatMap(({ length }) => [...new Array(length).keys()]);
    const written = tensor([...rows, ...positions], { dtype: "int64", shape: [2, rows.length] });
    return { ...this.#places(last, fresh), written };
  }

  /** The slabs of an attention, with room for all pages. */
  slabsOf(owner: object, { shape, dtype }: Tensor): KeptPages {
    const [, numGroups = 0, , width = 0] = shape;
    const kept = this.#kept.get(owner) ?? { keys: [], values: [] };
    this.#kept.set(owner, kept);
    const room = (...sizes: number[]) => hold(empty([this.#slabPages, numGroups, ...sizes], { dtype }));
    while (kept.keys.length * this.#slabPages < this.#uses.length) {
      kept.keys.push(room(width, PAGE_POSITIONS));
      kept.values.push(room(PAGE_POSITIONS, width));
    }
    return kept;
  }

  /** Keys and values of no position, for an attention that has kept some. */
  noneOf(owner: object): readonly [keys: Tensor, values: Tensor] {
    const { keys } = this.#kept.get(owner) as KeptPages;
    const { shape, dtype } = keys[0] as Tensor;
    const [, numGroups = 0, width = 0] = shape;
    const none = () => empty([1, numGroups, 0, width], { dtype });
    return [none(), none()];
  }

  /** The slabs of those owners that have some: keys, then values of each. */
  slabLists(owners: readonly object[]): (readonly Tensor[])[] {
    return owners.flatMap((owner) => {
      const kept = this.#kept.get(owner);
      return kept === undefined ? [] : [kept.keys, kept.values];
    });
  }

  [Symbol.dispose](): void {
    for (const { keys, values } of this.#kept.values())
      for (const slab of [...keys, ...values]) slab.dispose();
    this.#kept.clear();
  }

  /** Copies the pages that texts have shared so far. */
  #prepare(kept: KeptPages): void {
    for (const slabs of [kept.keys, kept.values]) {
      const [first] = slabs;
      while (first !== undefined && slabs.length * this.#slabPages < this.#uses.length)
        slabs.push(hold(empty(first.shape, { dtype: first.dtype })));
      for (const [from, to] of this.#copies)
        scope(() => this.#page(slabs, to).copy_(this.#page(slabs, from)));
    }
  }

  #page(slabs: readonly Tensor[], page: number): Tensor {
    const slab = slabs[Math.floor(page / this.#slabPages)] as Tensor;
    return slab.select(0, page % this.#slabPages);
  }

  #take(): number {
    const page = this.#free.pop() ?? this.#uses.length;
    this.#uses[page] = 1;
    return page;
  }

  #leave(page: number): void {
    const left = (this.#uses[page] ?? 1) - 1;
    this.#uses[page] = left;
    if (left === 0) this.#free.push(page);
  }
}

/** Number of pages of a text. */
function numPages(length: number, shared: number): number {
  return Math.ceil(shared / PAGE_POSITIONS) + Math.ceil((length - shared) / PAGE_POSITIONS);
}

/** Whether a further position begins a page. */
function isFull({ length, shared }: PagedText): boolean {
  return (length - shared) % PAGE_POSITIONS === 0;
}

function integers(values: readonly number[]): Tensor {
  return tensor(values, { dtype: "int64" });
}

/** Whether this forward is a pass of {@link Pages}. */
export function isPaged(): boolean {
  return current !== undefined;
}

/** Maximum number of positions of the texts that a pass of {@link Pages} writes; undefined outside of one. */
export function pagedPositions(): number | undefined {
  return current?.own.pages.mostPositions;
}

/** Whether this forward is a pass of {@link Pages} whose tokens read only what is in pages already. */
export function isAllRead(): boolean {
  return current?.read?.written.shape[1] === 0;
}

/** Tensors of a pass of {@link Pages} that attentions read besides their arguments. */
export interface PagedInputs {
  readonly tensors: readonly Tensor[];
  /** Lists that grow: keys, then values of each attention. */
  readonly lists: readonly (readonly Tensor[])[];
}

/** @returns what attentions among `owners` read of the present pass; undefined outside of one, and before they have kept anything */
export function pagedInputs(owners: readonly object[]): PagedInputs | undefined {
  if (current === undefined) return undefined;
  const { own, read } = current;
  const lists = [own, read].flatMap((places) => places?.pages.slabLists(owners) ?? []);
  if (lists.length === 0) return undefined;
  const tensorsOf = ({ table, texts, positions }: Places) => [table, texts, positions];
  return { tensors: [...tensorsOf(own), ...(read ? [...tensorsOf(read), read.written] : [])], lists };
}

/**
 * The attention of a pass of {@link Pages} to the tokens' own texts; undefined outside of one.
 * @param options.bias - [H, L], of keys 0, 1, … before a token; the last is that of all beyond
 */
export function attendInPages(
  owner: object,
  [q, k, v]: readonly [q: Tensor, k: Tensor, v: Tensor],
  options: AttentionOptions,
): Tensor | undefined {
  if (current === undefined) return undefined;
  if (q.device === "meta") return ops.emptyLike(q); // another pipeline stage computes it
  return attendTo(current.own, owner, [q, k, v], options);
}

/** The attention of a pass of {@link Pages} to what its tokens read besides; undefined outside of one. */
export function crossInPages(
  owner: object,
  q: Tensor,
  makeKeys: () => readonly [keys: Tensor, values: Tensor],
  options: AttentionOptions,
): Tensor | undefined {
  const read = current?.read;
  if (read === undefined) return undefined;
  if (q.device === "meta") return ops.emptyLike(q);
  const [k, v] = isAllRead() ? read.pages.noneOf(owner) : makeKeys();
  return attendTo(read, owner, [q, k, v], options, read.written);
}

/** @param written - [2, M], the text and the position of each of `k` and `v`. Default: those of the queries */
function attendTo(
  { pages, table, texts, positions }: Places,
  owner: object,
  [q, k, v]: readonly [q: Tensor, k: Tensor, v: Tensor],
  { bias, window = 0, scale = 1 / Math.sqrt(q.shape.at(-1) ?? 1) }: AttentionOptions,
  written?: Tensor,
): Tensor {
  const { keys, values } = pages.slabsOf(owner, k);
  const from = [table, texts, positions, written, bias] as const;
  return ops.troupe.pagedAttention_(q, k, v, keys, values, ...from, window, scale);
}
