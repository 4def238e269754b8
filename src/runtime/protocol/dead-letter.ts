/** The reasons why a message was not delivered. */
const deadLetterReasons = [
  "NoSuchActor",
  "Stopped",
  "Expired",
  "Overflow",
  "Undeserialisable",
  "WrongProtocol",
] as const;

/** One of {@link deadLetterReasons}. */
export type DeadLetterReason = (typeof deadLetterReasons)[number];

/** A message that was not delivered, or `count` of them. */
export interface DeadLetter {
  readonly reason: DeadLetterReason;
  readonly messageKind: string;
  readonly from: string;
  readonly to: string;
  readonly count: number;
}
