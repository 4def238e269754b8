import { native } from "../tensor/index.ts";

/** Where a store of c10d is. */
export interface StorePlace {
  readonly host: string;
  readonly port: number;
  /** Whether this process keeps it; else it must be there by now, or come within the deadline. */
  readonly listens: boolean;
  readonly timeoutMs: number;
}

/**
 * A `TCPStore` of c10d: names and texts that all who know its address read and write, PyTorch's processes among them. Each
 * call blocks for one round trip.
 * @throws {TroupeError} all of it `STORE_UNREACHABLE`, and `GLOO_UNAVAILABLE` where the addon lacks Gloo
 */
export class Store implements Disposable {
  readonly #number: number;

  constructor({ host, port, listens, timeoutMs }: StorePlace) {
    this.#number = native().openStore(host, port, listens, timeoutMs);
  }

  /** Sets a text, in place of what was there. */
  set(key: string, value: string): void {
    native().setInStore(this.#number, key, value);
  }

  /** @returns undefined where nobody has set it yet */
  read(key: string): string | undefined {
    return native().readFromStore(this.#number, key);
  }

  /** Adds to a number that begins at 0. @returns what it is then */
  add(key: string, amount: number): number {
    return native().addInStore(this.#number, key, amount);
  }

  /** Leaves it; whoever keeps it ends it for all. Idempotent. */
  [Symbol.dispose](): void {
    native().closeStore(this.#number);
  }
}

/** Says by which address other hosts reach this process: where its groups listen that meet in a store on the network. */
export function setHostAddress(address: string): void {
  native().setHostAddress(address);
}
