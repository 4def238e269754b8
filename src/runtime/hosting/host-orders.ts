import type { Failure } from "../protocol/failure.ts";
import { type Checks, isCount, isRecord, unpackControl } from "./packed-control.ts";
import type { ProcessBirth } from "./process-orders.ts";

/** Hubs of processes are numbered from 0, those of hosts from here on. */
export const firstHostIndex = 2 ** 32;

/** What the head of a system has another host do. */
export type HostOrder =
  /** It belongs to the system from now on. */
  | { readonly kind: "welcome" }
  /** Starts a process. Its host decides where it runs, how it reaches the head and how it is reached; the token is not sent. */
  | {
      readonly kind: "begin";
      readonly name: string;
      readonly birth: Omit<ProcessBirth, "folder" | "network" | "systemAddress" | "token">;
    }
  /** Ends a process at once. */
  | { readonly kind: "kill"; readonly index: number }
  /** Ends what still runs, and leaves; with `failure` it was refused, or the system has failed. */
  | { readonly kind: "dismiss"; readonly failure: Failure | undefined };

/** What another host tells the head of its system. */
export type HostNews =
  /** It is there. */
  | ({ readonly kind: "host" } & HostCard)
  /** The operating system knows the process by this number. */
  | { readonly kind: "begun"; readonly index: number; readonly pid: number }
  /** The process can be heard no more, and all that it said was passed on; with why, where it is not its end that closed its call. */
  | { readonly kind: "unheard"; readonly index: number; readonly failure: Failure | undefined }
  /** The process has ended, and this is what it wrote last. */
  | {
      readonly kind: "over";
      readonly index: number;
      readonly exitCode: number | null;
      readonly signalCode: string | null;
      readonly failure: Failure | undefined;
      readonly lastLines: string;
    }
  /** A signal asks it to end. */
  | { readonly kind: "signal"; readonly signal: string };

/** Who a host is. */
export interface HostCard {
  /** Its number among the hosts of the system; the head is 0. */
  readonly place: number;
  /** As people call it. */
  readonly name: string;
  /** What all hosts of a system must agree on. */
  readonly about: string;
  /** What it has. */
  readonly means: HostMeans;
  /** Whether another process of the same machine starts what is to live there: this one waits for the end. */
  readonly isCompanion: boolean;
}

/** What a host has for a run: plain data. */
export interface HostMeans {
  /** Processors that it may use. */
  readonly numCores: number;
  /** Memory that it may use, in bytes. */
  readonly memoryBytes: number;
  /** Its devices beside these, by name. */
  readonly devices: readonly string[];
}

/** @throws {TroupeError} `FRAME_INVALID` for what is none */
export function unpackHostOrder(bytes: Uint8Array): HostOrder {
  return unpackControl(bytes, orders);
}

/** @throws {TroupeError} `FRAME_INVALID` for what is none */
export function unpackHostNews(bytes: Uint8Array): HostNews {
  return unpackControl(bytes, news);
}

const orders: Checks<HostOrder> = {
  welcome: () => true,
  begin: ({ name, birth }) => typeof name === "string" && isRecord(birth) && isCount(birth.index),
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
  unheard: ({ index, failure }) => isCount(index) && (failure === undefined || isRecord(failure)),
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
