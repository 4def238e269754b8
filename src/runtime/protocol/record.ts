/** What a record means. */
export const RecordType = {
  // between actors
  tell: 0,
  ask: 1,
  openStream: 2,
  answer: 3,
  failure: 4,
  item: 5,
  endStream: 6,
  wantItems: 7,
  cancelStream: 8,
  credit: 9,
  // from an actor to its system
  started: 10,
  failed: 11,
  stopped: 12,
  connect: 13,
  watch: 14,
  emit: 15,
  span: 16,
  undelivered: 17,
  unwatch: 18,
  // from the system to an actor
  link: 19,
  down: 20,
  stop: 21,
  childFailed: 22,
  knock: 23,
} as const;

/** A value of {@link RecordType}. */
export type RecordType = (typeof RecordType)[keyof typeof RecordType];

/** Whether records of this type are messages of a lane, which wait in the receiver's mailbox. */
export function isMessage(type: RecordType): boolean {
  return type <= RecordType.openStream || type === RecordType.emit || type === RecordType.span;
}

/** Whether records of this type carry what a handler answered. */
export function isAnswer(type: RecordType): boolean {
  return type === RecordType.answer || type === RecordType.failure || type === RecordType.item;
}

/** Whether records of this type are kept in the books until the receiver has taken them: all that carries an actor's data. */
export function isCounted(type: RecordType): boolean {
  return isMessage(type) || isAnswer(type);
}

/** The trace a message belongs to, the span that sent it, and when; no span at the root. */
export type Trace = readonly [traceId: string, spanId: string | undefined, sentMs: number];

/** What travels between two actors. */
export interface Envelope {
  readonly type: RecordType;
  /** Joins an answer to its question, an item to its stream; 0 where there is none. */
  readonly id: number;
  readonly kind: string;
  /** On the process's clock; 0 where there is none. */
  readonly deadlineMs: number;
  readonly trace: Trace | undefined;
  readonly body: unknown;
}
