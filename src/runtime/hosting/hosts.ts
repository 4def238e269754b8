import { TroupeError } from "../../errors/index.ts";
import { type Failure, toFailure } from "../protocol/failure.ts";
import type { Hub } from "../transport/hub/hub.ts";
import { type HostCard, type HostNews, unpackHostNews } from "./host-orders.ts";
import { RemoteHost, titleOf } from "./remote-host.ts";

/** Options of a system of several hosts. */
export interface HostsOptions {
  /** Number of hosts, including the one of the system and companions. */
  readonly count: number;
  /** Shared secret that the hosts already have; without it one is made and put into the invitation. */
  readonly token?: string;
  /** A text that must be equal on all hosts, such as their command; a host with another is refused. */
  readonly about: string;
  /** Chooses the host of a process by its name, among those that have joined, in order; the first is the system's own. */
  placeOf(process: string, places: readonly number[]): number;
  /** A host has joined, for the first time or again. */
  onJoined(host: HostCard): void;
  /** A host is lost, with everything that ran there. */
  onLost(host: HostCard, failure: Failure): void;
  /** Returns why a host is missing, if known, for the error that names it. */
  whyMissing?(place: number): string | undefined;
  /** A host was sent a signal that asks it to end. */
  onSignal(host: HostCard, signal: NodeJS.Signals): void;
}

/** A released host first ends what runs there, which may take long on a busy machine. A lost one is noticed long before. */
const goodbyeMs = 10_000;

/** The other hosts of a system, as seen by the head. They call, are admitted, start processes, and are released. */
export class Hosts {
  readonly #options: HostsOptions;
  readonly #hub: Hub;
  /** Admitted hosts by the index of their hub. */
  readonly #living = new Map<number, RemoteHost>();
  #wake = Promise.withResolvers<void>();
  #isClosed = false;
  #failure: Failure | undefined;

  constructor(options: HostsOptions, hub: Hub) {
    this.#options = options;
    this.#hub = hub;
  }

  /** Returns the host for a process of this name, the `wanted` one if it is there; undefined for this host. */
  hostOf(process: string, wanted: number | undefined): RemoteHost | undefined {
    const others = [...this.#living.values()].filter(({ card }) => !card.isCompanion);
    const places = [0, ...others.map(({ card }) => card.place)].sort((a, b) => a - b);
    const isThere = wanted !== undefined && places.includes(wanted);
    return this.#at(isThere ? wanted : this.#options.placeOf(process, places));
  }

  /**
   * Resolves once all hosts have joined.
   * @throws {TroupeError} `HOST_MISSING` naming those that did not join within the deadline; `SYSTEM_STOPPED` if the system
   *   ends before
   */
  async all(deadlineMs: number): Promise<void> {
    const late = Promise.withResolvers<"late">();
    const timer = setTimeout(() => late.resolve("late"), deadlineMs);
    try {
      while (this.missing.length > 0) {
        if ((await Promise.race([this.#wake.promise, late.promise])) === "late")
          throw this.#missed(deadlineMs);
        if (this.#isClosed) throw stopped();
      }
    } finally {
      clearTimeout(timer);
    }
  }

  /** Handles a message of a host. */
  hear(from: number, bytes: Uint8Array): void {
    const news = unpackHostNews(bytes);
    const host = this.#living.get(from);
    if (news.kind === "host") this.#admit(from, news);
    else if (host === undefined) return;
    else if (news.kind === "signal") this.#options.onSignal(host.card, news.signal as NodeJS.Signals);
    else host.hear(news);
  }

  /** Handles the loss of a host's connection. */
  lose(index: number, cause: Error | undefined): void {
    const host = this.#living.get(index);
    if (host === undefined) return;
    this.#living.delete(index);
    const failure = host.lose(cause);
    this.#signal();
    if (!this.#isClosed && !host.card.isCompanion) this.#options.onLost(host.card, toFailure(failure));
  }

  /** Releases all hosts, and resolves when they have left or have had time to. */
  async dismiss(failure: Failure | undefined): Promise<void> {
    this.#isClosed = true;
    this.#failure = failure;
    for (const host of this.#living.values()) host.order({ kind: "dismiss", failure });
    this.#signal();
    const late = Promise.withResolvers<"late">();
    const timer = setTimeout(() => late.resolve("late"), goodbyeMs);
    while (this.#living.size > 0)
      if ((await Promise.race([this.#wake.promise, late.promise])) === "late") break;
    clearTimeout(timer);
  }

  #at(place: number): RemoteHost | undefined {
    return [...this.#living.values()].find(({ card }) => card.place === place);
  }

  #admit(from: number, news: Extract<HostNews, { readonly kind: "host" }>): void {
    const { kind: _, ...card } = news;
    const refusal = this.#refusalOf(card);
    const host = new RemoteHost(card, from, this.#hub);
    if (refusal !== undefined) {
      // A host that joins as the run ends leaves with the same failure as the others.
      host.order({ kind: "dismiss", failure: this.#failure ?? toFailure(refusal) });
      return;
    }
    this.#living.set(from, host);
    host.order({ kind: "welcome" });
    this.#signal();
    if (!card.isCompanion) this.#options.onJoined(card);
  }

  #refusalOf(card: HostCard): TroupeError | undefined {
    const { count, about } = this.#options;
    const title = titleOf(card);
    const isFree = card.place > 0 && card.place < count && this.#at(card.place) === undefined;
    if (this.#isClosed) return refused("a run that goes on", `${title}, as the run ends`, "start it again");
    if (!isFree)
      return refused(`hosts 1 to ${count - 1}, each once`, title, "check how many hosts the launcher starts");
    if (card.about === about) return undefined;
    return refused(`${title} to be started with ${about}`, card.about, "give every host the same command");
  }

  /** Numbers of the hosts that have not joined. */
  get missing(): readonly number[] {
    return Array.from({ length: this.#options.count - 1 }, (_, index) => index + 1).filter(
      (place) => this.#at(place) === undefined,
    );
  }

  #missed(deadlineMs: number): TroupeError {
    const { missing } = this;
    const reasons = missing.flatMap((place) => {
      const reason = this.#options.whyMissing?.(place);
      return reason === undefined ? [] : [`host ${place} was refused: ${reason}`];
    });
    const names = `host${missing.length === 1 ? "" : "s"} ${missing.join(", ")}`;
    return new TroupeError("HOST_MISSING", {
      where: "hosts",
      expected: `${this.#options.count} hosts within ${deadlineMs / 1000} s`,
      got: [`all but ${names}`, ...reasons].join("; "),
      hint: "see their own output, and check that they can reach this host at its address",
      fields: { missing, numRefused: reasons.length },
    });
  }

  #signal(): void {
    this.#wake.resolve();
    this.#wake = Promise.withResolvers<void>();
  }
}

function stopped(): TroupeError {
  return new TroupeError("SYSTEM_STOPPED", {
    where: "hosts",
    expected: "a running system, until all hosts have joined",
    got: "one that is stopped",
    hint: "make a new one",
  });
}

function refused(expected: string, got: string, hint: string): TroupeError {
  return new TroupeError("HOST_REFUSED", { where: "hosts", expected, got, hint });
}
