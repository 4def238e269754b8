import type { ErrorReport } from "../error-report.ts";

/** The hosts of a run, where a launcher has started it on several. */
export type HostEvent = HostJoined | HostFailed | HostRefused;

/** Another host has joined the run, for the first time or in the place of one that was lost: it starts the ranks that live there. */
export interface HostJoined {
  readonly kind: "host.joined";
  /** Its rank among the processes that the launcher has started; the one that leads is 0. */
  readonly index: number;
  /** As its operating system calls it. */
  readonly name: string;
  /** Processors that it may use. */
  readonly numCores: number;
  /** Memory that it may use, in bytes. */
  readonly memoryBytes: number;
  /** Its devices beside these, by name; none: it computes on its processors. */
  readonly devices: readonly string[];
}

/** A host that no longer takes part. */
interface LostHost {
  readonly index: number;
  readonly name: string;
  readonly error: ErrorReport;
}

/** A host is down, or cut off: its ranks are started again on the hosts that are left. */
export interface HostFailed extends LostHost {
  readonly kind: "host.failed";
}

/** A host that the launcher has started ends, since the head refuses it, or it does not trust the head, or it cannot use its own files. */
export interface HostRefused extends LostHost {
  readonly kind: "host.refused";
}
