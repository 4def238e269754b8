import { TroupeError } from "../../errors/index.ts";

/**
 * How a pool chooses the actor for a message: in turn, the one with the fewest open questions, or by a field of the message, so
 * that messages with equal values always go to the same actor, in order.
 */
export type Route = "round_robin" | "least_busy" | { readonly key: string };

/** An actor of a pool, as far as the choice depends on it. */
export interface Candidate {
  readonly isLiving: boolean;
  /** Number of questions that it has not answered. */
  readonly numOpen: number;
}

/** Chooses actors of a pool. */
export class Router {
  readonly #pool: string;
  readonly #route: Route;
  #last = -1;

  /** @param pool - its name, for error messages */
  constructor(pool: string, route: Route) {
    this.#pool = pool;
    this.#route = route;
  }

  /**
   * Returns the index of the actor for a message; undefined while that one, or all of them, are being started again.
   * @throws {TroupeError} `MESSAGE_UNROUTED` for a message without the key
   */
  choose(message: unknown, candidates: readonly Candidate[]): number | undefined {
    const route = this.#route;
    if (typeof route === "object") {
      const index = hash(this.#keyOf(message, route.key)) % candidates.length;
      return candidates[index]?.isLiving === true ? index : undefined;
    }
    const inTurn = candidates.map((_, offset) => (this.#last + 1 + offset) % candidates.length);
    const living = inTurn.filter((index) => candidates[index]?.isLiving);
    const chosen = route === "round_robin" ? living[0] : leastBusy(living, candidates);
    this.#last = chosen ?? this.#last;
    return chosen;
  }

  #keyOf(message: unknown, key: string): string {
    const value = (message as Readonly<Record<string, unknown>> | null)?.[key];
    if (value !== undefined) return JSON.stringify(value);
    throw new TroupeError("MESSAGE_UNROUTED", {
      where: `pool ${this.#pool}`,
      expected: `a message with the field ${key}, by which it is routed`,
      got: "one without it",
      hint: "add it, or choose another route",
    });
  }
}

function leastBusy(living: readonly number[], candidates: readonly Candidate[]): number | undefined {
  const openOf = (index: number) => candidates[index]?.numOpen ?? 0;
  return living.toSorted((a, b) => openOf(a) - openOf(b))[0];
}

/** FNV-1a over UTF-16 units: the same on every host. */
function hash(text: string): number {
  let value = 0x811c9dc5;
  for (let index = 0; index < text.length; index++)
    value = Math.imul(value ^ text.charCodeAt(index), 0x01000193) >>> 0;
  return value;
}
