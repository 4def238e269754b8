import { TroupeError } from "../../errors/index.ts";
import type { Hub } from "../transport/hub/hub.ts";
import { errorOf } from "./error-of.ts";
import type { HostCard, HostNews, HostOrder } from "./host-orders.ts";
import { packControl } from "./packed-control.ts";
import type { ProcessStart } from "./process-orders.ts";
import type { ProcessEnd, StartedProcess } from "./started-process.ts";

/** The known state of a process on another host. */
interface RemoteProcess {
  pid: number | undefined;
  lastLines: string;
  readonly end: (end: ProcessEnd) => void;
}

/** Another host of the system, as seen by the head, which starts processes there. */
export class RemoteHost {
  readonly card: HostCard;
  readonly index: number;
  readonly #hub: Hub;
  readonly #running = new Map<number, RemoteProcess>();
  #lost: Error | undefined;

  constructor(card: HostCard, index: number, hub: Hub) {
    this.card = card;
    this.index = index;
    this.#hub = hub;
  }

  start(name: string, start: ProcessStart): StartedProcess {
    const { promise: exited, resolve } = Promise.withResolvers<ProcessEnd>();
    const known: RemoteProcess = { pid: undefined, lastLines: "", end: resolve };
    const { folder: _, network: _own, systemAddress: _head, token: _known, ...rest } = start;
    const { index } = start;
    this.#running.set(index, known);
    if (this.#lost === undefined) {
      this.#hub.knowRelayed(index, this.index);
      this.order({ kind: "begin", name, start: rest });
    } else this.#end(index, { exitCode: null, signalCode: null, error: this.#lost });
    return {
      place: this.card.place,
      get pid() {
        return known.pid;
      },
      exited,
      silent: exited.then(() => {}),
      get lastLines() {
        return known.lastLines;
      },
      kill: () => this.order({ kind: "kill", index }),
    };
  }

  /** Sends it an order; orders are carried out in sequence. */
  order(order: HostOrder): void {
    this.#hub.control(this.index, packControl(order));
  }

  /** Handles a message about one of its processes. */
  hear(news: Extract<HostNews, { readonly kind: "begun" | "disconnected" | "over" }>): void {
    const known = this.#running.get(news.index);
    if (known === undefined) return;
    if (news.kind === "begun") known.pid = news.pid;
    else if (news.kind === "disconnected") this.#hub.lose(news.index, news.failure && errorOf(news.failure));
    else {
      const { index, exitCode, signalCode, failure, lastLines } = news;
      known.lastLines = lastLines;
      this.#end(index, { exitCode, signalCode, error: failure && errorOf(failure) });
    }
  }

  /** Records the loss of the host, with all its processes. Returns the error. */
  lose(cause: Error | undefined): TroupeError {
    const lost = new TroupeError("HOST_LOST", {
      where: "hosts",
      expected: `${titleOf(this.card)} to stay`,
      got: cause === undefined ? "its connection closed" : cause.message,
      hint: "see its own output; its ranks are started again on the hosts that are left",
      fields: { host: this.card.place, name: this.card.name },
      cause,
    });
    this.#lost = lost;
    for (const index of [...this.#running.keys()])
      this.#end(index, { exitCode: null, signalCode: null, error: lost });
    return lost;
  }

  #end(index: number, end: ProcessEnd): void {
    this.#running.get(index)?.end(end);
    this.#running.delete(index);
  }
}

/** Returns the name of a host for people, such as "host 1 (node-b)". */
export function titleOf({ place, name }: Pick<HostCard, "place" | "name">): string {
  return `host ${place} (${name})`;
}
