import type { ActorEvent } from "./kinds/actor.ts";
import type { CheckpointEvent } from "./kinds/checkpoint.ts";
import type { DeliveryEvent } from "./kinds/delivery.ts";
import type { HostEvent } from "./kinds/host.ts";
import type { RunEvent } from "./kinds/run.ts";
import type { StepEvent } from "./kinds/step.ts";
import type { TracedEvent } from "./kinds/trace.ts";

/** Version of the format of events; raised when a field changes its meaning or is removed. */
export const schemaVersion = 2;

/** An event as it is reported. Plain data. */
export type TroupeEventBody =
  | ActorEvent
  | CheckpointEvent
  | DeliveryEvent
  | HostEvent
  | RunEvent
  | StepEvent
  | TracedEvent;

/** Fields that every event gets when it is emitted. */
export interface EventStamp {
  /** Name of the live model that it is of; left out for a run, and for a model without a name. */
  readonly model?: string;
  /** When it was emitted, in milliseconds since 1970. */
  readonly timeMs: number;
  readonly schemaVersion: typeof schemaVersion;
}

/**
 * Something that happened in a run: one shape for each `kind`, in the past tense, numbers with their units in their
 * names.
 */
export type TroupeEvent = TroupeEventBody & EventStamp;

/** The name of one kind of event. */
export type EventKind = TroupeEventBody["kind"];

/** The event of one kind. */
export type EventOf<Kind extends EventKind> = Extract<TroupeEventBody, { kind: Kind }> & EventStamp;
