import type { Piece } from "../../../compute/parallel/index.ts";
import { empty, hold, numelOf, scope, type Tensor } from "../../../compute/tensor/index.ts";
import type { HeldRun, StateEntry } from "../../protocols/index.ts";

/** A part of a state: flat values of one kind, and the pieces in them. */
export interface StatePart {
  readonly kind: string;
  readonly pieces: readonly Piece[];
  readonly values: Tensor;
}

/** Consecutive elements of a complete tensor, in memory: the caller's to dispose. float32, flat. */
export interface StateRange {
  /** First element, within the tensor. */
  readonly begin: number;
  readonly values: Tensor;
}

/** Memory that came with one part, and the number of its pieces that are still wanted. */
interface Holding {
  readonly tensor: Tensor;
  numWanted: number;
}

interface Stretch {
  readonly piece: Piece;
  readonly holding: Holding;
}

/**
 * The state of a run after one step, assembled from the ranks' parts, in any order and any layout. It owns their memory and
 * copies it only to join a tensor that is split among ranks.
 */
export class StateImage implements Disposable {
  readonly #stretches = new Map<string, Stretch[]>();
  readonly #holdings = new Set<Holding>();

  /** Adds a part; ownership of its values passes. */
  add({ kind, pieces, values }: StatePart): void {
    const holding = { tensor: values, numWanted: pieces.length };
    this.#holdings.add(holding);
    for (const piece of pieces) {
      const key = keyOf(kind, piece.parameter.name);
      const stretches = this.#stretches.get(key) ?? [];
      this.#stretches.set(key, stretches);
      stretches.push({ piece, holding });
    }
  }

