import { MessagePort, type Transferable } from "node:worker_threads";
import type { Credits } from "../mailbox/credits.ts";
import type { Packet } from "./packet.ts";
import type { MemoryPlace } from "./shared-memory.ts";

/**
 * One end of a lossless, ordered, two-way channel between two actors: the seam between the kernel and
 * whatever carries bytes. `MemoryLink` joins actors of one thread, `PortLink` those of two, `PackedLink` those of two processes.
 */
export interface Link {
  /** Counts what each end has taken, which is the credit of the other. */
  readonly credits: Credits;
  /**
   * Sends `packet`; nothing of it is sent when this throws because a part cannot be cloned.
   * @param urgent - whether the receiver should look at it before its next message
   */
  post(packet: Packet, transfer: readonly Transferable[], urgent: boolean): void;
  /** Hands every packet to `receive` from the event loop on, those already there included. */
  listen(receive: (packet: Packet) => void, garbled: (error: Error) => void): void;
  /** Takes the oldest packet without the event loop, if one is there. */
  poll(): Packet | undefined;
  /** Nothing is sent or received after it. */
  close(): void;
}

/**
 * What goes beside the packets between two threads of a process: how far something else has come that the sender has begun, such
 * as a device's work.
 */
export interface MessageOrder {
  /** @returns what whoever takes the next packet is to hear; 0: nothing */
  said(): number;
  /** Called, before the packet is read, with what its sender has said. */
  heard(place: number): void;
}

/** Packed packets on their way between an actor and the hub of its process; or a packet of the hub's own, as it is. */
export type Parcel =
  | { readonly flags: number; readonly bytes: Uint8Array<ArrayBuffer> }
  | { readonly packet: Packet };

/** How the ends of a link hear what the other has taken: in memory that both have, or each so many messages by the link itself. */
export type CreditsPlan = MemoryPlace | { readonly reportEvery: number };

/** The same at one end: what it has taken lies where its process finds it when its thread has ended. */
export type CreditsEnd = MemoryPlace | { readonly reportEvery: number; readonly taken: SharedArrayBuffer };

/** How an actor reaches the hub of its process. */
export interface Pipe {
  send(parcel: Parcel): void;
  listen(receive: (parcel: Parcel) => void): void;
  poll(): Parcel | undefined;
  close(): void;
}

/** What an actor needs to open its end of a link: sent to it by the system. */
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
      /** To the hub of the actor's process: a port, or the hub itself where it shares the actor's thread. */
      readonly pipe: MessagePort | Pipe;
      readonly maxFrameBytes: number;
    };

/** The port that has to be transferred with a link's end, where it has one. */
export function portsOf(end: LinkEnd): MessagePort[] {
  if (end.kind === "port") return [end.port];
  return end.kind === "packed" && end.pipe instanceof MessagePort ? [end.pipe] : [];
}
