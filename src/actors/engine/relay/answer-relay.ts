import { type ActorRef, fromFailure, toFailure } from "../../../runtime/index.ts";
import type { HostNode, Relay, Relayed, ShardProtocol } from "../../protocols/index.ts";

/** The receivers that a relay knows, by rank of the world. */
export interface KnownMembers {
  readonly ranks: readonly ActorRef<unknown>[];
  readonly shards: readonly ActorRef<ShardProtocol>[];
}

/** The answers, by rank of the world. */
type Answers = Extract<Relayed, { readonly kind: "made" }>["answers"];

/** Any member: the sender knows its protocol. */
type Anyone = ActorRef<Record<string, { in: object; out: unknown }>>;

/** Each relay waits this much longer than those below it: the direct relay of a late member names it. */
const PATIENCE_MS = 2_000;

/** Sends a message to a host's ranks or shards and the hosts below, before this returns. @returns all answers, or a failure */
export async function answerRelay(relay: Relay, known: KnownMembers): Promise<Relayed> {
  try {
    return { kind: "made", answers: await sendDown(relay, known) };
  } catch (error) {
    return { kind: "failed", failure: toFailure(error) };
  }
}

/**
 * Does the same, and throws failures.
 * @param onAnswer - receives each answer of this host's members as it comes
 * @throws the first receiver's error; `ACTOR_DOWN` if a receiver or a relay is gone
 */
export async function sendDown(
  relay: Relay,
  { ranks, shards }: KnownMembers,
  onAnswer: (answer: unknown) => void = () => {},
): Promise<Answers> {
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
      here.map(async ({ rank, member, order }) => {
        const answer = await member.ask(kind, order, { deadlineMs });
        onAnswer(answer);
        return [rank, answer] as const;
      }),
    ),
  ]);
  return [...near, ...far.flat()];
}

function answersOf(relayed: Relayed): Answers {
  if (relayed.kind === "made") return relayed.answers;
  throw fromFailure(relayed.failure);
}

const heightOf = ({ below }: HostNode): number => 1 + Math.max(0, ...below.map(heightOf));