  get sizeBytes(): number {
    return [...this.#holdings].reduce((sum, { tensor }) => sum + 4 * tensor.numel, 0);
  }

  /** Whether every element of a tensor has arrived. */
  has({ kind, parameter }: StateEntry): boolean {
    const shares = sharesOf(this.#of(kind, parameter));
    const [first] = shares.values();
    if (first === undefined || shares.size < (first[0]?.piece.parameter.split?.count ?? 1)) return false;
    return shares.values().every(isComplete);
  }

  /** The elements of a tensor that has arrived ({@link has}), in order; ranges are views, except of tensors that ranks split. */
  *ranges({ kind, parameter, shape }: StateEntry): Generator<StateRange> {
    const stretches = this.#of(kind, parameter);
    if (stretches[0]?.piece.parameter.split !== undefined) {
      yield { begin: 0, values: assembled(stretches, shape) };
      return;
    }
    let next = 0;
    for (const { piece, holding } of stretches.toSorted(byPlace)) {
      const { parameterBegin, rangeBegin, numel } = piece;
      const known = next - parameterBegin;
      if (known >= numel) continue;
      const values = hold(() => holding.tensor.narrow(0, rangeBegin + known, numel - known));
      yield { begin: next, values };
      next = parameterBegin + numel;
    }
  }

  /** The values of a piece of any layout, flat: a view if one part holds it, else a copy. The caller's. */
  piece(kind: string, piece: Piece): Tensor | undefined {
    const { parameter, parameterBegin, numel } = piece;
    const { split } = parameter;
    const held = this.run(kind, parameter.name, {
      shape: parameter.shape,
      split,
      begin: parameterBegin,
      numel,
    });
    if (held !== undefined) return held;
    const shape = parameter.split?.logicalShape ?? parameter.shape;
    const entry = { kind, parameter: parameter.name, shape };
    if (!this.has(entry)) return undefined;
    using complete = this.#complete(entry);
    return cut(complete, piece);
  }

  /** Whether a single part that has arrived holds all of a run. */
  holds(kind: string, parameter: string, run: HeldRun): boolean {
    return this.#of(kind, parameter).some(({ piece }) => contains(piece, run));
  }

  /** The values of a run that one part holds completely: a view, the caller's. undefined if none has arrived. */
  run(kind: string, parameter: string, run: HeldRun): Tensor | undefined {
    const holder = this.#of(kind, parameter).find(({ piece }) => contains(piece, run));
    if (holder === undefined) return undefined;
    const { rangeBegin, parameterBegin } = holder.piece;
    return hold(() => holder.holding.tensor.narrow(0, rangeBegin + run.begin - parameterBegin, run.numel));
  }

  /** Releases a tensor: memory without any wanted piece is freed. */
  release({ kind, parameter }: StateEntry): void {
    const key = keyOf(kind, parameter);
    for (const { holding } of this.#stretches.get(key) ?? []) {
      holding.numWanted -= 1;
      if (holding.numWanted > 0) continue;
      holding.tensor.dispose();
      this.#holdings.delete(holding);
    }
    this.#stretches.delete(key);
  }

  [Symbol.dispose](): void {
    for (const { tensor } of this.#holdings) tensor.dispose();
    this.#holdings.clear();
    this.#stretches.clear();
  }

  #of(kind: string, parameter: string): readonly Stretch[] {
    return this.#stretches.get(keyOf(kind, parameter)) ?? [];
  }

  /** All elements of a tensor in one; the caller's. */
  #complete(entry: StateEntry): Tensor {
    const complete = hold(() => empty([numelOf(entry.shape)]));
    for (const { begin, values } of this.ranges(entry)) {
      scope(() => {
        complete.narrow(0, begin, values.numel).copy_(values);
      });
      values.dispose();
    }
    return complete;
  }
}

/**
 * A complete tensor's values, flat, from the ranks that split it. Each rank's share is assembled first; then it is a rectangle
 * of the tensor, seen as a matrix, and copied as one.
 */
function assembled(stretches: readonly Stretch[], shape: readonly number[]): Tensor {
  const complete = hold(() => empty([numelOf(shape)]));
  for (const ofRank of sharesOf(stretches).values()) {
    const [{ piece: first }] = ofRank as [Stretch];
    const { parameter } = first;
    scope(() => {
      const share = empty([parameter.numel]);
      for (const { piece, holding } of ofRank) {
        const { parameterBegin, rangeBegin, numel } = piece;
        share.narrow(0, parameterBegin, numel).copy_(holding.tensor.narrow(0, rangeBegin, numel));
      }
      const { from, to } = rectangles(parameter, share, complete);
      to.copy_(from);
    });
  }
  return complete;
}

/** The same elements in a rank's share of a split parameter and in the complete one, as matrices; padding is left out. */
function rectangles(
  { shape, split }: Piece["parameter"],
  share: Tensor,
  complete: Tensor,
): { from: Tensor; to: Tensor } {
  const { dim, index, parts, logicalShape } = split as NonNullable<typeof split>;
  const inner = numelOf(shape.slice(dim + 1));
  const heldWidth = ((shape[dim] ?? 0) / parts) * inner;
  const completeWidth = ((logicalShape[dim] ?? 0) / parts) * inner;
  const begin = Math.min(index * heldWidth, completeWidth);
  const width = Math.min(heldWidth, completeWidth - begin);
  return {
    from: share.view([-1, heldWidth]).narrow(1, 0, width),
    to: complete.view([-1, completeWidth]).narrow(1, begin, width),
  };
}

/** A piece's values, cut out of the complete tensor; padding is zero. */
function cut(complete: Tensor, { parameter, parameterBegin, numel }: Piece): Tensor {
  return hold(() => {
    if (parameter.split === undefined) return complete.narrow(0, parameterBegin, numel).clone();
    const share = empty([parameter.numel]).zero_();
    const { from, to } = rectangles(parameter, share, complete);
    from.copy_(to);
    return share.narrow(0, parameterBegin, numel).clone();
  });
}

function contains({ parameter, parameterBegin, numel }: Piece, run: HeldRun): boolean {
  return (
    parameterBegin <= run.begin &&
    parameterBegin + numel >= run.begin + run.numel &&
    JSON.stringify(parameter.split) === JSON.stringify(run.split)
  );
}

/** Groups stretches by their share of a split parameter. */
function sharesOf(stretches: readonly Stretch[]): Map<number, Stretch[]> {
  return Map.groupBy(stretches, ({ piece }) => piece.parameter.split?.index ?? 0);
}

/** Whether stretches of one share leave nothing out; equal copies of several ranks may come several times. */
function isComplete(stretches: readonly Stretch[]): boolean {
  let next = 0;
  for (const { piece } of stretches.toSorted(byPlace)) {
    if (piece.parameterBegin > next) return false;
    next = Math.max(next, piece.parameterBegin + piece.numel);
  }
  return next >= (stretches[0]?.piece.parameter.numel ?? 0);
}

const byPlace = (a: Stretch, b: Stretch) => a.piece.parameterBegin - b.piece.parameterBegin;

const keyOf = (kind: string, parameter: string) => `${kind} ${parameter}`;
