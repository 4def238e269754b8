import { MessagePort, type Transferable } from "node:worker_threads";
import type { Credits } from "../mailbox/credits.ts";
import type { Packet } from "./packet.ts";
import type { MemoryPlace } from "./shared-memory.ts";

/**
 * One end of a lossless, ordered, two-way channel between two actors. `MemoryLink` connects actors of one thread, `PortLink`
 * those of two threads, `PackedLink` those of two processes.
 */
export interface Link {
  /** Counters of the messages that each end has taken, which are the credit of the other. */
  readonly credits: Credits;
  /**
   * Sends `packet`; nothing of it is sent when this throws because a part cannot be cloned.
   * @param urgent - whether the receiver should look at it before its next message
   */
  post(packet: Packet, transfer: readonly Transferable[], urgent: boolean): void;
  /** Passes every packet to `receive` in the event loop, those already there included. */
  listen(receive: (packet: Packet) => void, garbled: (error: Error) => void): void;
  /** Takes the oldest packet without the event loop; undefined if there is none. */
  poll(): Packet | undefined;
  /** Closes this end. Nothing is sent or received afterwards. */
  close(): void;
}

/** Data beside packets between two threads of a process: how far other work of the sender, such as a device's, has come. */
export interface MessageOrder {
  /** Returns the value to send with the next packet; 0 for none. */
  outgoing(): number;
  /** Called with the sender's value before the packet is read. */
  incoming(place: number): void;
}

/** A packed packet on its way between an actor and the hub of its process, or an unpacked packet of the hub's own. */
export type Parcel =
  | { readonly flags: number; readonly bytes: Uint8Array<ArrayBuffer> }
  | { readonly packet: Packet };

/** How a link's ends learn what the other has taken: by shared memory, or a report after every `reportEvery` messages. */
export type CreditsPlan = MemoryPlace | { readonly reportEvery: number };

/** The {@link CreditsPlan} at one end. `taken` holds the counters where the process can read them after the thread has ended. */
export type CreditsEnd = MemoryPlace | { readonly reportEvery: number; readonly taken: SharedArrayBuffer };

/** The connection of an actor to the hub of its process. */
export interface Pipe {
  send(parcel: Parcel): void;
  listen(receive: (parcel: Parcel) => void): void;
  poll(): Parcel | undefined;
  close(): void;
}

/** The data from which an actor opens its end of a link. The system sends it. */
export type LinkEnd =
  | { readonly kind: "memory"; readonly link: Link }
  | {
      readonly kind: "port";
      readonly port: MessagePort;
      readonly credits: SharedArrayBuffer;
      readonly side: 0 | 1;
      readonly peerSignal: SharedArrayBuffer;
    }
  | {
      readonly kind: "packed";
      readonly side: 0 | 1;
      readonly credits: CreditsEnd;
      /** The connection to the hub of the actor's process: a port, or a pipe if the hub shares the actor's thread. */
      readonly pipe: MessagePort | Pipe;
      readonly maxFrameBytes: number;
    };

/** Returns the port to transfer with a link's end, if it has one. */
export function portsOf(end: LinkEnd): MessagePort[] {
  if (end.kind === "port") return [end.port];
  return end.kind === "packed" && end.pipe instanceof MessagePort ? [end.pipe] : [];
}
