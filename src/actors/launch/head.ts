import { setTimeout as pause } from "node:timers/promises";
import { Store } from "../../compute/collectives/index.ts";
import { TroupeError } from "../../errors/index.ts";
import type { HostsOptions } from "../../job/options/index.ts";
import type { Invitation } from "../../runtime/index.ts";
import type { Launch } from "./launch.ts";
import { ownAddress } from "./own-address.ts";
import { type RefusedHost, RefusedHosts } from "./refused-hosts.ts";
import { readTrust, type Trust } from "./trust.ts";

const STORE_TIMEOUT_MS = 30_000;
/** Whoever comes later than so after a loss comes to no run that is just over. */
const LATELY_MS = 60_000;
/** As long as a launcher takes to bring a process in a lost one's place, and a look at who has heard. */
const FAREWELL_MS = 5_000;
const LOOK_MS = 50;
const REFUSED_LOOK_MS = 200;

/** How a run has ended. */
export interface RunEnd {
  /** What it failed with. */
  readonly failure?: string;
  /** Whether a signal ended it before its last step, which is no failure of hosts that come late. */
  readonly isInterrupted?: boolean;
}

/** Where others read how to join the run. */
export function invitationKey({ run }: Launch): string {
  return `troupe/${run}/head`;
}

/** @returns how the run has ended, which is noted as heard; undefined while it goes on */
export function readEnd(launch: Launch, store: Store): RunEnd | undefined {
  // A store that an agent keeps for longer than one run says nothing of ends: who reads it may belong to the next.
  const said = launch.isStoreKept ? undefined : store.read(endKey(launch));
  if (said === undefined) return undefined;
  store.add(heardKey(launch), 1);
  return JSON.parse(said) as RunEnd;
}

const endKey = ({ run }: Launch) => `troupe/${run}/end`;
const heardKey = ({ run }: Launch) => `troupe/${run}/heard`;

/** Process 0 of a launch: it keeps the store where nobody else does, and says in it how the run is joined. */
export class Head implements Disposable {
  /** By which address other hosts reach this one. */
  readonly address: string;
  readonly launch: Launch;
  /** By what hosts know each other. */
  readonly trust: Trust;
  readonly #store: Store;

  private constructor(launch: Launch, trust: Trust, address: string, store: Store) {
    this.launch = launch;
    this.trust = trust;
    this.address = address;
    this.#store = store;
  }

  /**
   * @throws {TroupeError} `STORE_UNREACHABLE` for a port that is taken, or an agent's store that is not there; `TLS_KEYS` and
   *   `ACCESS_TOKEN` for files that cannot be used
   */
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

  /** Where groups of the run meet, as `CommunicatorOptions.rendezvous` says it. */
  get rendezvous(): string {
    const { host, port } = this.launch.master;
    return `store:${host}:${port}`;
  }

  /** Says how the run is joined. */
  publish(invitation: Invitation): void {
    this.#store.set(invitationKey(this.launch), JSON.stringify(invitation));
  }

  /**
   * Reads what hosts that are refused leave in the store, while any host is missing.
   * @param numMissing - how many are missing now
   * @returns dispose it to stop reading
   */
  watchRefused(numMissing: () => number, onRefused: (host: RefusedHost) => void): Disposable {
    const refused = new RefusedHosts(this.launch, this.#store);
    const look = () => {
      if (numMissing() === 0) return;
      try {
        for (const host of refused.readNew()) onRefused(host);
      } catch {
        // Without its store an agent ends, and this process with it.
        clearInterval(timer);
      }
    };
    const timer = setInterval(look, REFUSED_LOOK_MS).unref();
    return { [Symbol.dispose]: () => clearInterval(timer) };
  }

  /**
   * Stays until those have heard that the run is over who come too late into places that were lost in the last minute, or have had time
   * to: where the launcher gives places anew. It waits for nobody else.
   * @param lostForMs - of each place that is empty, for how long
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
