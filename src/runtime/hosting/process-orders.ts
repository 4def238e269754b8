import { isRecord } from "../../errors/index.ts";
import type { Address } from "../protocol/address.ts";
import type { Failure } from "../protocol/failure.ts";
import type { MessagingSettings } from "../protocol/settings.ts";
import type { ThreadOptions } from "../protocol/spawn.ts";
import type { RouteEnd } from "../transport/hub/routes.ts";
import type { Packet } from "../transport/packet.ts";
import type { MemoryPlace } from "../transport/shared-memory.ts";
import type { Network } from "../transport/tcp/tcp-door.ts";
import { type Checks, isCount, unpackControl } from "./packed-control.ts";
import type { Warmup } from "./thread.ts";

/** The data that a process for actors starts with. Plain data. */
export interface ProcessStart {
  readonly index: number;
  readonly folder: string;
  readonly token: string;
  readonly preloadUrl: string | undefined;
  readonly maxFrameBytes: number;
  /** Address of the door of the process that started it. */
  readonly systemAddress: string;
  /** How others reach it; undefined for a Unix socket in `folder`. */
  readonly network: Network | undefined;
}

/** The environment variable that holds a process's {@link ProcessStart}. */
export const startVariable = "TROUPE_PROCESS";

/** An actor to be started in another process. */
export interface HostedBoot extends ThreadOptions {
  readonly address: Omit<Address, "lanes">;
  readonly moduleUrl: string;
  /** Encoded by the system's codecs and for IPC. */
  readonly init: unknown;
  readonly settings: MessagingSettings;
  readonly systemRoute: RouteEnd;
  /** The place of its status board; undefined if processes share no memory, and its own reports a board by `boards`. */
  readonly board: MemoryPlace | undefined;
}

/** One of two linked actors, with the address of the other as it sees it. */
export interface Joined {
  readonly uid: number;
  readonly peer: Address;
}

/** An order of the system to a process; orders are carried out in sequence. */
export type Order =
  /** Starts a warm standby for an actor. */
  | { readonly kind: "prepareStandby"; readonly warmup: Warmup }
  | { readonly kind: "start"; readonly boot: HostedBoot }
  /** Links two actors of the process. */
  | { readonly kind: "join"; readonly left: Joined; readonly right: Joined }
  /** Links an actor of the process to one of another process. */
  | { readonly kind: "route"; readonly joined: Joined; readonly end: RouteEnd }
  /** Sends an actor a packet of the system's own once nothing more can arrive on `route`. */
  | { readonly kind: "tellAfter"; readonly uid: number; readonly route: number; readonly packet: Packet }
  | { readonly kind: "terminate"; readonly uid: number }
  /** Asks for the stack of an actor. */
  | { readonly kind: "stack"; readonly uid: number }
  | { readonly kind: "lost"; readonly index: number }
  /** Ends the process, in which no actor lives any more. */
  | { readonly kind: "leave" };

/** A message of a process to its system. */
export type News =
  | { readonly kind: "ready"; readonly address: string }
  /** Nothing of this actor runs any more. */
  | { readonly kind: "exited"; readonly uid: number; readonly failure: Failure | undefined }
  /** The stack of this actor; undefined if it cannot be read. */
  | { readonly kind: "stack"; readonly uid: number; readonly stack: string | undefined }
  /** The status boards of its actors as they were at `nowMs` of its own clock, by uid. */
  | { readonly kind: "boards"; readonly nowMs: number; readonly boards: readonly BoardCopy[] }
  /** Another process has sent it an invalid frame and was disconnected. */
  | { readonly kind: "corrupted"; readonly index: number; readonly failure: Failure };

/** An actor's status board. */
export type BoardCopy = readonly [uid: number, board: Uint8Array];

/** Unpacks an order of `packControl`. @throws {TroupeError} `FRAME_INVALID` if it is none: the hub disconnects the sender */
export function unpackOrder(bytes: Uint8Array): Order {
  return unpackControl(bytes, orders);
}

/** Unpacks a message to the system; errors as {@link unpackOrder}. */
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
