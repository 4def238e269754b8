import type { ActorInspection } from "./actor-status.ts";
import type { DeadLetterReason } from "./dead-letter.ts";
import type { Failure } from "./failure.ts";
import type { ActorRole } from "./spawn.ts";

/** The handling of one message, as a trace viewer shows it. Times in ms of the machine's monotonic clock. */
export interface Span {
  readonly traceId: string;
  readonly spanId: string;
  /** The span that sent the message; undefined at the root of a trace. */
  readonly parentId: string | undefined;
  /** The sender, `name#incarnation`. */
  readonly from: string;
  readonly messageKind: string;
  /** Whether the handler awaited something, so that others could run meanwhile. */
  readonly awaited: boolean;
  readonly sentMs: number;
  /** When it reached the mailbox. */
  readonly receivedMs: number;
  readonly beginMs: number;
  readonly endMs: number;
}

/** The actor that an event is about. */
interface OfActor extends ActorRole {
  readonly actor: string;
  readonly incarnation: number;
}

/** An event that the runtime passes to `onEvent`. A layer above adds the time and makes it one of its own events. */
export type RuntimeEvent =
  | ({ readonly kind: "actor.started" } & OfActor)
  | ({ readonly kind: "actor.failed"; readonly cause: Failure } & OfActor)
  | ({ readonly kind: "actor.restarted"; readonly cause: Failure | undefined } & OfActor)
  | ({
      readonly kind: "actor.stopped";
      /** Whether it had to be terminated. */
      readonly forced: boolean;
    } & OfActor)
  | ({ readonly kind: "actor.emitted"; readonly event: unknown } & OfActor)
  | ({
      readonly kind: "actor.stalled";
      /** Whether it should make progress by the system's `isToProgress`; otherwise it only waits for a user's function. */
      readonly isToBlame: boolean;
      /** Whether this wait was not reported before. */
      readonly isNews: boolean;
    } & ActorInspection)
  | ({ readonly kind: "span.finished" } & OfActor & Span)
  | {
      readonly kind: "message.undelivered";
      readonly reason: DeadLetterReason;
      readonly messageKind: string;
      readonly from: string;
      readonly to: string;
      readonly count: number;
    };
