import { randomUUID } from "node:crypto";
import { type Address, systemAddress } from "../protocol/address.ts";

// No actor has this uid, so that a message to an actor before its first start becomes a dead letter.
const unstartedUid = Number.MAX_SAFE_INTEGER;

/** Gives out the addresses of one system, each only once. */
export class Addresses {
  /** Id of the system: actors of two systems may have the same name. */
  readonly system = randomUUID();
  readonly #incarnations = new Map<string, number>();
  #lastUid = systemAddress.uid;

  nextIncarnation(name: string): number {
    return (this.#incarnations.get(name) ?? 0) + 1;
  }

  /** Returns the address of a new incarnation; its lanes are known once it has started. */
  next(name: string): Address {
    const incarnation = this.nextIncarnation(name);
    this.#incarnations.set(name, incarnation);
    this.#lastUid += 1;
    return { system: this.system, uid: this.#lastUid, name, incarnation, lanes: {} };
  }

  /** Returns the address of an actor before its first incarnation. It reaches no actor. */
  unstarted(name: string): Address {
    return { system: this.system, uid: unstartedUid, name, incarnation: 0, lanes: {} };
  }
}
