import { TroupeError } from "../../errors/index.ts";
import { type Failure, toFailure } from "../protocol/failure.ts";
import type { Hub } from "../transport/hub/hub.ts";
import { type HostCard, type HostNews, unpackHostNews } from "./host-orders.ts";
import { RemoteHost, titleOf } from "./remote-host.ts";

/** What a system of several hosts is to know of them. */
export interface HostsOptions {
  /** How many processes there are to be, the one that holds the system and companions included. */
  readonly count: number;
  /** What opens the door, where the hosts hold it already; else one is made, and the invitation says it. */
  readonly token?: string;
  /** What all must agree on, such as what they were started with: who says another is refused. */
  readonly about: string;
  /**
   * Where a process is to live.
   * @param process - its name
   * @param places - the hosts that are there, in order; the first is that of the system
   * @returns one of them
   */
  placeOf(process: string, places: readonly number[]): number;
  /** A host is there, for the first time or again. */
  onJoined(host: HostCard): void;
  /** A host is gone, and all that ran there. */
  onLost(host: HostCard, failure: Failure): void;
  /** Why a host is missing, where that is known: for the error that names it. */
  whyMissing?(place: number): string | undefined;
  /** A host was sent a signal that asks it to end. */
  onSignal(host: HostCard, signal: NodeJS.Signals): void;
}

/** A host that is let go first ends what runs there, on a busy machine too; one that is gone is found silent long before. */
const goodbyeMs = 10_000;

/** The other hosts of a system, as the one that holds it sees them: they call, are taken in, start processes, and are let go. */
export class Hosts {
  readonly #options: HostsOptions;
  readonly #hub: Hub;
  /** By the number of its hub. */
  readonly #living = new Map<number, RemoteHost>();
  #wake = Promise.withResolvers<void>();
  #isClosed = false;
  #failure: Failure | undefined;

  constructor(options: HostsOptions, hub: Hub) {
    this.#options = options;
    this.#hub = hub;
  }

  /** The host on which a process of this name is to live; undefined where that is this one. */
  hostOf(process: string): RemoteHost | undefined {
    const others = [...this.#living.values()].filter(({ card }) => !card.isCompanion);
    const places = [0, ...others.map(({ card }) => card.place)].sort((a, b) => a - b);
    const place = this.#options.placeOf(process, places);
    return this.#at(place);
  }

  /**
   * Resolves once all are there.
   * @throws {TroupeError} `HOST_MISSING` naming those that did not come within the deadline; `SYSTEM_STOPPED` where the system ends before
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

  /** Takes in what a host says. */
  hear(from: number, bytes: Uint8Array): void {
    const news = unpackHostNews(bytes);
    const host = this.#living.get(from);
    if (news.kind === "host") this.#admit(from, news);
    else if (host === undefined) return;
    else if (news.kind === "signal") this.#options.onSignal(host.card, news.signal as NodeJS.Signals);
    else host.hear(news);
  }

  /** A hub can be heard no more. */
  lose(index: number, cause: Error | undefined): void {
    const host = this.#living.get(index);
    if (host === undefined) return;
    this.#living.delete(index);
    const failure = host.lose(cause);
    this.#signal();
    if (!this.#isClosed && !host.card.isCompanion) this.#options.onLost(host.card, toFailure(failure));
  }

  /** Lets all go, and resolves when they have gone, or have had time to. */
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
      // One that comes as the run ends leaves as the others do.
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
    if (this.#isClosed) return refused("a run that goes on", `${title}, as the run ends`, "start it anew");
    if (!isFree)
      return refused(
        `hosts 1 to ${count - 1}, each once`,
        title,
        "see how many the launcher was told to start",
      );
    if (card.about === about) return undefined;
    return refused(`${title} to be started with ${about}`, card.about, "give every host the same command");
  }

  /** Who is to be there and is not, by number. */
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
    return new TroupeError(
      "HOST_MISSING",
      {
        where: "hosts",
        expected: `${this.#options.count} hosts within ${deadlineMs / 1000} s`,
        got: [`all but ${names}`, ...reasons].join("; "),
        hint: "see their own output, and whether they reach this one by its address",
      },
      { fields: { missing, numRefused: reasons.length } },
    );
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
