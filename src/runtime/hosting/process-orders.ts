import type { Address } from "../protocol/address.ts";
import type { Failure } from "../protocol/failure.ts";
import type { MessagingSettings } from "../protocol/settings.ts";
import type { ThreadOptions } from "../protocol/spawn.ts";
import type { RouteEnd } from "../transport/hub/routes.ts";
import type { Packet } from "../transport/packet.ts";
import type { MemoryPlace } from "../transport/shared-memory.ts";
import type { Network } from "../transport/tcp/tcp-door.ts";
import { type Checks, isCount, isRecord, unpackControl } from "./packed-control.ts";
import type { Warmup } from "./thread.ts";

/** What a process is born with. */
export interface ProcessBirth {
  readonly index: number;
  readonly folder: string;
  readonly token: string;
  readonly preloadUrl: string | undefined;
  readonly maxFrameBytes: number;
  /** Of the door of the process that started it. */
  readonly systemAddress: string;
  /** How it is to be reached; by a Unix socket in `folder` unless said. */
  readonly network: Network | undefined;
}

/** The environment variable in which a process finds its {@link ProcessBirth}. */
export const birthVariable = "TROUPE_PROCESS";

/** An actor to be started in another process. */
export interface HostedBoot extends ThreadOptions {
  readonly address: Omit<Address, "lanes">;
  readonly moduleUrl: string;
  /** Encoded by the system's codecs, and for IPC. */
  readonly init: unknown;
  readonly settings: MessagingSettings;
  readonly systemRoute: RouteEnd;
  /** Where its status board lies; where the processes share no memory it has one of its own, which is told of by `boards`. */
  readonly board: MemoryPlace | undefined;
}

/** One of two actors that are joined, and how the other is known to it. */
export interface Joined {
  readonly uid: number;
  readonly peer: Address;
}

/** What the system has a process do; carried out in the order it is said. */
export type Order =
  /** Has a thread load what an actor is going to need. */
  | { readonly kind: "prepareStandby"; readonly warmup: Warmup }
  | { readonly kind: "start"; readonly boot: HostedBoot }
  /** Joins two actors of the process. */
  | { readonly kind: "join"; readonly left: Joined; readonly right: Joined }
  /** Joins an actor of the process to one of another. */
  | { readonly kind: "route"; readonly joined: Joined; readonly end: RouteEnd }
  /** Hands an actor a packet of the system's own once nothing more can come over `route`. */
  | { readonly kind: "tellAfter"; readonly uid: number; readonly route: number; readonly packet: Packet }
  | { readonly kind: "terminate"; readonly uid: number }
  /** Has it tell where an actor's code is that does not come back. */
  | { readonly kind: "stack"; readonly uid: number }
  | { readonly kind: "lost"; readonly index: number }
  /** No actor lives in it any more. */
  | { readonly kind: "leave" };

/** What a process tells its system. */
export type News =
  | { readonly kind: "ready"; readonly address: string }
  /** Of this actor nothing runs any more. */
  | { readonly kind: "exited"; readonly uid: number; readonly failure: Failure | undefined }
  /** Where this actor's code is; undefined where that cannot be seen. */
  | { readonly kind: "stack"; readonly uid: number; readonly stack: string | undefined }
  /** The status boards of its actors as they were at `nowMs` of its own clock, by uid. */
  | { readonly kind: "boards"; readonly nowMs: number; readonly boards: readonly BoardCopy[] }
  /** Another process has said to it what cannot be, and is heard no more. */
  | { readonly kind: "corrupted"; readonly index: number; readonly failure: Failure };

/** An actor's status board. */
export type BoardCopy = readonly [uid: number, board: Uint8Array];

/**
 * What was packed by `packControl`.
 * @throws {TroupeError} `FRAME_INVALID` for what is none: whoever says it is heard no more
 */
export function unpackOrder(bytes: Uint8Array): Order {
  return unpackControl(bytes, orders);
}

/** As {@link unpackOrder}, of what a process tells its system. */
export function unpackNews(bytes: Uint8Array): News {
  return unpackControl(bytes, news);
}

const orders: Checks<Order> = {
  prepareStandby: ({ warmup }) => isRecord(warmup),
  start: ({ boot }) => isRecord(boot) && isRecord(boot.address) && typeof boot.moduleUrl === "string",
  join: ({ left, right }) => isJoined(left) && isJoined(right),
  route: ({ joined, end }) => isJoined(joined) && isRecord(end),
  tellAfter: ({ uid, route, packet }) => isCount(uid) && isCount(route) && Array.isArray(packet),
  terminate: ({ uid }) => isCount(uid),
  stack: ({ uid }) => isCount(uid),
  lost: ({ index }) => isCount(index),
  leave: () => true,
};

const news: Checks<News> = {
  ready: ({ address }) => typeof address === "string",
  boards: ({ nowMs, boards }) => typeof nowMs === "number" && Array.isArray(boards) && boards.every(isBoard),
  exited: ({ uid, failure }) => isCount(uid) && (failure === undefined || isRecord(failure)),
  stack: ({ uid, stack }) => isCount(uid) && (stack === undefined || typeof stack === "string"),
  corrupted: ({ index, failure }) => isCount(index) && isRecord(failure),
};

function isJoined(joined: unknown): boolean {
  return isRecord(joined) && isCount(joined.uid) && isRecord(joined.peer);
}

function isBoard(copy: unknown): boolean {
  return Array.isArray(copy) && isCount(copy[0]) && copy[1] instanceof Uint8Array;
}
