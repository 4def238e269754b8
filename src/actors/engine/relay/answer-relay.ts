import { type ActorRef, fromFailure, toFailure } from "../../../runtime/index.ts";
import type { HostNode, Relay, Relayed, ShardProtocol } from "../../protocols/index.ts";

/** Whom those who pass something on know, by rank of the world. */
export interface KnownMembers {
  readonly ranks: readonly ActorRef<unknown>[];
  readonly shards: readonly ActorRef<ShardProtocol>[];
}

/** Who has answered what, by rank of the world. */
type Answers = Extract<Relayed, { readonly kind: "made" }>["answers"];

/** What any member is sent: of which protocol it is, is its sender's to know. */
type Anyone = ActorRef<Record<string, { in: object; out: unknown }>>;

/** What each that passes on waits longer than those below it: who is late is named by who waits for it alone. */
const PATIENCE_MS = 2_000;

/**
 * Passes something on to the ranks of a host, or its shards, and to the hosts below it: all of it is sent before this returns. Answers for
 * all of them once each has; what one of them fails with is its answer, not this shard's end.
 */
export async function answerRelay(relay: Relay, known: KnownMembers): Promise<Relayed> {
  try {
    return { kind: "made", answers: await sendDown(relay, known) };
  } catch (error) {
    return { kind: "failed", failure: toFailure(error) };
  }
}

/**
 * The same, for whom failures are news.
 * @throws what the first of them throws; `ACTOR_DOWN` where one is gone, or who passes it on
 */
export async function sendDown(relay: Relay, { ranks, shards }: KnownMembers): Promise<Answers> {
  const { host, to, kind, message, own, deadlineMs } = relay;
  const members = to === "ranks" ? ranks : shards;
  const below = host.below.map((node) => ({
    first: shards[node.ranks[0] as number] as ActorRef<ShardProtocol>,
    order: { ...relay, host: node },
  }));
  const here = host.ranks.map((rank) => ({
    rank,
    member: members[rank] as Anyone,
    order: own?.[rank] === undefined ? message : { ...message, ...own[rank] },
  }));
  if (deadlineMs === undefined) {
    for (const { first, order } of below) first.tell("relay", order);
    for (const { member, order } of here) member.tell(kind, order);
    return [];
  }
  const [far, near] = await Promise.all([
    Promise.all(
      below.map(async ({ first, order }) =>
        answersOf(
          await first.ask("relay", order, { deadlineMs: deadlineMs + PATIENCE_MS * heightOf(order.host) }),
        ),
      ),
    ),
    Promise.all(
      here.map(
        async ({ rank, member, order }) => [rank, await member.ask(kind, order, { deadlineMs })] as const,
      ),
    ),
  ]);
  return [...near, ...far.flat()];
}

function answersOf(relayed: Relayed): Answers {
  if (relayed.kind === "made") return relayed.answers;
  throw fromFailure(relayed.failure);
}

function heightOf({ below }: HostNode): number {
  return 1 + Math.max(0, ...below.map(heightOf));
}
