import { once } from "node:events";
import { mkdtempSync, rmSync } from "node:fs";
import { type AddressInfo, connect, createServer } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { pipeline } from "node:stream";
import { afterAll, describe, expect, it, vi } from "vitest";
import {
  abortGroup,
  allToAll,
  type CommunicatorOptions,
  gatherSequence,
  keepStore,
  openCommunicator,
  reduceScatterSequence,
  Store,
} from "../../src/compute/collectives/index.ts";
import { nativeInfo, ones, ops, releaseRef, scope, shareRef } from "../../src/compute/tensor/index.ts";
import { patience } from "../fixtures/patience.ts";
import { Members, valuesOf } from "./members.ts";

const options: CommunicatorOptions = { backend: "local", name: "group", rank: 0, size: 1, deadlineMs: 200 };
const hasGloo = nativeInfo().gloo;
const folder = mkdtempSync(join(tmpdir(), "troupe-communicator-"));
afterAll(() => rmSync(folder, { recursive: true }));

describe("opening a communicator", () => {
  it.each([
    { rank: 1 },
    { rank: -1 },
    { size: 0 },
    { name: "" },
    { deadlineMs: 0 },
    { delayMs: -1 },
    { backend: "mpi" as never },
    { rendezvous: "nowhere" },
  ])("refuses %j", (wrong) => {
    expect(() => openCommunicator({ ...options, ...wrong })).toThrow(
      expect.objectContaining({ code: "COLLECTIVE_ARGUMENT" }),
    );
  });

  it("refuses a second member for a rank, and another size", () => {
    using first = openCommunicator({ ...options, name: "twice", size: 2 });
    expect(first.size).toBe(2);
    for (const wrong of [
      { rank: 0, size: 2 },
      { rank: 1, size: 3 },
    ])
      expect(() => openCommunicator({ ...options, name: "twice", ...wrong })).toThrow(
        expect.objectContaining({ code: "COLLECTIVE_ARGUMENT" }),
      );
  });

  it("takes a name again when all members have left", () => {
    for (let time = 0; time < 2; time++) {
      using alone = openCommunicator({ ...options, name: "again" });
      alone.barrier();
    }
  });

  it("refuses NCCL to a thread that computes on the host", () => {
    expect(() => openCommunicator({ ...options, backend: "nccl" })).toThrow(
      expect.objectContaining({ code: "NCCL_UNAVAILABLE" }),
    );
  });

  it.skipIf(!hasGloo)("refuses a second member for a rank in the rendezvous file", () => {
    const place = {
      ...options,
      backend: "gloo",
      rendezvous: join(folder, "twice"),
      deadlineMs: 5_000,
    } as const;
    using first = openCommunicator(place);
    expect(first.rank).toBe(0);
    expect(() => openCommunicator(place)).toThrow(expect.objectContaining({ code: "COLLECTIVE_ARGUMENT" }));
    expect(() => openCommunicator({ ...place, rank: 1, size: 2 })).toThrow(
      expect.objectContaining({ code: "COLLECTIVE_ARGUMENT" }),
    );
  });

  it.skipIf(!hasGloo)("names the ranks that do not connect within the deadline", () => {
    const lonely = { ...options, backend: "gloo", name: "lonely", size: 3, rank: 1 } as const;
    expect(() => openCommunicator(lonely)).toThrow(
      expect.objectContaining({ code: "COLLECTIVE_TIMEOUT", message: expect.stringContaining("rank 0, 2") }),
    );
  });

  it.skipIf(!hasGloo).each([undefined, join(folder, "looks")])(
    "looks around while it waits for others, and waits no longer where that throws: rendezvous %s",
    (rendezvous) => {
      let numLooks = 0;
      const look = () => {
        numLooks += 1;
        if (numLooks === 3) throw new RangeError("seen enough");
      };
      const place = { backend: "gloo", name: "looks", size: 2, deadlineMs: 60_000, look } as const;
      const join = () => openCommunicator({ ...options, ...place, ...(rendezvous && { rendezvous }) });
      expect(join).toThrow(new RangeError("seen enough"));
      expect(numLooks).toBe(3);
    },
  );

  /** Bytes that each connection has sent to a store, in the order of connecting. */
  async function askedOf(size: number, play: (members: Members, rendezvous: string) => Promise<unknown>) {
    const port = await freePort();
    using _kept = new Store({ host: "127.0.0.1", port, listens: true, timeoutMs: 5_000 });
    const asked: number[] = [];
    const between = createServer((member) => {
      const place = asked.push(0) - 1;
      member.on("data", (data) => {
        asked[place] = (asked[place] as number) + data.length;
      });
      pipeline(member, connect(port, "127.0.0.1"), member, () => {});
    });
    await once(between.listen(0, "127.0.0.1"), "listening");
    const members = new Members({ backend: "gloo", placement: "process" });
    await play(members, `store:127.0.0.1:${(between.address() as AddressInfo).port}`);
    await members.stop();
    between.close();
    expect(asked).toHaveLength(size);
    return asked;
  }

  it.skipIf(!hasGloo)("asks a store for as much, however many members there are", async () => {
    vi.stubEnv("GLOO_ENABLE_RANK_AS_SEQUENCE_NUMBER", "1");
    const asked = (size: number) =>
      askedOf(size, (members, rendezvous) => members.run("gatherRanks", size, { rendezvous }));
    const [few, many] = [await asked(3), await asked(6)];
    vi.unstubAllEnvs();
    // The last rank to join asks for more, and so does the last to be connected.
    expect(many.toSorted((a, b) => a - b).slice(0, 4)).toEqual(Array(4).fill(Math.min(...few)));
  });

  it.skipIf(!hasGloo)(
    "joins a second group by the connection of the first, which still is there",
    async () => {
      await askedOf(3, async (members, rendezvous) => {
        const ranks = [0, 1, 2];
        const outcomes = await members.run("gatherRanksTwice", 3, { rendezvous, argument: rendezvous });
        expect(valuesOf(outcomes)).toEqual(ranks.map(() => [ranks, ranks]));
      });
    },
  );

  it.skipIf(!hasGloo)("ends waits at once when its store ends", async () => {
    const kept = keepStore();
    const members = new Members({ backend: "gloo", placement: "process" });
    const { rendezvous } = kept;
    const come = ["gatherRanks", "gatherRanks"] as const;
    const { name, outcomes } = members.start(come, 3, { rendezvous, deadlineMs: 120_000 });
    await vi.waitFor(() => expect(kept.add(`${name}/members`, 0)).toBe(come.length), patience);
    kept[Symbol.dispose]();
    const aborted = {
      code: "COLLECTIVE_ABORTED",
      message: expect.stringContaining(`expected ${rendezvous} to stay until every rank has come`),
    };
    expect(await Promise.all(outcomes)).toMatchObject([aborted, aborted]);
    await members.stop();
  });

  it.skipIf(!hasGloo)("finds its members at a host and port", async () => {
    const members = new Members({ backend: "gloo", placement: "process" });
    const rendezvous = `127.0.0.1:${await freePort()}`;
    const { outcomes } = members.start("gatherRanks", 2, { rendezvous });
    expect(valuesOf(await Promise.all(outcomes))).toEqual([
      [0, 1],
      [0, 1],
    ]);
    await members.stop();
  });
});

