import { isRecord } from "../../errors/index.ts";
import type { Failure } from "../protocol/failure.ts";
import { type Checks, isCount, unpackControl } from "./packed-control.ts";
import type { ProcessStart } from "./process-orders.ts";

/** First index of the hubs of hosts; the hubs of processes are numbered from 0. */
export const firstHostIndex = 2 ** 32;

/** An order of the head of a system to another host. */
export type HostOrder =
  /** Admits the host to the system. */
  | { readonly kind: "welcome" }
  /** Starts a process. Its host decides its folder and its network; the token is not sent. */
  | {
      readonly kind: "begin";
      readonly name: string;
      readonly start: Omit<ProcessStart, "folder" | "network" | "systemAddress" | "token">;
    }
  /** Kills a process. */
  | { readonly kind: "kill"; readonly index: number }
  /** Ends the host's processes and makes it leave. With `failure` the host was refused, or the system has failed. */
  | { readonly kind: "dismiss"; readonly failure: Failure | undefined };

/** A message of another host to the head of its system. */
export type HostNews =
  /** Asks to be admitted. */
  | ({ readonly kind: "host" } & HostCard)
  /** A process was started and has this id. */
  | { readonly kind: "begun"; readonly index: number; readonly pid: number }
  /** A process's connection has ended, with all its messages relayed. `failure` if something else than its end closed it. */
  | { readonly kind: "disconnected"; readonly index: number; readonly failure: Failure | undefined }
  /** A process has ended; `lastLines` are the last that it wrote. */
  | {
      readonly kind: "over";
      readonly index: number;
      readonly exitCode: number | null;
      readonly signalCode: string | null;
      readonly failure: Failure | undefined;
      readonly lastLines: string;
    }
  /** A signal asks the host to end. */
  | { readonly kind: "signal"; readonly signal: string };

/** The identity of a host. */
export interface HostCard {
  /** Its number among the hosts of the system; the head is 0. */
  readonly place: number;
  /** Name of the host, for people. */
  readonly name: string;
  /** A text that must be equal on all hosts of a system. */
  readonly about: string;
  /** Its resources. */
  readonly means: HostMeans;
  /** Whether another process of the same machine starts the actors there and this one only waits for the end. */
  readonly isCompanion: boolean;
}

/** The resources of a host for a run. Plain data. */
export interface HostMeans {
  /** Number of processors that it may use. */
  readonly numCores: number;
  /** Memory that it may use, in bytes. */
  readonly memoryBytes: number;
  /** Names of its devices other than the CPU. */
  readonly devices: readonly string[];
}

/** Unpacks an order. @throws {TroupeError} `FRAME_INVALID` if it is not one */
export function unpackHostOrder(bytes: Uint8Array): HostOrder {
  return unpackControl(bytes, orders);
}

/** Unpacks a message of a host. @throws {TroupeError} `FRAME_INVALID` if it is not one */
export function unpackHostNews(bytes: Uint8Array): HostNews {
  return unpackControl(bytes, news);
}

const orders: Checks<HostOrder> = {
  welcome: () => true,
  begin: ({ name, start }) => typeof name === "string" && isRecord(start) && isCount(start.index),
  kill: ({ index }) => isCount(index),
  dismiss: ({ failure }) => failure === undefined || isRecord(failure),
};

const news: Checks<HostNews> = {
  host: ({ place, name, about, means, isCompanion }) =>
    isCount(place) &&
    isMeans(means) &&
    typeof isCompanion === "boolean" &&
    [name, about].every((text) => typeof text === "string"),
  begun: ({ index, pid }) => isCount(index) && isCount(pid),
  disconnected: ({ index, failure }) => isCount(index) && (failure === undefined || isRecord(failure)),
  over: ({ index, failure, lastLines }) =>
    isCount(index) && (failure === undefined || isRecord(failure)) && typeof lastLines === "string",
  signal: ({ signal }) => typeof signal === "string",
};

function isMeans(value: unknown): boolean {
  if (!isRecord(value)) return false;
  const { numCores, memoryBytes, devices } = value;
  const areNames = Array.isArray(devices) && devices.every((name) => typeof name === "string");
  return isCount(numCores) && isCount(memoryBytes) && areNames;
}
