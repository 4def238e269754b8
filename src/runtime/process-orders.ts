import { Packr } from "msgpackr/pack";
import type { Address } from "./address.ts";
import type { Failure } from "./failure.ts";
import type { Packet } from "./packet.ts";
import type { RouteEnd } from "./routes.ts";
import type { MessagingSettings } from "./settings.ts";
import type { MemoryPlace } from "./shared-memory.ts";
import type { Part, ThreadOptions } from "./thread.ts";

/** What a process is born with. */
export interface ProcessBirth {
  readonly index: number;
  readonly folder: string;
  readonly token: string;
  readonly preloadUrl: string | undefined;
  readonly maxFrameBytes: number;
}

/** The environment variable in which a process finds its {@link ProcessBirth}. */
export const birthVariable = "TROUPE_PROCESS";

/** An actor to be started in another process. */
export interface HostedBoot extends ThreadOptions {
  readonly address: Omit<Address, "lanes">;
  readonly moduleUrl: string;
  /** Encoded by the system's codecs, and fit to have crossed the border. */
  readonly init: unknown;
  readonly settings: MessagingSettings;
  readonly systemRoute: RouteEnd;
  readonly board: MemoryPlace;
}

/** One of two actors that are joined, and how the other is known to it. */
export interface Joined {
  readonly uid: number;
  readonly peer: Address;
}

/** What the system has a process do; carried out in the order it is said. */
export type Order =
  /** Has a thread learn what an actor is going to need. */
  | { readonly kind: "rehearse"; readonly part: Part }
  | { readonly kind: "start"; readonly boot: HostedBoot }
  /** Joins two actors of the process. */
  | { readonly kind: "join"; readonly left: Joined; readonly right: Joined }
  /** Joins an actor of the process to one of another. */
  | { readonly kind: "route"; readonly joined: Joined; readonly end: RouteEnd }
  /** Hands an actor a packet of the system's own once nothing more can come over `route`. */
  | { readonly kind: "tellAfter"; readonly uid: number; readonly route: number; readonly packet: Packet }
  | { readonly kind: "terminate"; readonly uid: number }
  | { readonly kind: "lost"; readonly index: number }
  /** No actor lives in it any more. */
  | { readonly kind: "leave" };

/** What a process tells its system. */
export type News =
  | { readonly kind: "ready" }
  /** Of this actor nothing runs any more. */
  | { readonly kind: "exited"; readonly uid: number; readonly failure: Failure | undefined };

const packer = (): Packr => new Packr({ moreTypes: true } as never);

/** As bytes, for a hub to carry. */
export function packControl(said: Order | News): Uint8Array {
  return new Uint8Array(packer().pack(said));
}

/** The reverse of {@link packControl}. */
export function unpackControl<T extends Order | News>(bytes: Uint8Array): T {
  return packer().unpack(bytes) as T;
}
