import { TroupeError } from "../../errors.ts";
import type { ActorRef } from "./actor-ref.ts";
import { ActorDown, AskTimeout } from "../protocol/failure.ts";
import type { AskKind, In, Out } from "../actor/protocol.ts";
import { Queue } from "../mailbox/queue.ts";

/** How items are handed over. */
export interface ReliableOptions<P, K extends AskKind<P>> {
  /** A supervised child's ref, which leads to each new incarnation. */
  readonly ref: ActorRef<P>;
  /** The kind that receives an item; its answer is the confirmation. */
  readonly kind: K;
  /** How long one confirmation may take before the item is sent again. */
  readonly deadlineMs: number;
  /** Items accepted and not yet confirmed. */
  readonly capacity: number;
}

interface Held<P, K extends AskKind<P>> {
  readonly item: In<P, K>;
  readonly confirmed: PromiseWithResolvers<Out<P, K>>;
}

/**
 * Hands items over one after another, each again and again until the receiver has confirmed it: once while
 * both ends live, at least once when the receiver is restarted in between. Each item must carry a key of its
 * own by which the receiver recognises one that it has already (see {@link SeenKeys}).
 */
export class ReliableDelivery<P, K extends AskKind<P>> {
  readonly #options: ReliableOptions<P, K>;
  readonly #held = new Queue<Held<P, K>>();
  #working = false;
  #receiverIsDown = false;

  constructor(options: ReliableOptions<P, K>) {
    this.#options = options;
  }

  /** Items that are not confirmed. */
  get numUnconfirmed(): number {
    return this.#held.size;
  }

  /**
   * Accepts an item and resolves with its confirmation.
   * @throws {TroupeError} `OUTBOX_FULL` when `capacity` items are unconfirmed
   */
  send(item: In<P, K>): Promise<Out<P, K>> {
    const { capacity, kind } = this.#options;
    if (this.#held.size >= capacity) throw tooManyUnconfirmed(kind, capacity);
    const confirmed = Promise.withResolvers<Out<P, K>>();
    this.#held.push({ item, confirmed });
    void this.#work();
    return confirmed.promise;
  }

  /** Goes on after the receiver has been restarted: what is unconfirmed is sent again, in order. */
  resume(): void {
    this.#receiverIsDown = false;
    void this.#work();
  }

  /** Never rejects: what the receiver throws goes to whoever sent the item. */
  async #work(): Promise<void> {
    if (this.#working) return;
    this.#working = true;
    for (
      let next = this.#held.peek();
      next !== undefined && !this.#receiverIsDown;
      next = this.#held.peek()
    ) {
      await this.#handOver(next);
    }
    this.#working = false;
  }

  async #handOver({ item, confirmed }: Held<P, K>): Promise<void> {
    const { ref, kind, deadlineMs } = this.#options;
    try {
      const answer = await ref.ask(kind, item, { deadlineMs });
      this.#held.shift();
      confirmed.resolve(answer);
    } catch (error) {
      if (error instanceof ActorDown) this.#receiverIsDown = true;
      else if (!(error instanceof AskTimeout)) {
        this.#held.shift();
        confirmed.reject(error);
      }
    }
  }
}

/** The keys of the latest items received, for a receiver that must not take one twice. */
export class SeenKeys {
  readonly #capacity: number;
  readonly #keys = new Set<string>();

  /** @param capacity - keys remembered; more than a sender may have unconfirmed */
  constructor(capacity: number) {
    this.#capacity = capacity;
  }

  /** Enters a key; returns false when it was there. */
  admit(key: string): boolean {
    if (this.#keys.has(key)) return false;
    this.#keys.add(key);
    if (this.#keys.size > this.#capacity) this.#keys.delete(this.#keys.values().next().value as string);
    return true;
  }
}

function tooManyUnconfirmed(kind: string, capacity: number): TroupeError {
  return new TroupeError(
    "OUTBOX_FULL",
    `[reliable ${kind}] at most ${capacity} unconfirmed items: one more came (await the confirmations)`,
    { fields: { kind, capacity } },
  );
}
