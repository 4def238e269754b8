import type { Socket } from "node:net";

/**
 * Accepts the calls of other processes and calls them: the interface between a hub and its kind of sockets. Bytes written to
 * a socket arrive at the other end in order, or the socket closes.
 */
export interface Door {
  /** The address that others call; known once the door is open. */
  readonly address: string;
  /** Heartbeats, by which a silent caller is lost; undefined if the end of a process closes its sockets at once. */
  readonly heartbeat: Heartbeat | undefined;
  /**
   * Accepts calls from now on.
   * @param onCall - receives each call whose certificate, if one is required, is trusted. Call `admit` once its process is
   *   known; otherwise the door closes the call after a while, or earlier if too many wait
   */
  open(onCall: (socket: Socket, admit: () => void) => void): Promise<void>;
  /** Calls the process whose door has this address. Bytes written before it is connected wait. */
  call(address: string): Socket;
  /** Returns the error of a call that ended because one end did not trust the other; undefined for any other error. */
  distrustIn(error: Error): Error | undefined;
  /** Accepts no more calls, and closes those that were not admitted. */
  close(): void;
}

/** Timing of heartbeats, which distinguish a lost peer from a quiet one. */
export interface Heartbeat {
  /** Time between two heartbeats of each end. */
  readonly everyMs: number;
  /** A peer is lost this many times {@link everyMs} after its last heartbeat; time while this process is halted is left out. */
  readonly lostAfter: number;
}
