/** Steps in which the same parameters are frozen. */
interface Span {
  readonly firstStep: number;
  /** Updates made before it. */
  readonly numUpdates: number;
  readonly frozen: ReadonlySet<string>;
  /** By name, the updates before it that a parameter was frozen in; none where it is not named. */
  readonly before: ReadonlyMap<string, number>;
}

/** Which parameters each step leaves out, and how many updates each parameter was left out of before. */
export class FrozenUpdates {
  /** In order; of those that are over, no more than steps under way may ask for. */
  #spans: Span[];

  /**
   * @param firstStep - of the run's part that begins
   * @param numUpdates - made before it
   * @param before - by name, in how many of them a parameter was frozen
   */
  constructor(firstStep: number, numUpdates: number, before: Readonly<Record<string, number>> = {}) {
    this.#spans = [{ firstStep, numUpdates, frozen: new Set(), before: new Map(Object.entries(before)) }];
  }

  /**
   * From `step` on other parameters are frozen.
   * @param numUpdates - made before it
   */
  begin(step: number, numUpdates: number, frozen: readonly string[]): void {
    const before = new Map(Object.entries(this.before(step, numUpdates)));
    this.#spans.push({ firstStep: step, numUpdates, frozen: new Set(frozen), before });
  }

  /** @returns names of the parameters that a step does not train */
  at(step: number): ReadonlySet<string> {
    return this.#spanOf(step).frozen;
  }

  /**
   * @param numUpdates - made before `step`
   * @returns by name, in how many of them a parameter was frozen; of `names`, or of all, those that were in any
   */
  before(step: number, numUpdates: number, names?: readonly string[]): Record<string, number> {
    const span = this.#spanOf(step);
    const { before, frozen } = span;
    if (before.size + frozen.size === 0) return {};
    return Object.fromEntries(
      [...(names ?? new Set([...before.keys(), ...frozen]))].flatMap((name) => {
        const count = countIn(span, name, numUpdates);
        return count === 0 ? [] : [[name, count]];
      }),
    );
  }

  /** Nobody asks for what was before `step` any more. */
  forget(step: number): void {
    const last = this.#spans.findLastIndex(({ firstStep }) => firstStep <= step);
    this.#spans = this.#spans.slice(Math.max(last, 0));
  }

  #spanOf(step: number): Span {
    return (this.#spans.findLast(({ firstStep }) => firstStep <= step) ?? this.#spans[0]) as Span;
  }
}

/** @returns in how many of the updates so far a parameter was frozen */
function countIn({ before, frozen, numUpdates }: Span, name: string, numUpdatesNow: number): number {
  return (before.get(name) ?? 0) + (frozen.has(name) ? numUpdatesNow - numUpdates : 0);
}
