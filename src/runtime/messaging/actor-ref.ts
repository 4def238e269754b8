import type { Transferable } from "node:worker_threads";
import type { Address, Addressed } from "../protocol/address.ts";
import type { AskKind, In, Kind, Out } from "../protocol/messages.ts";
import type { Codec } from "../transport/codec.ts";

/** How a message is sent. */
export interface TellOptions {
  /** Parts of the message that change owner instead of being copied. */
  readonly transfer?: readonly Transferable[];
}

/** How a question is sent. */
export interface AskOptions extends TellOptions {
  /** How long an answer is waited for; the question is dropped unread when it is not taken up by then. */
  readonly deadlineMs: number;
}

/** What a ref needs of the actor that holds it. */
export interface Sender {
  tell(to: Address, kind: string, message: unknown, options: TellOptions | undefined): boolean;
  ask(to: Address, kind: string, message: unknown, options: AskOptions): Promise<unknown>;
  ready(to: Address): Promise<void>;
}

/**
 * A handle to an actor, bound to the actor that holds it. It can be put into any message and arrives as a
 * working ref of the receiver's.
 */
export class ActorRef<P> implements Addressed {
  readonly #sender: Sender;
  readonly #target: { readonly address: Address };

  /** Made by the runtime: `target.address` may change when a supervisor restarts the actor. */
  constructor(sender: Sender, target: { readonly address: Address }) {
    this.#sender = sender;
    this.#target = target;
  }

  /** Where it points now. */
  get address(): Address {
    return this.#target.address;
  }

  get name(): string {
    return this.address.name;
  }

  /** The same actor in its present incarnation only: once that has ended this is a ref to a dead actor, whoever follows it. */
  pinned(): ActorRef<P> {
    return new ActorRef(this.#sender, { address: this.address });
  }

  /**
   * Sends without awaiting an answer; a question's answer is dropped. The message belongs to the runtime from here on: do not change it.
   * @returns false when it waits for credit: `await ready()` before sending more
   * @throws {TroupeError} `OUTBOX_FULL` when far more wait than the window holds
   */
  tell<K extends Kind<P>>(kind: K, message: In<P, K>, options?: TellOptions): boolean {
    return this.#sender.tell(this.address, kind, message, options);
  }

  /**
   * Sends a question and resolves with its answer.
   * @throws {ActorDown} at once when the actor is or goes down
   * @throws {AskTimeout} when no answer came in time; the actor may still handle it
   * @throws {TroupeError} what the handler threw, with its code, or `ACTOR_THREW`
   */
  ask<K extends AskKind<P>>(kind: K, message: In<P, K>, options: AskOptions): Promise<Out<P, K>> {
    return this.#sender.ask(this.address, kind, message, options) as Promise<Out<P, K>>;
  }

  /** Resolves when a data message would go at once. */
  ready(): Promise<void> {
    return this.#sender.ready(this.address);
  }
}

/** Carries refs in messages: the address travels, the receiver's own ref is made of it. */
export function refCodec(holder: () => Sender): Codec {
  return {
    tag: "actor-ref",
    accepts: (value) => value instanceof ActorRef,
    encode: (value) => ({ ...(value as ActorRef<unknown>).address }),
    decode: (data) => new ActorRef(holder(), { address: data as Address }),
  };
}
