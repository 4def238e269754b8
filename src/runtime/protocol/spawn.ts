import type { ResourceLimits } from "node:worker_threads";
import type { ModuleTexts } from "../module-texts.ts";

/** Where an actor lives: on a thread of its own, here or in another process, or on the main thread beside the system. */
export type Placement = "thread" | "main" | "process";

/** How a thread is started. */
export interface ThreadOptions {
  readonly resourceLimits?: ResourceLimits | undefined;
  /** Modules that it loads from here, whatever has become of their files. None by default. */
  readonly modules?: ModuleTexts | undefined;
}

/** What an actor is to the application: told with all that the runtime tells of it, and nothing to the runtime. */
export interface ActorRole {
  /** Such as "rank". */
  readonly role?: string;
  /** Which of those that have this role. */
  readonly index?: number;
}

/** What to start, but for the value given to `start`. */
export interface SpawnPlace extends ThreadOptions, ActorRole {
  /** Unique among the living. */
  readonly name: string;
  /** The module whose default export is the actor. */
  readonly module: URL;
  /** A thread of its own, here or in another process, or the main thread for actors that only coordinate. */
  readonly placement?: Placement;
  /** With placement "process": which one; actors that name the same share it, a thread each. Its own name by default. */
  readonly process?: string;
  /** What else it comes to import: its warm standby, see `Supervisor.prepareStandby`, has loaded it by then. None without it. */
  readonly standbyModules?: readonly URL[];
  /** How long loading and `start` may take, once its process has started. */
  readonly startDeadlineMs?: number;
}

/** What to spawn; `init` is given to the actor's `start`. */
export type SpawnOptions<Init> = SpawnPlace &
  (undefined extends Init ? { readonly init?: Init } : { readonly init: Init });

/** How an actor is stopped. */
export interface StopOptions {
  readonly reason?: string;
  /** Has it count as failed by this from now on, and not as stopped: for one that is ended because it does not work. */
  readonly failure?: Error;
  /** Whether messages that have arrived are handled first; true unless said otherwise. */
  readonly drain?: boolean;
  /** After so long it is ended without its consent. */
  readonly deadlineMs?: number;
}
