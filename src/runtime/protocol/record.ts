import type { Transferable } from "node:worker_threads";
import type { Down } from "./failure.ts";
import { type LaneIndex, laneIndex } from "./lane.ts";

/** What a record means. */
export const RecordType = {
  // between actors
  tell: 0,
  ask: 1,
  answer: 2,
  failure: 3,
  credit: 4,
  // from an actor to its system
  started: 5,
  failed: 6,
  stopped: 7,
  connect: 8,
  watch: 9,
  unwatch: 10,
  emit: 11,
  span: 12,
  undelivered: 13,
  watchSiblings: 19,
  // from the system to an actor
  link: 14,
  down: 15,
  stop: 16,
  childFailed: 17,
  probe: 18,
} as const;

/** A value of {@link RecordType}. */
export type RecordType = (typeof RecordType)[keyof typeof RecordType];

/** What a record `down` says: who has ended, and whether as the first of the receiver's siblings, where that one watches them. */
export interface EndNews {
  readonly uid: number;
  readonly down: Down;
  readonly isSibling: boolean;
}

/** Whether records of this type are messages of a lane, which wait in the receiver's mailbox. */
export function isMessage(type: RecordType): boolean {
  return type <= RecordType.ask || type === RecordType.emit || type === RecordType.span;
}

/** Whether records of this type carry what a handler answered. */
export function isAnswer(type: RecordType): boolean {
  return type === RecordType.answer || type === RecordType.failure;
}

/** Whether records of this type are counted until the receiver has taken them: all that carries an actor's data. */
export function isCounted(type: RecordType): boolean {
  return isMessage(type) || isAnswer(type);
}

/** The trace a message belongs to, the span that sent it, and when; no span at the root. */
export type Trace = readonly [traceId: string, spanId: string | undefined, sentMs: number];

/** What travels between two actors. */
export interface Envelope {
  readonly type: RecordType;
  /** Joins an answer to its question; 0 where there is none. */
  readonly id: number;
  readonly kind: string;
  /** On the process's clock; 0 where there is none. */
  readonly deadlineMs: number;
  readonly trace: Trace | undefined;
  readonly body: unknown;
}

/** A message on its way out, with what is to be transferred rather than cloned. */
export interface Outgoing extends Envelope {
  readonly lane: LaneIndex;
  /** Whether the body holds what a codec encoded. */
  readonly isEncoded: boolean;
  readonly transfer?: readonly Transferable[] | undefined;
}

/** What a record of the runtime's own has where nothing else is said. */
export const blankRecord = {
  lane: laneIndex.control,
  isEncoded: false,
  id: 0,
  kind: "",
  deadlineMs: 0,
  trace: undefined,
  body: undefined,
} as const;
