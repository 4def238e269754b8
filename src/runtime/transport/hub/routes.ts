import { type MessagePort, receiveMessageOnPort } from "node:worker_threads";
import { Queue } from "../../mailbox/queue.ts";
import { reportBytes } from "../../mailbox/reported-credits.ts";
import { frameFlag } from "../frame.ts";
import type { CreditsEnd, CreditsPlan, Parcel, Pipe } from "../link.ts";
import type { Signal } from "../signal.ts";
import type { Hub, Route } from "./hub.ts";

/** One end of a link between two processes, as the system plans it. Plain data. */
export interface RouteEnd {
  /** Unique in the system. */
  readonly id: number;
  /** The process at the other end. */
  readonly peer: number;
  /** Address of that process's door. */
  readonly peerAddress: string;
  readonly side: 0 | 1;
  readonly credits: CreditsPlan;
}

/** Returns the credit counters of the actor at this end of a route. */
export function creditsAt({ credits }: RouteEnd): CreditsEnd {
  return "reportEvery" in credits ? { ...credits, taken: new SharedArrayBuffer(reportBytes) } : credits;
}

/** Ends a route, after a last report of what its actor has taken. */
function endRoute(hub: Hub, id: number, credits: CreditsEnd): void {
  if ("taken" in credits) hub.send(id, new Uint8Array(credits.taken).slice(), 0);
  hub.closeRoute(id);
}

/** Connects a route to an actor's port and to the signal of the actor's thread. */
export class PortRoute implements Route {
  readonly peer: number;
  readonly peerAddress: string;
  readonly #hub: Hub;
  readonly #id: number;
  readonly #credits: CreditsEnd;
  readonly #port: MessagePort;
  readonly #signal: Signal;

  /** Opens the route on `port`; the actor has the other end. */
  constructor(
    hub: Hub,
    { id, peer, peerAddress }: RouteEnd,
    credits: CreditsEnd,
    port: MessagePort,
    signal: Signal,
  ) {
    this.peer = peer;
    this.peerAddress = peerAddress;
    this.#hub = hub;
    this.#id = id;
    this.#credits = credits;
    this.#port = port;
    this.#signal = signal;
    port.on("message", (parcel: Parcel) => this.#send(parcel));
    port.on("close", () => endRoute(hub, id, credits));
    hub.openRoute(id, this);
  }

  deliver(bytes: Uint8Array<ArrayBuffer>, flags: number): void {
    this.#port.postMessage({ flags, bytes }, [bytes.buffer]);
    this.#signal.ring((flags & frameFlag.urgent) !== 0);
  }

  /** Closes the route of an actor that has ended, after sending what it posted last. */
  close(): void {
    for (
      let left = receiveMessageOnPort(this.#port);
      left !== undefined;
      left = receiveMessageOnPort(this.#port)
    ) {
      this.#send(left.message);
    }
    endRoute(this.#hub, this.#id, this.#credits);
    this.#port.close();
  }

  #send(parcel: Parcel): void {
    if ("bytes" in parcel) this.#hub.send(this.#id, parcel.bytes, parcel.flags);
  }
}

/** The pipe of an actor that shares its thread with the hub. */
export class HubPipe implements Pipe, Route {
  readonly peer: number;
  readonly peerAddress: string;
  readonly #hub: Hub;
  readonly #id: number;
  readonly #credits: CreditsEnd;
  readonly #signal: Signal;
  readonly #inbound = new Queue<Parcel>();
  #receive: ((parcel: Parcel) => void) | undefined;

  /** Opens the route. */
  constructor(hub: Hub, { id, peer, peerAddress }: RouteEnd, credits: CreditsEnd, signal: Signal) {
    this.peer = peer;
    this.peerAddress = peerAddress;
    this.#hub = hub;
    this.#id = id;
    this.#credits = credits;
    this.#signal = signal;
    hub.openRoute(id, this);
  }

  deliver(bytes: Uint8Array<ArrayBuffer>, flags: number): void {
    this.#signal.ring((flags & frameFlag.urgent) !== 0);
    if (this.#receive === undefined) this.#inbound.push({ flags, bytes });
    else this.#receive({ flags, bytes });
  }

  send(parcel: Parcel): void {
    if ("bytes" in parcel) this.#hub.send(this.#id, parcel.bytes, parcel.flags);
  }

  listen(receive: (parcel: Parcel) => void): void {
    this.#receive = receive;
    for (let next = this.#inbound.shift(); next !== undefined; next = this.#inbound.shift()) receive(next);
  }

  poll(): Parcel | undefined {
    return this.#inbound.shift();
  }

  close(): void {
    this.#receive = undefined;
    endRoute(this.#hub, this.#id, this.#credits);
  }
}
