export type { ActorContext, Received } from "./actor-context.ts";
export { ActorRef, type AskOptions, type StreamOptions, type TellOptions } from "./actor-ref.ts";
export { ActorSystem, type SpawnOptions, type SystemOptions } from "./actor-system.ts";
export type { Address, Addressed } from "./address.ts";
export type { Border } from "./border.ts";
export { type Clock, FakeClock, systemClock, type Timer } from "./clock.ts";
export type { Codec } from "./codec.ts";
export type { CollectiveLine } from "./collective-line.ts";
export { type DeadLetter, type DeadLetterReason, DeadLetters, deadLetterReasons } from "./dead-letters.ts";
export {
  ActorDown,
  AskTimeout,
  type Down,
  type Failure,
  firstCause,
  fromFailure,
  StopRequested,
  toFailure,
} from "./failure.ts";
export type { ActorInspection } from "./inspection.ts";
export type { ProcessSupport } from "./link-opener.ts";
export { makeOwnedFolder, removeOwnedFolder } from "./owned-folder.ts";
export type { Pending } from "./pending.ts";
export type { Placement } from "./placement.ts";
export {
  type ActorDefinition,
  type AskKind,
  type Behavior,
  defineActor,
  type Handlers,
  type In,
  type Item,
  type Kind,
  type Lane,
  type MessageShape,
  type Out,
  type Protocol,
  type StreamKind,
  type TellKind,
} from "./protocol.ts";
export { ReliableDelivery, type ReliableOptions, SeenKeys } from "./reliable-delivery.ts";
export type { Backoff, Restart, Strategy } from "./restart-policy.ts";
export type { RuntimeEvent } from "./runtime-event.ts";
export type { MessagingSettings } from "./settings.ts";
export type { SpawnPlace, StopOptions } from "./spawn-place.ts";
export type { Stash } from "./stash.ts";
export type { ActorState } from "./status-board.ts";
export type { ChildSpec, SiblingRefs } from "./supervised-child.ts";
export type { Supervisor } from "./supervisor.ts";
export type { GroupSpec, RestartReport, SupervisorOptions } from "./supervisor-options.ts";
export { checkTimeoutLadder, type Rung } from "./timeout-ladder.ts";
export type { Span } from "./tracer.ts";
export { quietOf, Watchdog, type WatchdogOptions } from "./watchdog.ts";
export type { OnDown } from "./watches.ts";
