import { native } from "../tensor/index.ts";

/** The address of a c10d store. */
export interface StorePlace {
  readonly host: string;
  /** Port; 0 for a free one, if this process keeps the store. */
  readonly port: number;
  /** Whether this process keeps the store; otherwise the store must exist within the timeout. */
  readonly listens: boolean;
  readonly timeoutMs: number;
}

const LOOPBACK = "127.0.0.1";
const KEPT_TIMEOUT_MS = 30_000;

/**
 * Opens a store at a free port of this host, served by threads of its own: at the address that other hosts know, else at loopback.
 * @throws {TroupeError} as {@link Store}
 */
export function keepStore(): Store {
  return new Store({
    host: native().hostAddress() || LOOPBACK,
    port: 0,
    listens: true,
    timeoutMs: KEPT_TIMEOUT_MS,
  });
}

/**
 * A c10d `TCPStore`: texts by key, which every process that knows the address can read and write, PyTorch's too. Each call
 * blocks for one round trip.
 * @throws {TroupeError} `STORE_UNREACHABLE` from every function; `GLOO_UNAVAILABLE` if the addon lacks Gloo
 */
export class Store implements Disposable {
  readonly #number: number;

  constructor({ host, port, listens, timeoutMs }: StorePlace) {
    this.#number = native().openStore(host, port, listens, timeoutMs);
  }

  /**
   * Rendezvous of groups in this store, for `CommunicatorOptions.rendezvous`. Other hosts can use it too if this process
   * knows its address there, see `setHostAddress`.
   */
  get rendezvous(): string {
    return `store:${native().hostAddress() || LOOPBACK}:${native().storePort(this.#number)}`;
  }

  /** Sets the text of a key, replacing an earlier one. */
  set(key: string, value: string): void {
    native().setInStore(this.#number, key, value);
  }

  /** Reads the text of a key; undefined if it is not set. */
  read(key: string): string | undefined {
    return native().readFromStore(this.#number, key);
  }

  /** Adds to a counter that begins at 0. @returns the new value */
  add(key: string, amount: number): number {
    return native().addInStore(this.#number, key, amount);
  }

  /** Disconnects from the store; in the process that keeps it, closes it for all. Idempotent. */
  [Symbol.dispose](): void {
    native().closeStore(this.#number);
  }
}

/** Sets the address by which other hosts reach this process; groups with a store on the network listen there. */
export function setHostAddress(address: string): void {
  native().setHostAddress(address);
}
