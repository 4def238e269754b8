import type { Lane } from "../protocol/lane.ts";
import type { In, Kind, Protocol } from "../protocol/messages.ts";
import type { ActorContext } from "./actor-context.ts";

type Later<T> = T | Promise<T>;

/** A stream is made by an async generator, or a plain one; it runs only as far as its reader asks. */
type HandlerResult<Shape> = Shape extends { readonly out: infer Answer }
  ? Later<Answer>
  : Shape extends { readonly stream: infer Item }
    ? Later<AsyncIterable<Item> | IterableIterator<Item>>
    : Later<void>;

/** One handler for each kind of `P`; a missing one does not compile. */
export type Handlers<P> = { readonly [K in keyof P]: (message: In<P, K>) => HandlerResult<P[K]> };

/** The reason why an actor is stopped, in words for people. */
export type StopReason = string;

/** The handlers of an actor, as `start` returns them. */
export interface Behavior<P> {
  readonly handlers: Handlers<P>;
  /** Called once, after the last message, when the actor is stopped in order; not after a failure. */
  stop?(reason: StopReason): Later<void>;
}

/** An actor as its module declares it. */
export interface ActorDefinition<P, Init> {
  /** Lanes of the kinds that are not `data`. */
  readonly lanes?: { readonly [K in Kind<P>]?: Lane };
  /** Kinds whose handlers may run while another handler awaits; "questions" for every kind, when it is asked. */
  readonly concurrent?: readonly Kind<P>[] | "questions";
  /** Makes the actor; `spawn` waits for its promise. */
  start(context: ActorContext<P>, init: Init): Later<Behavior<P>>;
}

/** Declares an actor. The result is the default export of the actor's own module. */
export function defineActor<P extends Protocol<P>, Init = undefined>(
  definition: ActorDefinition<P, Init>,
): ActorDefinition<P, Init> {
  return definition;
}
