import type { Transferable } from "node:worker_threads";
import type { Down } from "./failure.ts";
import { type LaneIndex, laneIndex } from "./lane.ts";

/** The types of records, the units that packets are made of. */
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

/** Body of a `down` record: the actor that has ended, and whether it is the first of the siblings that the receiver watches. */
export interface EndNews {
  readonly uid: number;
  readonly down: Down;
  readonly isSibling: boolean;
}

/** Whether records of this type wait in the receiver's mailbox. */
export function isMessage(type: RecordType): boolean {
  return type <= RecordType.ask || type === RecordType.emit || type === RecordType.span;
}

/** Whether records of this type answer a question. */
export function isAnswer(type: RecordType): boolean {
  return type === RecordType.answer || type === RecordType.failure;
}

/** Whether records of this type are counted until the receiver has taken them. All records that carry an actor's data are. */
export function isCounted(type: RecordType): boolean {
  return isMessage(type) || isAnswer(type);
}

/** The trace of a message, the span that sent it (undefined at the root), and the time of sending. */
export type Trace = readonly [traceId: string, spanId: string | undefined, sentMs: number];

/** A record as it travels between two actors. */
export interface Envelope {
  readonly type: RecordType;
  /** Id by which an answer finds its question; 0 where there is none. */
  readonly id: number;
  readonly kind: string;
  /** On the process's clock; 0 where there is none. */
  readonly deadlineMs: number;
  readonly trace: Trace | undefined;
  readonly body: unknown;
}

/** A record to be sent, with the parts that are transferred instead of cloned. */
export interface Outgoing extends Envelope {
  readonly lane: LaneIndex;
  /** Whether a codec has encoded the body. */
  readonly isEncoded: boolean;
  readonly transfer?: readonly Transferable[] | undefined;
}

/** Defaults of the runtime's own records. */
export const blankRecord = {
  lane: laneIndex.control,
  isEncoded: false,
  id: 0,
  kind: "",
  deadlineMs: 0,
  trace: undefined,
  body: undefined,
} as const;
