import { setTimeout as pause } from "node:timers/promises";
import { Store } from "../../compute/collectives/index.ts";
import { TroupeError } from "../../errors/index.ts";
import type { HostsOptions } from "../../job/options/index.ts";
import type { Invitation } from "../../runtime/index.ts";
import type { Launch } from "./launch.ts";
import { ownAddress } from "./own-address.ts";
import { type RefusedHost, refusedHosts } from "./refused-hosts.ts";
import { readTrust, type Trust } from "./trust.ts";

const STORE_TIMEOUT_MS = 30_000;
/** A process that comes later than this after a loss does not belong to a run that is just over. */
const LATELY_MS = 60_000;
/** Time for a launcher to replace a lost process; the head looks this often at who has heard of the end. */
const FAREWELL_MS = 5_000;
const LOOK_MS = 50;
const REFUSED_LOOK_MS = 200;

/** The end of a run. */
export interface RunEnd {
  /** Message of the error that the run failed with, if it did. */
  readonly failure?: string;
  /** Whether a signal ended the run early, which is not an error for hosts that come late. */
  readonly isInterrupted?: boolean;
}

/** Key under which other hosts read how to join the run. */
export function invitationKey({ run }: Launch): string {
  return `troupe/${run}/head`;
}

/** Returns how the run has ended, and records that this process has heard of it; undefined while the run goes on. */
export function readEnd(launch: Launch, store: Store): RunEnd | undefined {
  // An agent's store outlives the run, so its record may be of an earlier run than the reader's.
  const said = launch.isStoreKept ? undefined : store.read(endKey(launch));
  if (said === undefined) return undefined;
  store.add(heardKey(launch), 1);
  return JSON.parse(said) as RunEnd;
}

const endKey = ({ run }: Launch) => `troupe/${run}/end`;
const heardKey = ({ run }: Launch) => `troupe/${run}/heard`;

/** Process 0 of a launch: it hosts the store, unless the launcher does, and publishes in it how to join the run. */
export class Head implements Disposable {
  /** Address at which other hosts reach this one. */
  readonly address: string;
  readonly launch: Launch;
  /** Keys by which hosts authenticate each other. */
  readonly trust: Trust;
  readonly #store: Store;

  private constructor(launch: Launch, trust: Trust, address: string, store: Store) {
    this.launch = launch;
    this.trust = trust;
    this.address = address;
    this.#store = store;
  }

  /** Opens the store. @throws {TroupeError} `STORE_UNREACHABLE` for a taken port or no answer; `TLS_KEYS`, `ACCESS_TOKEN` */
  static async open(launch: Launch, files: HostsOptions): Promise<Head> {
    const { master, isStoreKept } = launch;
    const trust = readTrust(files);
    const store = openStore(launch);
    try {
      return new Head(launch, trust, await ownAddress(master, STORE_TIMEOUT_MS), store);
    } catch (error) {
      store[Symbol.dispose]();
      throw isStoreKept ? error : unreachable(launch, error as Error);
    }
  }

  /** Publishes how to join the run. */
  publish(invitation: Invitation): void {
    this.#store.set(invitationKey(this.launch), JSON.stringify(invitation));
  }

  /** Reads the notes of refused hosts from the store while any host is missing. @returns dispose it to stop reading */
  watchRefused(numMissing: () => number, onRefused: (host: RefusedHost) => void): Disposable {
    const readRefused = refusedHosts(this.launch, this.#store);
    const look = () => {
      if (numMissing() === 0) return;
      try {
        for (const host of readRefused()) onRefused(host);
      } catch {
        // The launcher's agent has ended and taken its store with it; it ends this process too.
        clearInterval(timer);
      }
    };
    const timer = setInterval(look, REFUSED_LOOK_MS).unref();
    return { [Symbol.dispose]: () => clearInterval(timer) };
  }

  /**
   * Waits until processes in place of hosts lost in the last minute know that the run is over, or had time to; for no others.
   * @param lostForMs - for each missing host, how long it has been gone
   */
  async farewell(lostForMs: readonly number[], end: RunEnd): Promise<void> {
    const numLate = this.launch.replacesLost ? lostForMs.filter((ms) => ms < LATELY_MS).length : 0;
    if (numLate === 0) return;
    this.#store.set(endKey(this.launch), JSON.stringify(end));
    const begin = performance.now();
    const heard = () => this.#store.add(heardKey(this.launch), 0);
    while (heard() < numLate && performance.now() - begin < FAREWELL_MS) await pause(LOOK_MS);
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
  return new TroupeError("STORE_UNREACHABLE", {
    where: "launch",
    expected: `port ${port} of ${host} to be free`,
    got: "another program that listens there",
    hint: "give all hosts another MASTER_PORT",
    cause,
  });
}
