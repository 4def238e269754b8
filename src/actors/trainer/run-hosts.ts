import { hostname } from "node:os";
import { type RunHost, reportError, type TroupeEventBody } from "../../job/events/index.ts";
import { fromFailure, type HostCard, type HostsOptions } from "../../runtime/index.ts";
import { type Head, ownMeans } from "../launch/index.ts";
import { placeOfRank } from "./plan/launched.ts";

/** The hosts of a launch: which are present, and since when others are missing. */
export class RunHosts {
  readonly #numRanks: number;
  readonly #emit: (event: TroupeEventBody) => void;
  /** The other hosts that are present, by number. */
  readonly #present = new Map<number, HostCard>();
  /** Why missing hosts were refused, by number. */
  readonly #refused = new Map<number, string>();
  /** When lost hosts were lost, by number. */
  readonly #lostAtMs = new Map<number, number>();

  constructor(numRanks: number, emit: (event: TroupeEventBody) => void) {
    this.#numRanks = numRanks;
    this.#emit = emit;
  }

  /**
   * Options with which an actor system lets the other hosts join.
   * @param about - settings that all hosts must share
   * @param onSignal - called when another host receives a signal to end
   */
  options({ launch, trust }: Head, about: string, onSignal: (signal: NodeJS.Signals) => void): HostsOptions {
    return {
      count: launch.size,
      ...(trust.token !== undefined && { token: trust.token }),
      about,
      placeOf: (process, places) => placeOfRank(process, this.#numRanks, places),
      onJoined: (host) => {
        this.#present.set(host.place, host);
        this.#refused.delete(host.place);
        this.#emit({ kind: "host.joined", index: host.place, name: host.name, ...host.means });
      },
      onLost: ({ place, name }, failure) => {
        this.#present.delete(place);
        this.#lostAtMs.set(place, performance.now());
        this.#emit({ kind: "host.failed", index: place, name, error: reportError(fromFailure(failure)) });
      },
      whyMissing: (place) => this.#refused.get(place),
      onSignal: (_host, signal) => onSignal(signal),
    };
  }

  /** Reports refused hosts, as long as any is missing. */
  watchRefused(head: Head, missing: () => readonly number[]): Disposable {
    return head.watchRefused(
      () => missing().length,
      ({ place, name, error }) => {
        this.#refused.set(place, error.message);
        this.#emit({ kind: "host.refused", index: place, name, error: reportError(error) });
      },
    );
  }

  /** The present hosts, this one first, with the ranks planned for each. */
  placed(): readonly RunHost[] {
    const own = { place: 0, name: hostname(), means: ownMeans() };
    const all = [own, ...this.#present.values()].sort((a, b) => a.place - b.place);
    const places = all.map(({ place }) => place);
    const ranks = Array.from({ length: this.#numRanks }, (_, rank) => rank);
    const at = Map.groupBy(ranks, (rank) => placeOfRank(`rank-${rank}`, this.#numRanks, places));
    return all.map(({ place, name, means }) => ({
      index: place,
      name,
      ...means,
      ranks: at.get(place) ?? [],
    }));
  }

  /** How long each of these hosts has been gone; infinite for one that never came. */
  lostForMs(places: readonly number[]): number[] {
    const now = performance.now();
    return places.map((place) => now - (this.#lostAtMs.get(place) ?? Number.NEGATIVE_INFINITY));
  }
}
