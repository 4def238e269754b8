import { empty, hold, itemBytes, noGrad, ops, scope, type Tensor, tensor } from "../../tensor/index.ts";
import type { AttentionOptions } from "./attention.ts";

// N tokens of a pass, H query heads, G key/value heads, K head width, P pages of a slab.

/** Positions of a page: those that `troupe::paged_attention_` reads side by side. */
const PAGE_POSITIONS = 8;

/** Number of slabs that all texts take, if they share nothing. */
const NUM_SLABS = 128;

/** The least columns of a pass's table of pages. */
const FEWEST_COLUMNS = 8;

/** A text whose keys and values lie in pages. Only {@link Pages} changes it. */
export interface PagedText {
  /** Indices of its pages, in order. Other texts with the same beginning may have them too. */
  readonly pages: readonly number[];
  /** Number of positions with keys and values. */
  readonly length: number;
}

/** A token of a pass. */
export interface PlacedToken {
  readonly text: PagedText;
  readonly position: number;
}

/** Slabs of one attention: keys [P, G, K, 8], values [P, G, 8, K]. */
interface KeptPages {
  readonly keys: Tensor[];
  readonly values: Tensor[];
}

/** The tokens of a pass as tensors, int64. */
interface Pass {
  readonly pages: Pages;
  /** [texts, most pages] */
  readonly table: Tensor;
  /** [N] */
  readonly texts: Tensor;
  /** [N] */
  readonly positions: Tensor;
}

let current: Pass | undefined;

/**
 * The keys and values of many texts that a model writes, of any lengths, in pages of eight positions. Texts with the same beginning
 * share its pages; the first that writes to a shared page gets a copy. Memory grows with the pages in use, and pages of texts that
 * have ended are used again.
 */
export class Pages implements Disposable {
  readonly #slabPages: number;
  /** Number of texts that have each page. */
  readonly #uses: number[] = [];
  readonly #free: number[] = [];
  readonly #kept = new Map<object, KeptPages>();
  /** Pages to copy before the next pass, from and to. */
  #copies: (readonly [from: number, to: number])[] = [];

  /** @param mostPositions - of all texts together, if none is shared: slabs are a small part of it */
  constructor(mostPositions: number) {
    this.#slabPages = Math.max(1, Math.ceil(mostPositions / PAGE_POSITIONS / NUM_SLABS));
  }

  /** Bytes of all keys and values. */
  get bytes(): number {
    const slabs = [...this.#kept.values()].flatMap(({ keys, values }) => [...keys, ...values]);
    return slabs.reduce((sum, { numel, dtype }) => sum + numel * itemBytes(dtype), 0);
  }

  /** Begins an empty text. */
  open(): PagedText {
    return { pages: [], length: 0 };
  }

  /** Begins a text with the first `length` positions of another, which it shares. */
  share(text: PagedText, length: number): PagedText {
    const pages = text.pages.slice(0, Math.ceil(length / PAGE_POSITIONS));
    for (const page of pages) this.#uses[page] = (this.#uses[page] ?? 0) + 1;
    return { pages, length };
  }

  /** Makes room for further positions, which the next pass must write. */
  grow(text: PagedText, numPositions: number): void {
    const own = text as { readonly pages: number[]; length: number };
    const last = Math.floor(own.length / PAGE_POSITIONS);
    const written = own.pages[last];
    if (written !== undefined && this.#uses[written] !== 1) {
      const copy = this.#take();
      this.#copies.push([written, copy]);
      this.#leave(written);
      own.pages[last] = copy;
    }
    own.length += numPositions;
    while (own.pages.length * PAGE_POSITIONS < own.length) own.pages.push(this.#take());
  }

  /** Gives up a text, and the pages that no other has. */
  release({ pages }: PagedText): void {
    for (const page of pages) this.#leave(page);
  }

  /**
   * Runs a forward over tokens in one row, [1, N], without gradients and in a tensor scope. Its {@link selfAttention} writes their
   * keys and values to the pages, and each token sees its own text up to its position.
   */
  pass<T>(tokens: readonly PlacedToken[], body: () => T): T {
    const texts = [...new Set(tokens.map(({ text }) => text))];
    const rows = new Map(texts.map((text, row) => [text, row]));
    // Rounded up: a block's calls are alike for longer, and so are replayed.
    const most = Math.max(FEWEST_COLUMNS, ...texts.map(({ pages }) => pages.length));
    const columns = 2 ** Math.ceil(Math.log2(most));
    const outer = current;
    return noGrad(() =>
      scope(() => {
        for (const kept of this.#kept.values()) this.#prepare(kept);
        this.#copies = [];
        const table = new BigInt64Array(texts.length * columns);
        for (const [row, { pages }] of texts.entries())
          for (const [column, page] of pages.entries()) table[row * columns + column] = BigInt(page);
        const integers = (values: readonly number[]) => tensor(values, { dtype: "int64" });
        try {
          current = {
            pages: this,
            table: tensor(table, { shape: [texts.length, columns] }),
            texts: integers(tokens.map(({ text }) => rows.get(text) as number)),
            positions: integers(tokens.map(({ position }) => position)),
          };
          return body();
        } finally {
          current = outer;
        }
      }),
    );
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

/** Whether this forward is a pass of {@link Pages}. */
export function isPaged(): boolean {
  return current !== undefined;
}

/** Tensors of a pass of {@link Pages} that attentions read besides their arguments. */
export interface PagedInputs {
  readonly tensors: readonly Tensor[];
  /** Lists that grow: keys, then values of each attention. */
  readonly lists: readonly (readonly Tensor[])[];
}

/** @returns what attentions among `owners` read of the present pass; undefined outside of one, and before they have kept anything */
export function pagedInputs(owners: readonly object[]): PagedInputs | undefined {
  const lists = current?.pages.slabLists(owners) ?? [];
  if (current === undefined || lists.length === 0) return undefined;
  return { tensors: [current.table, current.texts, current.positions], lists };
}

/** The attention of a pass of {@link Pages}; undefined outside of one. */
export function attendInPages(
  owner: object,
  [q, k, v]: readonly [q: Tensor, k: Tensor, v: Tensor],
  { window = 0, scale = 1 / Math.sqrt(q.shape.at(-1) ?? 1) }: AttentionOptions,
): Tensor | undefined {
  if (current === undefined) return undefined;
  if (q.device === "meta") return ops.emptyLike(q); // another pipeline stage computes it
  const { keys, values } = current.pages.slabsOf(owner, k);
  const { table, texts, positions } = current;
  return ops.troupe.pagedAttention_(q, k, v, keys, values, table, texts, positions, window, scale);
}
