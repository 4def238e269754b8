import { arange, empty, hold, noGrad, ops, scope, type Tensor } from "../../tensor/index.ts";
import { prefixLength, prefixOf } from "../layers/prefix.ts";
import { isAllRead, isPaged } from "./pages.ts";

// B rows, T positions of a pass, S positions so far, C of them at most, G key/value heads, K head width.

/** Keys and values of one attention, written in place: [B, G, C, K] each. */
interface KeptHeads {
  readonly keys: Tensor;
  readonly values: Tensor;
}

let current: Decoding | undefined;

/**
 * The KV cache of a model that generates text: the keys and values of its attentions, and the number of positions so far. A
 * forward inside {@link pass} computes the new positions only; modules read the past by {@link withPast}, {@link
 * positionsHere} and {@link madeOnce}, which outside of a pass return values without a past. Memory is allocated once, for
 * all positions; nothing is recorded for gradients.
 */
export class Decoding implements Disposable {
  /** Number of positions that there is room for. */
  readonly capacity: number;
  /** bool [B, C], false for padding; undefined if there is none. The owner fills it. */
  readonly present: Tensor | undefined;
  #length = 0;
  readonly #kept = new Map<object, KeptHeads>();
  readonly #once = new Map<object, readonly Tensor[]>();

  constructor(capacity: number, present?: Tensor) {
    this.capacity = capacity;
    this.present = present;
  }

  /** Positions seen so far. */
  get length(): number {
    return this.#length;
  }

  /** Runs a forward over the next `numPositions`, without gradients and in a tensor scope. */
  pass<T>(numPositions: number, body: () => T): T {
    const outer = current;
    current = this;
    try {
      return noGrad(() => scope(body));
    } finally {
      current = outer;
      this.#length += numPositions;
    }
  }

