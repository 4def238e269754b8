export type { ActorContext, Received } from "./actor/actor-context.ts";
export { type ActorDefinition, type Behavior, defineActor, type Handlers } from "./actor/define-actor.ts";
export { ActorSystem, type PartOptions, type SystemOptions } from "./actor-system.ts";
export { type Clock, systemClock } from "./clock.ts";
export { HostAgent, type HostAgentOptions, type Invitation } from "./hosting/host-agent.ts";
export type { HostCard, HostMeans } from "./hosting/host-orders.ts";
export type { HostsOptions } from "./hosting/hosts.ts";
export { makeOwnedFolder, removeOwnedFolder } from "./hosting/owned-folder.ts";
export type { CollectiveLine } from "./inspection/collective-line.ts";
export type { DeadLetters } from "./inspection/dead-letters.ts";
export { ActorRef, type AskOptions, type StreamOptions, type TellOptions } from "./messaging/actor-ref.ts";
export type { Pending } from "./messaging/pending.ts";
export type { OnDown } from "./messaging/watches.ts";
export { Pool, type PoolOptions, type PoolPlan } from "./pool/pool.ts";
export type { Route } from "./pool/route.ts";
export type { ActorInspection, ActorState } from "./protocol/actor-status.ts";
export type { Address, Addressed } from "./protocol/address.ts";
export type { DeadLetter, DeadLetterReason } from "./protocol/dead-letter.ts";
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
export type { Lane } from "./protocol/lane.ts";
export type {
  AskKind,
  In,
  Item,
  Kind,
  MessageShape,
  Out,
  Protocol,
  StreamKind,
} from "./protocol/messages.ts";
export type { RuntimeEvent } from "./protocol/runtime-event.ts";
export type { MessagingSettings } from "./protocol/settings.ts";
export type { ActorRole, Placement, SpawnOptions, SpawnPlace, StopOptions } from "./protocol/spawn.ts";
export type { Backoff, Restart, Strategy } from "./supervision/restart-policy.ts";
export type { Supervisor } from "./supervision/supervisor.ts";
export type {
  ChildSpec,
  RestartReport,
  SiblingRefs,
  SupervisorOptions,
} from "./supervision/supervisor-options.ts";
export { checkTimeoutLadder, type Rung } from "./timeout-ladder.ts";
export type { Codec } from "./transport/codec.ts";
export type { MessageOrder } from "./transport/link.ts";
export type { ProcessSupport } from "./transport/link-opener.ts";
export type { Keys, Network } from "./transport/tcp/tcp-door.ts";
