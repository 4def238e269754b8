import {
  MessageChannel,
  type MessagePort,
  receiveMessageOnPort,
  type Transferable,
} from "node:worker_threads";
import { CreditCounters, creditCountersBytes } from "../mailbox/credit-counters.ts";
import type { Link, LinkEnd, MessageOrder } from "./link.ts";
import type { Packet } from "./packet.ts";
import { Signal } from "./signal.ts";

/** A packet, with the sender's {@link MessageOrder} value if there is one. */
type Posted = Packet | { readonly place: number; readonly packet: Packet };

/** A link between two threads of one process, over a message port. Each post rings the receiver's signal. */
export class PortLink implements Link {
  readonly credits: CreditCounters;
  readonly #port: MessagePort;
  readonly #peerSignal: Signal;
  readonly #order: () => MessageOrder | undefined;

  constructor(end: Extract<LinkEnd, { kind: "port" }>, order: () => MessageOrder | undefined) {
    this.#order = order;
    this.credits = new CreditCounters(end.credits, end.side);
    this.#port = end.port;
    this.#peerSignal = new Signal(end.peerSignal);
  }

  post(packet: Packet, transfer: readonly Transferable[], urgent: boolean): void {
    const place = this.#order()?.outgoing() ?? 0;
    const posted: Posted = place === 0 ? packet : { place, packet };
    if (transfer.length === 0) this.#port.postMessage(posted);
    else this.#port.postMessage(posted, transfer);
    this.#peerSignal.ring(urgent);
  }

  listen(receive: (packet: Packet) => void, garbled: (error: Error) => void): void {
    this.#port.on("message", (posted: Posted) => receive(this.#taken(posted)));
    this.#port.on("messageerror", garbled);
  }

  poll(): Packet | undefined {
    const received = receiveMessageOnPort(this.#port);
    return received && this.#taken(received.message);
  }

  close(): void {
    this.#port.close();
  }

  #taken(posted: Posted): Packet {
    if (Array.isArray(posted)) return posted;
    this.#order()?.incoming(posted.place);
    return posted.packet;
  }
}

/** Makes both ends of a link between two threads, given their signals. */
export function portLinkEnds(leftSignal: Signal, rightSignal: Signal): [LinkEnd, LinkEnd] {
  const { port1, port2 } = new MessageChannel();
  const credits = new SharedArrayBuffer(creditCountersBytes);
  return [
    { kind: "port", port: port1, credits, side: 0, peerSignal: rightSignal.buffer },
    { kind: "port", port: port2, credits, side: 1, peerSignal: leftSignal.buffer },
  ];
}