  /** Reorders the rows: row b becomes the earlier row `rows[b]`. int64 [B]. */
  select(rows: Tensor): void {
    for (const { keys, values } of this.#kept.values()) {
      for (const kept of [keys, values]) {
        scope(() => {
          const soFar = kept.narrow(2, 0, this.#length);
          soFar.copy_(soFar.indexSelect(0, rows));
        });
      }
    }
  }

  /** Appends keys and values. Returns those of all positions so far, including this pass; [B, G, S, K] each, views. */
  append(owner: object, keys: Tensor, values: Tensor): [keys: Tensor, values: Tensor] {
    const [batch = 0, numGroups = 0, numHere = 0, width = 0] = keys.shape;
    if (keys.device === "meta") {
      // Another pipeline stage, or another chunk of this one, computes and keeps them.
      const sizes = [batch, numGroups, this.#length + numHere, width];
      const standIn = () => ops.troupe.placeholder(sizes, keys.dtype);
      return [standIn(), standIn()];
    }
    const kept = this.#kept.get(owner) ?? this.#room(owner, keys);
    const place = (of: Tensor, given: Tensor) => {
      of.narrow(2, this.#length, numHere).copy_(given);
      return of.narrow(2, 0, this.#length + numHere);
    };
    return [place(kept.keys, keys), place(kept.values, values)];
  }

  /** Returns the result of the first call of `make` for this owner. */
  once(owner: object, make: () => readonly Tensor[]): readonly Tensor[] {
    const known = this.#once.get(owner);
    if (known !== undefined) return known;
    const made = make().map((tensor) => hold(tensor));
    this.#once.set(owner, made);
    return made;
  }

  /** Releases all cached tensors. */
  [Symbol.dispose](): void {
    for (const { keys, values } of this.#kept.values()) {
      keys.dispose();
      values.dispose();
    }
    for (const made of this.#once.values()) for (const tensor of made) tensor.dispose();
    this.#kept.clear();
    this.#once.clear();
  }

  #room(owner: object, { shape, dtype }: Tensor): KeptHeads {
    const [batch = 0, numGroups = 0, , width = 0] = shape;
    const room = () => hold(empty([batch, numGroups, this.capacity, width], { dtype }));
    const kept = { keys: room(), values: room() };
    this.#kept.set(owner, kept);
    return kept;
  }
}

/**
 * A past that is given as tensors and handed on as longer ones, for recording a forward: nothing is kept between passes, and
 * gradients are not switched off. The first result of {@link madeOnce} is an encoder's output.
 */
export class GivenPast extends Decoding {
  /** Keys and values of each self-attention with those of this pass, in the order of calls; [B, G, S, K] each. */
  readonly made: (readonly [keys: Tensor, values: Tensor])[] = [];
  /** The first result of {@link madeOnce}, made or given: an encoder's output. */
  encoded: readonly Tensor[] | undefined;
  /** Keys and values of each cross-attention, made or given, in the order of calls; [B, H, S, K] each. */
  readonly crossed: (readonly [keys: Tensor, values: Tensor])[] = [];
  readonly #given: readonly (readonly [keys: Tensor, values: Tensor])[];
  readonly #crossedGiven: readonly (readonly [keys: Tensor, values: Tensor])[];
  readonly #numPast: number;
  #isEncoded: boolean;

  /**
   * @param given - keys and values of each self-attention before this pass; none: there is no past
   * @param present - bool [B, S], false for padding
   * @param encoded - the output of the encoder, which is not computed then
   * @param crossed - keys and values of each cross-attention, which are not computed then
   */
  constructor(
    given: readonly (readonly [keys: Tensor, values: Tensor])[],
    present?: Tensor,
    encoded?: readonly Tensor[],
    crossed: readonly (readonly [keys: Tensor, values: Tensor])[] = [],
  ) {
    super(0, present);
    this.#given = given;
    this.#crossedGiven = crossed;
    this.#numPast = given[0]?.[0].shape[2] ?? 0;
    this.encoded = encoded;
    this.#isEncoded = false;
  }

  override get length(): number {
    return this.#numPast;
  }

  override pass<T>(_numPositions: number, body: () => T): T {
    const outer = current;
    current = this;
    try {
      return body();
    } finally {
      current = outer;
    }
  }

  override append(_owner: object, keys: Tensor, values: Tensor): [keys: Tensor, values: Tensor] {
    const past = this.#given[this.made.length];
    const all: [Tensor, Tensor] =
      past === undefined ? [keys, values] : [ops.cat([past[0], keys], 2), ops.cat([past[1], values], 2)];
    this.made.push(all);
    return all;
  }

  override once(_owner: object, make: () => readonly Tensor[]): readonly Tensor[] {
    if (this.#isEncoded) {
      const pair = this.#crossedGiven[this.crossed.length] ?? (make() as [Tensor, Tensor]);
      this.crossed.push(pair);
      return pair;
    }
    this.#isEncoded = true;
    this.encoded ??= make();
    return this.encoded;
  }
}

/**
 * Returns the keys and values of a self-attention, preceded by those of all earlier positions during generation.
 * @param owner - the attention @param keys - [B, G, T, K], as values
 * @returns [B, G, S, K] each
 */
export function withPast(owner: object, keys: Tensor, values: Tensor): [keys: Tensor, values: Tensor] {
  const soFar = current?.append(owner, keys, values) ?? ([keys, values] as [Tensor, Tensor]);
  return prefixOf(owner)?.inFront(...soFar) ?? soFar;
}

/**
 * Returns tensors that do not change during generation, such as the encoder's output. They are made in the first pass and
 * kept. `make` runs as if there were no past. Where a pass brings nothing new to read, there are none: `crossAttention` has their
 * keys and values.
 */
export function madeOnce(owner: object, make: () => readonly Tensor[]): readonly Tensor[] {
  const decoding = current;
  if (decoding === undefined) return isAllRead() ? [] : make();
  current = undefined;
  try {
    return decoding.once(owner, make);
  } finally {
    current = decoding;
  }
}

/** Whether this pass is part of generation. */
export function isWriting(): boolean {
  return current !== undefined || isPaged();
}

/** Returns the number of positions before this pass: those of a prefix, and those generated so far. */
export function numPast(): number {
  return prefixLength() + (current?.length ?? 0);
}

/**
 * The positions of this pass, int64: [T], or [B, T] where rows are padded on the left, whose first token is at position 0, as
 * transformers counts them.
 */
export function positionsHere(length: number): Tensor {
  const first = current?.length ?? 0;
  const present = current?.present;
  if (present === undefined) return arange(length, { dtype: "int64" }).add(numPast());
  const counted = present
    .narrow(1, 0, first + length)
    .to("int64")
    .cumsum(1)
    .sub(1)
    .clamp(0);
  return counted.narrow(1, first, length).add(prefixLength());
}
