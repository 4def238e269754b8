import { Store } from "../collectives/index.ts";
import { TroupeError } from "../errors.ts";
import type { Invitation } from "../runtime/index.ts";
import type { Launch } from "./launch.ts";
import { ownAddress } from "./own-address.ts";

const STORE_TIMEOUT_MS = 30_000;

/** Where others read how to join the run. */
export function invitationKey({ run }: Launch): string {
  return `troupe/${run}/head`;
}

/** Process 0 of a launch: it keeps the store where nobody else does, and says in it how the run is joined. */
export class Head implements Disposable {
  /** By which address other hosts reach this one. */
  readonly address: string;
  readonly launch: Launch;
  readonly #store: Store;

  private constructor(launch: Launch, address: string, store: Store) {
    this.launch = launch;
    this.address = address;
    this.#store = store;
  }

  /** @throws {TroupeError} `STORE_UNREACHABLE` for a port that is taken, or an agent's store that is not there */
  static async open(launch: Launch): Promise<Head> {
    const { master, isStoreKept } = launch;
    const store = openStore(launch);
    try {
      return new Head(launch, await ownAddress(master, STORE_TIMEOUT_MS), store);
    } catch (error) {
      store[Symbol.dispose]();
      throw isStoreKept ? error : unreachable(launch, error as Error);
    }
  }

  /** Where groups of the run meet, as `CommunicatorOptions.rendezvous` says it. */
  get rendezvous(): string {
    const { host, port } = this.launch.master;
    return `store:${host}:${port}`;
  }

  /** Says how the run is joined. */
  publish(invitation: Invitation): void {
    this.#store.set(invitationKey(this.launch), JSON.stringify(invitation));
  }

  [Symbol.dispose](): void {
    this.#store[Symbol.dispose]();
  }
}

function openStore(launch: Launch): Store {
  const { master, isStoreKept } = launch;
  try {
    return new Store({ ...master, listens: !isStoreKept, timeoutMs: STORE_TIMEOUT_MS });
  } catch (error) {
    throw isStoreKept ? error : unreachable(launch, error as Error);
  }
}

function unreachable({ master: { host, port } }: Launch, cause: Error): unknown {
  const isTaken = cause.message.includes("EADDRINUSE");
  if (!isTaken) return cause;
  return new TroupeError(
    "STORE_UNREACHABLE",
    {
      where: "launch",
      expected: `port ${port} of ${host} to be free`,
      got: "another program that listens there",
      hint: "give all hosts another MASTER_PORT",
    },
    { cause },
  );
}
