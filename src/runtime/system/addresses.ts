import { randomUUID } from "node:crypto";
import { type Address, systemAddress } from "../protocol/address.ts";

// No actor has this uid: a message to one before its first start finds nobody.
const unbornUid = Number.MAX_SAFE_INTEGER;

/** Gives out the addresses of one system, none of them twice. */
export class Addresses {
  /** The system's name among all of the process: two of them may have actors of one name. */
  readonly system = randomUUID();
  readonly #incarnations = new Map<string, number>();
  #lastUid = systemAddress.uid;

  /** The number the next incarnation under this name will have. */
  nextIncarnation(name: string): number {
    return (this.#incarnations.get(name) ?? 0) + 1;
  }

  /** The address of a new incarnation; its lanes are known once it has started. */
  next(name: string): Address {
    const incarnation = this.nextIncarnation(name);
    this.#incarnations.set(name, incarnation);
    this.#lastUid += 1;
    return { system: this.system, uid: this.#lastUid, name, incarnation, lanes: {} };
  }

  /** Of an actor before its first incarnation: nobody is reached by it. */
  unborn(name: string): Address {
    return { system: this.system, uid: unbornUid, name, incarnation: 0, lanes: {} };
  }
}
