import { TroupeError } from "../../errors/index.ts";
import { ActorRef, type Sender } from "../messaging/actor-ref.ts";
import type { SpawnPlace, StopOptions } from "../protocol/spawn.ts";
import type { Supervisor } from "../supervision/supervisor.ts";
import type { ChildSpec, SupervisorOptions } from "../supervision/supervisor-options.ts";
import type { PoolInit } from "./pool-actor.ts";
import type { Route } from "./route.ts";

/** Options of a pool: of its actors, which are alike, and of the supervisor that starts them again. */
export interface PoolPlan
  extends Omit<SpawnPlace, "index" | "host">,
    Omit<SupervisorOptions, "name" | "strategy" | "children"> {
  /** Number of its actors. */
  readonly size: number;
  /** Default: round_robin. */
  readonly route?: Route;
  /** Numbers of the hosts that its actors live on, in turn; with placement "process". */
  readonly hosts?: readonly number[];
}

/** A {@link PoolPlan}, and the function that makes the value given to each actor's `start`, again for each incarnation. */
export type PoolOptions<Init> = PoolPlan &
  (undefined extends Init
    ? { readonly init?: (index: number) => Init }
    : { readonly init: (index: number) => Init });

/**
 * Actors that share their work behind one ref: each message goes to one of them. One that ends is started again; until then the
 * others have its share. A question that it had taken fails with `ACTOR_DOWN`.
 */
export class Pool<P> extends ActorRef<P> {
  readonly #supervisor: Supervisor;

  /** Made by `ActorSystem.pool`. */
  constructor(sender: Sender, router: ActorRef<P>, supervisor: Supervisor) {
    super(sender, router);
    this.#supervisor = supervisor;
  }

  /** Stops it: messages that have arrived are passed on and handled first. */
  stop(options: StopOptions = {}): Promise<void> {
    return this.#supervisor.stop(options);
  }
}

/**
 * Returns the supervisor's options for a pool: its actors start together, and the one that passes messages on comes last.
 * @param kindsOf - returns the kinds of messages that a living actor understands
 * @throws {TroupeError} `SUPERVISOR_OPTION`
 */
export function supervisionOf(
  options: PoolPlan & { readonly init?: (index: number) => unknown },
  kindsOf: (name: string) => readonly string[] | undefined,
): SupervisorOptions {
  const { name, size, route = "round_robin", hosts = [], init, role = name, ...rest } = options;
  if (!Number.isInteger(size) || size < 1)
    throw new TroupeError("SUPERVISOR_OPTION", {
      where: `pool ${name}`,
      expected: "size to be a whole number from 1",
      got: String(size),
      hint: "correct the option",
    });
  const members = Array.from({ length: size }, (_, index) => `${name}-${index}`);
  let kinds: readonly string[] | undefined;
  const router: ChildSpec = {
    name,
    role: "pool",
    module: new URL("./pool-actor.ts", import.meta.url),
    placement: "main",
    init(): PoolInit {
      kinds ??= members.map(kindsOf).find((known) => known !== undefined);
      const ofActors = kinds?.filter((kind) => !kind.startsWith("$")) ?? [];
      return { members, kinds: ofActors, route };
    },
  };
  const children = members.map((member, index): ChildSpec => {
    const host = hosts[index % hosts.length];
    const place = { ...rest, name: member, role, index, ...(host !== undefined && { host }) };
    return { ...place, init: () => init?.(index) };
  });
  return { ...rest, name, strategy: "one_for_one", children: [children, router] };
}
