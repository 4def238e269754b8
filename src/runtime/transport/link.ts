import type { MessagePort, Transferable } from "node:worker_threads";
import type { Ledger } from "../mailbox/ledger.ts";
import type { Pipe } from "./packed-link.ts";
import type { Packet } from "./packet.ts";
import type { MemoryPlace } from "./shared-memory.ts";

/**
 * One end of a lossless, ordered, two-way channel between two actors: the seam between the kernel and
 * whatever carries bytes. `MemoryLink` joins actors of one thread, `PortLink` those of two, `PackedLink` those of two processes.
 */
export interface Link {
  /** The books of this channel. */
  readonly ledger: Ledger;
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

/** What an actor needs to open its end of a link: sent to it by the system. */
export type LinkEnd =
  | { readonly kind: "memory"; readonly link: Link }
  | {
      readonly kind: "port";
      readonly port: MessagePort;
      readonly ledger: SharedArrayBuffer;
      readonly side: 0 | 1;
      readonly peerSignal: SharedArrayBuffer;
    }
  | {
      readonly kind: "packed";
      readonly side: 0 | 1;
      readonly ledger: MemoryPlace;
      /** To the hub of the actor's process: a port, or the hub itself where it shares the actor's thread. */
      readonly pipe: MessagePort | Pipe;
      readonly maxFrameBytes: number;
    };
