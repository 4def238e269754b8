import { native } from "../tensor/index.ts";

/** Where a store of c10d is. */
export interface StorePlace {
  readonly host: string;
  /** 0 for a free one, of a store that this process keeps. */
  readonly port: number;
  /** Whether this process keeps it; else it must be there by now, or come within the deadline. */
  readonly listens: boolean;
  readonly timeoutMs: number;
}

const LOOPBACK = "127.0.0.1";
const KEPT_TIMEOUT_MS = 30_000;

/** Keeps a store at a free port of this host, in threads of its own. @throws {TroupeError} what {@link Store} throws */
export function keepStore(): Store {
  return new Store({ host: LOOPBACK, port: 0, listens: true, timeoutMs: KEPT_TIMEOUT_MS });
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

  /** Where groups meet in it, as `CommunicatorOptions.rendezvous` says it: for other hosts too, where this process knows how they reach it. */
  get rendezvous(): string {
    return `store:${native().hostAddress() || LOOPBACK}:${native().storePort(this.#number)}`;
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
