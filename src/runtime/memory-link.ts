import { Ledger, ledgerSizeBytes } from "./ledger.ts";
import type { Link } from "./link.ts";
import { Queue } from "./queue.ts";
import type { Packet } from "./record.ts";

/** A link within one thread: packets pass by reference and arrive in a microtask of their own. */
export class MemoryLink implements Link {
  readonly ledger: Ledger;
  #peer: MemoryLink | undefined;
  #receive: ((packet: Packet) => void) | undefined;
  readonly #inbound = new Queue<Packet>();
  #scheduled = false;

  private constructor(ledger: Ledger) {
    this.ledger = ledger;
  }

  /** Both ends of a new link. */
  static pair(): [MemoryLink, MemoryLink] {
    const books = new ArrayBuffer(ledgerSizeBytes);
    const left = new MemoryLink(new Ledger(books, 0));
    const right = new MemoryLink(new Ledger(books, 1));
    left.#peer = right;
    right.#peer = left;
    return [left, right];
  }

  post(packet: Packet): void {
    if (this.#peer === undefined) return;
    this.#peer.#inbound.push(packet);
    this.#peer.#schedule();
  }

  listen(receive: (packet: Packet) => void): void {
    this.#receive = receive;
    this.#schedule();
  }

  poll(): Packet | undefined {
    return this.#inbound.shift();
  }

  close(): void {
    this.#peer = undefined;
    this.#receive = undefined;
  }

  #schedule(): void {
    if (this.#scheduled || this.#receive === undefined || this.#inbound.size === 0) return;
    this.#scheduled = true;
    queueMicrotask(() => this.#deliver());
  }

  #deliver(): void {
    this.#scheduled = false;
    for (;;) {
      const packet = this.#receive === undefined ? undefined : this.#inbound.shift();
      if (packet === undefined) return;
      this.#receive?.(packet);
    }
  }
}
