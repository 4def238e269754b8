import { hostname } from "node:os";
import { TroupeError } from "../../errors/index.ts";
import { type RunHost, reportError, type TroupeEventBody } from "../../job/events/index.ts";
import type { RuntimeSettings } from "../../job/options/index.ts";
import { type ActorSystem, fromFailure, type HostCard, type HostsOptions } from "../../runtime/index.ts";
import { Head, heartbeatOf, type Launch, ownMeans } from "../launch/index.ts";
import { type Launched, placeOfRank } from "./plan/launched.ts";
import type { SharedSystem } from "./shared-system.ts";
import { translateEvent } from "./translate-event.ts";

/** Options of a {@link LedLaunch}. */
export interface LedLaunchOptions {
  readonly launched: Launched;
  /** Settings of the runtime that leads it. */
  readonly settings: RuntimeSettings;
  readonly system: SharedSystem;
  readonly emit: (event: TroupeEventBody) => void;
  /** Called when another host receives a signal to end. */
  readonly onSignal: (signal: NodeJS.Signals) => void;
}

/** A launch whose hosts can join. */
interface Opened {
  readonly head: Head;
  /** Keeps the system, and with it the hosts, between runs. */
  readonly part: ActorSystem;
  readonly watching: Disposable;
}

/** The launch on several hosts that a runtime leads: which hosts are present, and since when others are missing. */
export class LedLaunch {
  readonly #options: LedLaunchOptions;
  /** The other hosts that are present, by number. */
  readonly #present = new Map<number, HostCard>();
  /** Why missing hosts were refused, by number. */
  readonly #refused = new Map<number, string>();
  /** When lost hosts were lost, by number. */
  readonly #lostAtMs = new Map<number, number>();
  #opened: Promise<Opened> | undefined;
  #haveJoined = false;
  #failure: Error | undefined;

  constructor(options: LedLaunchOptions) {
    this.#options = options;
  }

  get launch(): Launch {
    return this.#options.launched.launch;
  }

  /** The store where groups of all hosts find each other, as `CommunicatorOptions.rendezvous`. */
  get rendezvous(): string {
    const { host, port } = this.launch.master;
    return `store:${host}:${port}`;
  }

  /** Whether all hosts have joined; some may be lost since. */
  get haveJoined(): boolean {
    return this.#haveJoined;
  }

  /**
   * Lets the other hosts join, from the first run on until {@link end}. A run begins: failures before it are survived.
   * @throws {TroupeError} `STORE_UNREACHABLE`, `NETWORK_ADDRESS`, `TLS_KEYS`, `ACCESS_TOKEN`
   */
  async begin(): Promise<void> {
    this.#failure = undefined;
    this.#opened ??= this.#open();
    try {
      await this.#opened;
    } catch (error) {
      this.#opened = undefined;
      throw error;
    }
  }

  /** Resolves once all hosts have joined. @throws {TroupeError} `HOST_MISSING` naming those that did not in time */
  async joined(): Promise<void> {
    if (this.#haveJoined) return;
    const { hostDeadlineSeconds } = this.#options.settings.supervision;
    await (await this.#opened)?.part.hostsJoined(hostDeadlineSeconds * 1000);
    this.#haveJoined = true;
  }

  /** Notes the error of a run. The other hosts end with the first one, unless another run begins. */
  fail(error: Error): void {
    this.#failure ??= error;
  }

  /** Releases the other hosts, and tells those that come late that all is over. */
  async end(): Promise<void> {
    const opened = await this.#opened?.catch(() => undefined);
    if (opened === undefined) return;
    this.#opened = undefined;
    this.#haveJoined = false;
    const { head, part, watching } = opened;
    const failure = this.#failure;
    const lostForMs = this.#lostForMs(part.hostsMissing);
    const isInterrupted = failure instanceof TroupeError && failure.code === "RUN_INTERRUPTED";
    watching[Symbol.dispose]();
    try {
      await part.stop({ drain: false, ...(failure && { failure }) });
      await head.farewell(lostForMs, failure ? { failure: failure.message, isInterrupted } : {});
    } finally {
      head[Symbol.dispose]();
    }
  }

  /** The present hosts, this one first, with the ranks planned for each. */
  placed(): readonly RunHost[] {
    const own = { place: 0, name: hostname(), means: ownMeans() };
    const all = [own, ...this.#present.values()].sort((a, b) => a.place - b.place);
    const places = all.map(({ place }) => place);
    const numRanks = this.#options.settings.layout.ranks;
    const ranks = Array.from({ length: numRanks }, (_, rank) => rank);
    const at = Map.groupBy(ranks, (rank) => placeOfRank(`rank-${rank}`, numRanks, places));
    return all.map(({ place, name, means }) => ({
      index: place,
      name,
      ...means,
      ranks: at.get(place) ?? [],
    }));
  }

  async #open(): Promise<Opened> {
    const { system, emit, settings } = this.#options;
    const { hosts, hostSilenceSeconds } = settings.supervision;
    const head = await Head.open(this.launch, hosts);
    const network = {
      host: head.address,
      heartbeat: heartbeatOf(hostSilenceSeconds),
      ...(head.trust.keys && { tls: head.trust.keys }),
    };
    const part = system.part(
      {
        name: "hosts",
        onEvent: (event) => {
          const reported = translateEvent(event);
          if (reported !== undefined) emit(reported);
        },
      },
      { network, hosts: this.#hostsOptions(head) },
    );
    try {
      head.publish(await part.invite());
    } catch (error) {
      await part.stop();
      head[Symbol.dispose]();
      throw error;
    }
    return { head, part, watching: this.#watchRefused(head, part) };
  }

  #hostsOptions({ trust }: Head): HostsOptions {
    const { launched, settings, emit, onSignal } = this.#options;
    return {
      count: this.launch.size,
      ...(trust.token !== undefined && { token: trust.token }),
      about: launched.about,
      placeOf: (process, places) => placeOfRank(process, settings.layout.ranks, places),
      onJoined: (host) => {
        this.#present.set(host.place, host);
        this.#refused.delete(host.place);
        emit({ kind: "host.joined", index: host.place, name: host.name, ...host.means });
      },
      onLost: ({ place, name }, failure) => {
        this.#present.delete(place);
        this.#lostAtMs.set(place, performance.now());
        emit({ kind: "host.failed", index: place, name, error: reportError(fromFailure(failure)) });
      },
      whyMissing: (place) => this.#refused.get(place),
      onSignal: (_host, signal) => onSignal(signal),
    };
  }

  /** Reports refused hosts, as long as any is missing. */
  #watchRefused(head: Head, part: ActorSystem): Disposable {
    return head.watchRefused(
      () => part.hostsMissing.length,
      ({ place, name, error }) => {
        this.#refused.set(place, error.message);
        this.#options.emit({ kind: "host.refused", index: place, name, error: reportError(error) });
      },
    );
  }

  /** How long each of these hosts has been gone; infinite for one that never came. */
  #lostForMs(places: readonly number[]): number[] {
    const now = performance.now();
    return places.map((place) => now - (this.#lostAtMs.get(place) ?? Number.NEGATIVE_INFINITY));
  }
}