describe("a communicator", () => {
  it("is of no use once closed", () => {
    const closed = openCommunicator({ ...options, name: "closed" });
    closed.close();
    closed.close();
    expect(() => closed.barrier()).toThrow(expect.objectContaining({ code: "COLLECTIVE_ARGUMENT" }));
  });

  it("writes no tensor that another thread reads", () => {
    using alone = openCommunicator({ ...options, name: "readers" });
    const x = ones([3]);
    const ref = shareRef(x);
    expect(() => alone.allReduce(x)).toThrow(expect.objectContaining({ code: "TENSOR_SHARED" }));
    releaseRef(ref);
    alone.allReduce(x).wait();
  });

  it("lets tensors without memory pass at once, with the shapes they would have", () => {
    using half = openCommunicator({ ...options, name: "meta", size: 2 });
    const { placeholder } = ops.troupe;
    scope(() => {
      const x = placeholder([4, 6], "float32").requiresGrad_();
      half.allReduce(placeholder([4], "float32")).wait();
      const shapes = [
        gatherSequence(x, half, 1),
        reduceScatterSequence(x, half, 0),
        allToAll(x, half, { output: [1, 2], input: [3, 1] }),
      ].map(({ shape }) => shape);
      expect(shapes).toEqual([
        [4, 12],
        [2, 6],
        [3, 6],
      ]);
      gatherSequence(x, half, 0).sum().backward();
      expect(x.grad?.shape).toEqual([4, 6]);
    });
  });

  it.each(hasGloo ? (["local", "gloo"] as const) : (["local"] as const))(
    "can be ended from a thread that waits for nothing (%s)",
    async (backend) => {
      const members = new Members({ backend, placement: "thread" });
      const { name, outcomes } = members.start(["barrierThenSum", "barrierThenSum"], 3);
      using third = openCommunicator({ ...options, backend, name, rank: 2, size: 3, deadlineMs: 20_000 });
      third.barrier();
      expect(abortGroup(name, "the third has had enough")).toBe(3);
      for (const outcome of await Promise.all(outcomes))
        expect(outcome).toMatchObject({
          code: "COLLECTIVE_ABORTED",
          message: expect.stringContaining("had enough"),
        });
      await members.stop();
    },
  );
});

async function freePort(): Promise<number> {
  const server = createServer().listen(0, "127.0.0.1");
  await once(server, "listening");
  const { port } = server.address() as AddressInfo;
  server.close();
  await once(server, "close");
  return port;
}
