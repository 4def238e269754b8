import type { DeadLetterReason } from "../inspection/dead-letters.ts";
import type { Failure } from "./failure.ts";
import type { ActorInspection } from "../inspection/inspection.ts";
import type { Span } from "../messaging/tracer.ts";

/** What the runtime reports through `onEvent`; a layer above gives it time and a place in its own events. */
export type RuntimeEvent =
  | { readonly kind: "actor.started"; readonly actor: string; readonly incarnation: number }
  | {
      readonly kind: "actor.failed";
      readonly actor: string;
      readonly incarnation: number;
      readonly cause: Failure;
    }
  | {
      readonly kind: "actor.restarted";
      readonly actor: string;
      readonly incarnation: number;
      readonly cause: Failure | undefined;
    }
  | {
      readonly kind: "actor.stopped";
      readonly actor: string;
      readonly incarnation: number;
      /** Whether it had to be ended without its consent. */
      readonly forced: boolean;
    }
  | {
      readonly kind: "actor.emitted";
      readonly actor: string;
      readonly incarnation: number;
      readonly event: unknown;
    }
  | ({ readonly kind: "actor.stalled" } & ActorInspection)
  | ({ readonly kind: "span.finished"; readonly actor: string; readonly incarnation: number } & Span)
  | {
      readonly kind: "message.undelivered";
      readonly reason: DeadLetterReason;
      readonly messageKind: string;
      readonly from: string;
      readonly to: string;
      readonly count: number;
    };
