/** A span of steps in which the same parameters are frozen. */
interface Span {
  readonly firstStep: number;
  /** Updates made before it. */
  readonly numUpdates: number;
  readonly frozen: ReadonlySet<string>;
  /** By name, the earlier updates in which a parameter was frozen; a name left out counts 0. */
  readonly before: ReadonlyMap<string, number>;
}

/** The parameters that each step leaves out, and how many earlier updates left each parameter out. */
export class FrozenUpdates {
  /** In order; spans that no step under way can ask for are dropped. */
  #spans: Span[];

  /** @param numUpdates - made before `firstStep` @param before - by name, how many of them left a parameter out */
  constructor(firstStep: number, numUpdates: number, before: Readonly<Record<string, number>> = {}) {
    this.#spans = [{ firstStep, numUpdates, frozen: new Set(), before: new Map(Object.entries(before)) }];
  }

  /** Freezes other parameters from `step` on. @param numUpdates - made before it */
  begin(step: number, numUpdates: number, frozen: readonly string[]): void {
    const before = new Map(Object.entries(this.before(step, numUpdates)));
    this.#spans.push({ firstStep: step, numUpdates, frozen: new Set(frozen), before });
  }

  /** @returns names of the parameters that a step does not train */
  at(step: number): ReadonlySet<string> {
    return this.#spanOf(step).frozen;
  }

  /** @param numUpdates - made before `step` @returns by name, how many of them left it out; of `names`, or of all with any */
  before(step: number, numUpdates: number, names?: readonly string[]): Record<string, number> {
    const span = this.#spanOf(step);
    const { before, frozen } = span;
    if (before.size + frozen.size === 0) return {};
    return Object.fromEntries(
      [...(names ?? new Set([...before.keys(), ...frozen]))].flatMap((name) => {
        const count = (before.get(name) ?? 0) + (frozen.has(name) ? numUpdates - span.numUpdates : 0);
        return count === 0 ? [] : [[name, count]];
      }),
    );
  }

  /** Drops everything before `step`. */
  forget(step: number): void {
    const last = this.#spans.findLastIndex(({ firstStep }) => firstStep <= step);
    this.#spans = this.#spans.slice(Math.max(last, 0));
  }

  #spanOf(step: number): Span {
    return (this.#spans.findLast(({ firstStep }) => firstStep <= step) ?? this.#spans[0]) as Span;
  }
}
