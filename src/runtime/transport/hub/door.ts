import type { Socket } from "node:net";

/**
 * Where a process takes the calls of others, and how it calls them: the seam between a hub and what its sockets are.
 * Bytes written to a socket come out of the other end in order, or the socket closes.
 */
export interface Door {
  /** What others call it by: plain data, known once it is open. */
  readonly address: string;
  /** After so long without a sign a caller counts as lost; undefined where the end of a process closes its sockets at once. */
  readonly heartbeat: Heartbeat | undefined;
  /**
   * Takes calls from now on.
   * @param onCall - is given each call whose certificate, if any is asked for, is trusted; `admit` is to be called once its process is known, or the
   *   door hangs up after a while, and before that where too many wait
   */
  open(onCall: (socket: Socket, admit: () => void) => void): Promise<void>;
  /** Calls the process whose door has this address; what is written before it is answered waits. */
  call(address: string): Socket;
  /** @returns what the end of a call means where one end did not trust the other; undefined for any other end */
  distrustIn(error: Error): Error | undefined;
  /** Takes no more calls, and hangs up on those that were not admitted. */
  close(): void;
}

/** How a silent peer is told from a quiet one. */
export interface Heartbeat {
  /** Each end says something so often. */
  readonly everyMs: number;
  /** So many times that since the newest sign of a peer was sent, and it is lost; while this process stands still, no time passes. */
  readonly lostAfter: number;
}
