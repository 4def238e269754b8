import type { ResourceLimits } from "node:worker_threads";
import type { ModuleTexts } from "../module-texts.ts";

/** Where an actor runs: on a thread of its own in this process or another, or on the main thread. */
export type Placement = "thread" | "main" | "process";

/** Options of a worker thread. */
export interface ThreadOptions {
  readonly resourceLimits?: ResourceLimits | undefined;
  /** Sources of modules that it loads instead of their files, which may have changed. Default: none. */
  readonly modules?: ModuleTexts | undefined;
}

/** The role of an actor in the application. Every event about the actor carries it; the runtime does not use it. */
export interface ActorRole {
  /** Such as "rank". */
  readonly role?: string;
  /** Index among the actors with this role. */
  readonly index?: number;
}

/** An actor to start, without the value given to its `start`. */
export interface SpawnPlace extends ThreadOptions, ActorRole {
  /** Unique among living actors. */
  readonly name: string;
  /** The module whose default export is the actor. */
  readonly module: URL;
  /** "main" is for actors that only coordinate. Default: thread. */
  readonly placement?: Placement;
  /** Name of the process, with placement "process"; actors that name one share it, a thread each. Default: the actor's name. */
  readonly process?: string;
  /**
   * Number of the host of that process, 0 for the system's own. Default, and where that host is lost: as `HostsOptions.placeOf` says.
   */
  readonly host?: number;
  /**
   * Modules that it imports later; its warm standby (`Supervisor.prepareStandby`) loads them in advance, as does a restart while the
   * others of its group still end. Default: no standby, and its module is loaded once it starts.
   */
  readonly standbyModules?: readonly URL[];
  /** Deadline for loading and `start`, in ms, once its process has started. */
  readonly startDeadlineMs?: number;
}

/** An actor to spawn; `init` is given to its `start`. */
export type SpawnOptions<Init> = SpawnPlace &
  (undefined extends Init ? { readonly init?: Init } : { readonly init: Init });

/** How an actor is stopped. */
export interface StopOptions {
  readonly reason?: string;
  /** Makes it count as failed with this error instead of stopped: for an actor that is ended because it does not work. */
  readonly failure?: Error;
  /** Whether messages that have arrived are handled first. Default: true. */
  readonly drain?: boolean;
  /** After this time the actor is terminated, in ms. */
  readonly deadlineMs?: number;
}
