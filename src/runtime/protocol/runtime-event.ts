import type { ActorInspection } from "./actor-status.ts";
import type { DeadLetterReason } from "./dead-letter.ts";
import type { Failure } from "./failure.ts";
import type { ActorRole } from "./spawn.ts";

/** One message handled, as a trace viewer shows it. Times on the process's clock, which is the machine's. */
export interface Span {
  readonly traceId: string;
  readonly spanId: string;
  /** The span that sent the message; undefined at the root of a trace. */
  readonly parentId: string | undefined;
  /** Who sent it, `name#incarnation`. */
  readonly from: string;
  readonly messageKind: string;
  /** Whether the handler awaited something and let others be handled meanwhile. */
  readonly awaited: boolean;
  readonly sentMs: number;
  /** When it reached the mailbox. */
  readonly receivedMs: number;
  readonly beginMs: number;
  readonly endMs: number;
}

/** Whom an event is of. */
interface OfActor extends ActorRole {
  readonly actor: string;
  readonly incarnation: number;
}

/** What the runtime reports through `onEvent`; a layer above gives it time and a place in its own events. */
export type RuntimeEvent =
  | ({ readonly kind: "actor.started" } & OfActor)
  | ({ readonly kind: "actor.failed"; readonly cause: Failure } & OfActor)
  | ({ readonly kind: "actor.restarted"; readonly cause: Failure | undefined } & OfActor)
  | ({
      readonly kind: "actor.stopped";
      /** Whether it had to be ended without its consent. */
      readonly forced: boolean;
    } & OfActor)
  | ({ readonly kind: "actor.emitted"; readonly event: unknown } & OfActor)
  | ({
      readonly kind: "actor.stalled";
      /** Whether all others wait for it, by the system's `isToProgress`; else it only waits for a user's code. */
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
