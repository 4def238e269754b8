import type { ActorContext } from "../actor/actor-context.ts";
import type { ActorRef } from "../messaging/actor-ref.ts";
import { AskTimeout } from "../protocol/failure.ts";
import { type Route, Router } from "./route.ts";

/** The protocol of any actor. */
export type AnyProtocol = Record<string, { readonly in: unknown; readonly out: unknown }>;

/** A search for a member ends after this long, and begins again. */
const SEARCH_MS = 3_600_000;

interface Member {
  /** Its present incarnation; undefined while it is being started again. */
  ref: ActorRef<AnyProtocol> | undefined;
  numOpen: number;
}

/** The actors of a pool in their present incarnations, and the choice among them. */
export class Members {
  readonly #context: ActorContext<AnyProtocol>;
  readonly #members: readonly Member[];
  readonly #router: Router;
  #returned = Promise.withResolvers<void>();

  constructor(context: ActorContext<AnyProtocol>, names: readonly string[], route: Route) {
    this.#context = context;
    this.#router = new Router(context.name, route);
    this.#members = names.map((name) => {
      const member: Member = { ref: undefined, numOpen: 0 };
      void this.#follow(member, name);
      return member;
    });
  }

  /** Has one of them answer a question. @param leftMs - returns the time until the deadline, in ms */
  async ask(kind: string, message: unknown, leftMs: () => number): Promise<unknown> {
    const [member, ref] = this.#choose(message) ?? (await this.#await(message));
    member.numOpen += 1;
    try {
      return await ref.ask(kind, message, { deadlineMs: leftMs() });
    } finally {
      member.numOpen -= 1;
    }
  }

  /** Passes a message on; a promise while that has to wait. */
  tell(kind: string, message: unknown): Promise<void> | undefined {
    const chosen = this.#choose(message);
    if (chosen?.[1].tell(kind, message) === true) return undefined;
    return chosen === undefined ? this.#tellLater(kind, message) : chosen[1].ready();
  }

  async #tellLater(kind: string, message: unknown): Promise<void> {
    const [, ref] = await this.#await(message);
    ref.tell(kind, message);
  }

  #choose(message: unknown): [Member, ActorRef<AnyProtocol>] | undefined {
    const candidates = this.#members.map(({ ref, numOpen }) => ({ isLiving: ref !== undefined, numOpen }));
    const member = this.#members[this.#router.choose(message, candidates) ?? -1];
    return member?.ref === undefined ? undefined : [member, member.ref];
  }

  async #await(message: unknown): Promise<[Member, ActorRef<AnyProtocol>]> {
    for (;;) {
      await this.#returned.promise;
      const chosen = this.#choose(message);
      if (chosen !== undefined) return chosen;
    }
  }

  /** Keeps the ref of a member up to date through all its incarnations, until none is to come. */
  async #follow(member: Member, name: string): Promise<void> {
    for (;;) {
      const ref = await this.#find(name);
      if (ref === undefined) return;
      const ended = Promise.withResolvers<void>();
      this.#context.watch(ref, () => ended.resolve());
      member.ref = ref;
      this.#returned.resolve();
      this.#returned = Promise.withResolvers<void>();
      await ended.promise;
      member.ref = undefined;
    }
  }

  /** Returns a member's next incarnation; undefined if its supervisor starts no more, because the pool ends. */
  async #find(name: string): Promise<ActorRef<AnyProtocol> | undefined> {
    for (;;) {
      try {
        return await this.#context.find<AnyProtocol>(name, { deadlineMs: SEARCH_MS });
      } catch (error) {
        if (!(error instanceof AskTimeout)) return undefined;
      }
    }
  }
}
