import type { ErrorReport } from "../error-report.ts";

/** Events of the hosts of a run that a launcher has started on several. */
export type HostEvent = HostJoined | HostFailed | HostRefused;

/** Another host has joined the run, for the first time or in place of a lost one; it starts its ranks. */
export interface HostJoined {
  readonly kind: "host.joined";
  /** Its rank among the processes that the launcher has started; 0 leads the run. */
  readonly index: number;
  /** Its name in its operating system. */
  readonly name: string;
  /** Processors that it may use. */
  readonly numCores: number;
  /** Memory that it may use, in bytes. */
  readonly memoryBytes: number;
  /** Its devices besides the processors, by name; empty: it computes on its processors. */
  readonly devices: readonly string[];
}

/** A host is down, or cut off: its ranks are restarted on the remaining hosts. */
interface LostHost {
  readonly index: number;
  readonly name: string;
  readonly error: ErrorReport;
}

/** A host that the launcher has started ends: the head refuses it, it does not trust the head, or it cannot use its own files. */
export interface HostFailed extends LostHost {
  readonly kind: "host.failed";
}

/** The error that it ends with. */
export interface HostRefused extends LostHost {
  readonly kind: "host.refused";
}
