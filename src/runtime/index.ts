export type { ActorContext, Received } from "./actor/actor-context.ts";
export { ActorRef, type AskOptions, type TellOptions } from "./messaging/actor-ref.ts";
export { ActorSystem, type SpawnOptions, type SystemOptions } from "./actor-system.ts";
export type { Address, Addressed } from "./protocol/address.ts";
export type { Border } from "./transport/border.ts";
export { type Clock, FakeClock, systemClock, type Timer } from "./clock.ts";
export type { Codec } from "./transport/codec.ts";
export type { CollectiveLine } from "./inspection/collective-line.ts";
export {
  type DeadLetter,
  type DeadLetterReason,
  DeadLetters,
  deadLetterReasons,
} from "./inspection/dead-letters.ts";
export {
  ActorDown,
  AskTimeout,
  type Down,
  type Failure,
  firstCause,
  fromFailure,
  StopRequested,
  toFailure,
} from "./protocol/failure.ts";
export type { ActorInspection } from "./inspection/inspection.ts";
export type { ProcessSupport } from "./transport/link-opener.ts";
export { makeOwnedFolder, removeOwnedFolder } from "./hosting/owned-folder.ts";
export type { Pending } from "./messaging/pending.ts";
export type { Placement } from "./hosting/placement.ts";
export {
  type ActorDefinition,
  type AskKind,
  type Behavior,
  defineActor,
  type Handlers,
  type In,
  type Kind,
  type Lane,
  type MessageShape,
  type Out,
  type Protocol,
} from "./actor/protocol.ts";
export type { Backoff, Restart, Strategy } from "./supervision/restart-policy.ts";
export type { RuntimeEvent } from "./protocol/runtime-event.ts";
export type { MessagingSettings } from "./protocol/settings.ts";
export type { SpawnPlace, StopOptions } from "./protocol/spawn-place.ts";
export type { ActorState } from "./inspection/status-board.ts";
export type { ChildSpec, SiblingRefs } from "./supervision/supervised-child.ts";
export type { Supervisor } from "./supervision/supervisor.ts";
export type { RestartReport, SupervisorOptions } from "./supervision/supervisor-options.ts";
export { checkTimeoutLadder, type Rung } from "./timeout-ladder.ts";
export type { Span } from "./messaging/tracer.ts";
export { quietOf, Watchdog, type WatchdogOptions } from "./inspection/watchdog.ts";
export type { OnDown } from "./messaging/watches.ts";
