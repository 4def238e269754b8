import { describe, expect, it } from "vitest";
import { answerRelay, type KnownMembers } from "../../src/actors/engine/relay/answer-relay.ts";
import { Broadcast } from "../../src/actors/engine/relay/broadcast.ts";
import type { RankGroup, Relay } from "../../src/actors/protocols/index.ts";
import { TroupeError } from "../../src/errors/index.ts";

/** A world of ranks and shards that note what they hear, in order, and pass on what they are asked to; `hosts` by rank. */
class World {
  /** Such as "rank 3: step 7". */
  readonly heard: string[] = [];
  /** How many messages went between one conductor or shard and another actor. */
  numMessages = 0;
  readonly all: Broadcast;
  /** A rank's failure, if one fails. */
  failure: { readonly rank: number; readonly error: Error } | undefined;

  constructor(hosts: readonly number[]) {
    const group = {
      ranks: hosts.map((_, rank) => this.#member("rank", rank)),
      shards: hosts.map((_, rank) => this.#member("shard", rank)),
    } as unknown as KnownMembers & RankGroup;
    this.#known = group;
    this.all = new Broadcast(group, hosts, 1_000);
  }

  readonly #known: KnownMembers;

  #member(what: string, rank: number) {
    const hear = async (kind: string, message: object) => {
      this.numMessages += 1;
      if (kind === "relay") return await answerRelay(message as Relay, this.#known);
      this.heard.push(`${what} ${rank}: ${kind} ${JSON.stringify(message)}`);
      if (what === "rank" && this.failure?.rank === rank) throw this.failure.error;
      return { from: `${what} ${rank}` };
    };
    return { ask: hear, tell: (kind: string, message: object) => void hear(kind, message) };
  }
}

const SPREAD = Array.from({ length: 160 }, (_, rank) => Math.floor(rank / 8));

describe("what the conductor says to all ranks of many hosts", () => {
  it("reaches each once, in the order in which it was said, and is answered in rank order", async () => {
    const world = new World(SPREAD);
    const asked = world.all.ask("ranks", "end", {});
    await world.all.tell("ranks", "train", { isLive: false });
    const answers = await asked;
    expect(answers).toEqual(SPREAD.map((_, rank) => ({ from: `rank ${rank}` })));
    for (const rank of SPREAD.keys()) {
      const own = world.heard.filter((line) => line.startsWith(`rank ${rank}:`));
      expect(own).toEqual([`rank ${rank}: end {}`, `rank ${rank}: train {"isLive":false}`]);
    }
    // Twice: to each rank by its host, to each host by the conductor or another.
    expect(world.numMessages).toBe(2 * (SPREAD.length + SPREAD.length / 8));
  });

  it("an order carries the part for one rank beside the part for all", async () => {
    const world = new World(SPREAD);
    const receivers = SPREAD.map((_, rank) => ({ checkpointer: rank as never }));
    await world.all.tell("shards", "snapshot", { step: 3, checkpointer: 0 as never }, receivers);
    expect([...world.heard].sort()).toEqual(
      SPREAD.map((_, rank) => `shard ${rank}: snapshot {"step":3,"checkpointer":${rank}}`).sort(),
    );
  });

  it("an order fails with the code and message of the one rank that failed, however deep in the tree", async () => {
    const world = new World(SPREAD);
    const message = { where: "rank-159", expected: "a loss", got: "none", hint: "return one" };
    world.failure = { rank: 159, error: new TroupeError("JOB_INVALID", message) };
    await expect(world.all.ask("ranks", "end", {})).rejects.toMatchObject({
      code: "JOB_INVALID",
      message: expect.stringContaining("[rank-159] expected a loss, got none"),
    });
  });

  it("goes straight to each where they live on one host", async () => {
    const world = new World([0, 0, 0]);
    await world.all.ask("ranks", "end", {});
    expect(world.numMessages).toBe(3);
  });
});
