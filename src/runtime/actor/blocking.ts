import { TroupeError } from "../../errors/index.ts";
import type { AskOptions } from "../messaging/actor-ref.ts";
import { Pending } from "../messaging/pending.ts";
import type { Delivery } from "../messaging/resident.ts";
import { type Address, describe } from "../protocol/address.ts";
import { RecordType } from "../protocol/record.ts";
import type { Cell } from "./cell.ts";

/** A message taken by a blocking receive, untyped. */
export interface AnyReceived {
  readonly kind: string;
  readonly message: unknown;
  reply(answer: unknown): void;
  fail(error: unknown): void;
}

/**
 * Receives without the event loop, for actors that compute synchronously. Each call first receives what has arrived, lets
 * control-lane messages and ends of watched actors interrupt, and throws `StopRequested` if the actor was asked to stop.
 */
export class Blocking {
  readonly #cell: Cell;

  constructor(cell: Cell) {
    this.#cell = cell;
  }

  request(to: Address, kind: string, message: unknown, options: AskOptions): Pending<unknown> {
    this.#refuseOnMain("request");
    const endpoint = this.#cell.endpoint;
    if (options.lazy !== true) endpoint.connections.sendAtOnce();
    const deadlineMs = endpoint.clock.now() + options.deadlineMs;
    const pending = new Pending<unknown>(to, kind, deadlineMs);
    endpoint.outbox.openAsk(to, kind, message, options, deadlineMs, pending);
    return pending;
  }

  wait(pending: Pending<unknown>): unknown {
    const endpoint = this.#cell.endpoint;
    this.#block(() => pending.settled, pending.deadlineMs, pending.target.uid);
    if (!pending.settled) endpoint.asks.expire();
    return pending.take();
  }

  receive(kinds: readonly string[], options: { readonly deadlineMs: number }): AnyReceived {
    this.#refuseOnMain("receive");
    const cell = this.#cell;
    const deadlineMs = cell.endpoint.clock.now() + options.deadlineMs;
    let found: Delivery | undefined;
    cell.awaitedKinds = kinds;
    try {
      const take = (): boolean => {
        found = this.#takeKind(kinds);
        return found !== undefined;
      };
      this.#block(take, deadlineMs, -1);
    } finally {
      cell.awaitedKinds = [];
    }
    if (found === undefined) throw nothingReceived(cell.endpoint.address, kinds, options.deadlineMs);
    return this.#received(found);
  }

  poll(): void {
    this.#refuseOnMain("poll");
    this.#block(() => true, 0, -1);
  }

  #block(done: () => boolean, deadlineMs: number, waitingFor: number): void {
    const { endpoint } = this.#cell;
    try {
      if (!endpoint.blockUntil(done, 0)) this.#sleep(done, deadlineMs, waitingFor);
    } finally {
      this.#cell.wakeAfterBlocking();
    }
  }

  /** Blocks, and shows on the status board which actor this one waits for. */
  #sleep(done: () => boolean, deadlineMs: number, waitingFor: number): void {
    const { endpoint, board, handling } = this.#cell;
    const kindIndex = handling.currentKindIndex;
    board.enter("waiting", kindIndex, waitingFor);
    try {
      endpoint.blockUntil(done, deadlineMs);
    } finally {
      board.enter("handling", kindIndex);
    }
  }

  #takeKind(kinds: readonly string[]): Delivery | undefined {
    const endpoint = this.#cell.endpoint;
    for (;;) {
      const delivery = this.#cell.mailbox.takeKind(kinds);
      if (delivery === undefined) return undefined;
      endpoint.take(delivery);
      if (delivery.deadlineMs === 0 || delivery.deadlineMs > endpoint.clock.now()) return delivery;
      endpoint.undelivered.refused(delivery, "Expired");
    }
  }

  /** A question counts as being handled until it is answered, a statement only for a moment. */
  #received(delivery: Delivery): AnyReceived {
    const { outbox } = this.#cell.endpoint;
    const isAsk = delivery.type === RecordType.ask;
    let end: (() => void) | undefined = this.#cell.handling.taken(delivery);
    const answer = (send: () => void) => {
      if (isAsk) send();
      end?.();
      end = undefined;
    };
    if (!isAsk) answer(() => {});
    return {
      kind: delivery.kind,
      message: delivery.body,
      reply: (value) => answer(() => outbox.answer(delivery, value)),
      fail: (error) => answer(() => outbox.answerFailure(delivery, error)),
    };
  }

  #refuseOnMain(call: string): void {
    if (this.#cell.mayBlock) return;
    throw new TroupeError("BLOCKING_ON_MAIN", {
      where: call,
      expected: "an actor with a thread of its own",
      got: "one on the main thread, which must never block",
      hint: 'spawn it with placement "thread", or use ask',
      fields: { actor: describe(this.#cell.endpoint.address) },
    });
  }
}

function nothingReceived(address: Address, kinds: readonly string[], deadlineMs: number): TroupeError {
  return new TroupeError("RECEIVE_TIMEOUT", {
    where: `receive ${describe(address)}`,
    expected: `one of ${kinds.join(", ")} within ${deadlineMs} ms`,
    got: "none",
    hint: "check the sender, or allow more time",
    fields: { actor: describe(address), kinds: [...kinds], deadlineMs },
  });
}
