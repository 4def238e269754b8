import { TroupeError } from "../../../errors/index.ts";
import type { ReachedActor } from "../../../job/index.ts";
import { type ActorContext, type ActorRef, type AskOptions, StopRequested } from "../../../runtime/index.ts";
import type { RankProtocol } from "../../protocols/index.ts";

/** Actors are looked for this long where no deadline is given. */
const FIND_MS = 30_000;

/** Actors are known by name to a user's code, which knows their protocol. */
type AnyProtocol = Record<string, { readonly in: unknown; readonly out: unknown }>;

/** The actors that a rank reaches by name. */
export class ReachedActors {
  readonly #context: ActorContext<RankProtocol>;
  readonly #refs = new Map<string, ActorRef<AnyProtocol>>();

  constructor(context: ActorContext<RankProtocol>) {
    this.#context = context;
  }

  /** Reaches the actor of this name, which is looked for when it is called first, and again once it has ended. */
  named(name: string): ReachedActor<AnyProtocol> {
    return {
      ask: (kind, message, options) =>
        this.#call(name, options, (ref) => {
          try {
            return this.#context.wait(this.#context.request(ref, kind, message, options));
          } catch (error) {
            throw ofUser(error, name, kind);
          }
        }),
      tell: (kind, message) => {
        this.#call(name, { deadlineMs: FIND_MS }, (ref) => ref.tell(kind, message));
      },
    };
  }

  #call<T>(name: string, { deadlineMs }: AskOptions, use: (ref: ActorRef<AnyProtocol>) => T): T {
    const context = this.#context;
    context.poll();
    let ref = this.#refs.get(name);
    if (ref === undefined || context.endOf(ref) !== undefined) {
      ref = context.wait(context.seek<AnyProtocol>(name, { deadlineMs }));
      this.#refs.set(name, ref);
    }
    return use(ref);
  }
}

/** Codes by which a run knows that one of its own actors has ended. */
export const ENDS: readonly string[] = ["ACTOR_DOWN", "COLLECTIVE_ABORTED", "STOP_REQUESTED"];

/** Renames the end of a user's actor: the run would wait for its own ranks to start again. */
function ofUser(error: unknown, name: string, kind: string): unknown {
  const isEnd = error instanceof TroupeError && ENDS.includes(error.code);
  if (!isEnd || error instanceof StopRequested) return error;
  const { cause } = error;
  return new TroupeError("ACTOR_LOST", {
    where: `rank.actor ${name}`,
    expected: `an answer to ${kind}`,
    got: `the end of ${error.fields.actor ?? name}${cause instanceof Error ? `: ${cause.message}` : ""}`,
    hint: "catch this error and ask again: the next question is for its next incarnation",
    fields: { actor: name, kind },
    cause: cause ?? error,
  });
}

/** Reaches no actor: a loss is computed outside of any run. */
export function reachNone(name: string): never {
  throw new TroupeError("ACTOR_UNKNOWN", {
    where: `rank.actor ${name}`,
    expected: "a run, whose runtime has actors",
    got: "a loss computed outside of any run",
    hint: "ask the actor in a loop",
  });
}
