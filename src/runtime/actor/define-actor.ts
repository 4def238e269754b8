import type { Lane } from "../protocol/lane.ts";
import type { In, Kind, Protocol } from "../protocol/messages.ts";
import type { ActorContext } from "./actor-context.ts";

type Later<T> = T | Promise<T>;

type HandlerResult<Shape> = Shape extends { readonly out: infer Answer } ? Later<Answer> : Later<void>;

/** One function for each kind of `P`; a forgotten one does not compile. */
export type Handlers<P> = { readonly [K in keyof P]: (message: In<P, K>) => HandlerResult<P[K]> };

/** Why an actor is being stopped, in words for people. */
export type StopReason = string;

/** What `start` gives back: the actor at work. */
export interface Behavior<P> {
  readonly handlers: Handlers<P>;
  /** Called once, after the last message, when the actor is stopped in order; not after a failure. */
  stop?(reason: StopReason): Later<void>;
}

/** An actor as its module declares it. */
export interface ActorDefinition<P, Init> {
  /** Lanes of the kinds that are not `data`. */
  readonly lanes?: { readonly [K in Kind<P>]?: Lane };
  /** Kinds whose handlers may run while another handler awaits. */
  readonly concurrent?: readonly Kind<P>[];
  /** Makes the actor; its promise resolving is what `spawn` waits for. */
  start(context: ActorContext<P>, init: Init): Later<Behavior<P>>;
}

/** Declares an actor; the default export of the actor's own module. */
export function defineActor<P extends Protocol<P>, Init = undefined>(
  definition: ActorDefinition<P, Init>,
): ActorDefinition<P, Init> {
  return definition;
}
