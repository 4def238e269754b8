import { mkdtempSync, rmSync } from "node:fs";
import { connect } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import fc from "fast-check";
import { afterAll, beforeAll, describe, expect, onTestFinished, test } from "vitest";
import type { Clock } from "../../src/runtime/clock.ts";
import { CreditCounters, creditCountersBytes } from "../../src/runtime/mailbox/credit-counters.ts";
import type { Credits } from "../../src/runtime/mailbox/credits.ts";
import { reportBytes } from "../../src/runtime/mailbox/reported-credits.ts";
import { blankRecord, RecordType } from "../../src/runtime/protocol/record.ts";
import { frameHeader } from "../../src/runtime/transport/frame.ts";
import type { Door } from "../../src/runtime/transport/hub/door.ts";
import { packGreeting } from "../../src/runtime/transport/hub/greeting.ts";
import { Hub } from "../../src/runtime/transport/hub/hub.ts";
import { creditsAt, openPipe } from "../../src/runtime/transport/hub/routes.ts";
import { IpcEncoding } from "../../src/runtime/transport/ipc-codec.ts";
import type { CreditsEnd, CreditsPlan, Link, Pipe } from "../../src/runtime/transport/link.ts";
import { LinkOpener } from "../../src/runtime/transport/link-opener.ts";
import { MemoryLink } from "../../src/runtime/transport/memory-link.ts";
import { PackedLink } from "../../src/runtime/transport/packed-link.ts";
import { type Packet, PacketWriter, readPacket } from "../../src/runtime/transport/packet.ts";
import { portLinkEnds } from "../../src/runtime/transport/port-link.ts";
import { Signal } from "../../src/runtime/transport/signal.ts";
import { TcpDoor } from "../../src/runtime/transport/tcp/tcp-door.ts";
import { socketPath, UnixDoor } from "../../src/runtime/transport/unix/unix-door.ts";

const opener = new LinkOpener(() => undefined);
const folder = mkdtempSync(join(tmpdir(), "troupe-test-"));
/** Two hubs of each way to reach another process. */
const hubs: Record<"unix" | "tcp", Hub[]> = { unix: [], tcp: [] };
let lastRoute = 0;

/** A hub that hears nothing. */
function openHub(index: number, door: Door, options: { onLost?: Lost } = {}): Promise<Hub> {
  const { onLost = () => {} } = options;
  return Hub.open({ index, door, token: "token", maxFrameBytes: 1 << 20, onControl: () => {}, onLost });
}

type Lost = (index: number, error: Error | undefined) => void;

beforeAll(async () => {
  for (const index of [0, 1]) {
    hubs.unix.push(await openHub(index, new UnixDoor(folder, index)));
    hubs.tcp.push(await openHub(index, new TcpDoor({ host: "127.0.0.1" })));
  }
});

afterAll(() => {
  for (const hub of [...hubs.unix, ...hubs.tcp]) hub.close();
  rmSync(folder, { recursive: true });
});

/** Two ends over real sockets, as the actors of two main threads would have them. */
function packedLinks(
  way: "unix" | "tcp",
  plan: CreditsPlan,
  open: (credits: CreditsEnd, side: 0 | 1) => Credits,
  clocks: readonly Pick<Clock, "now">[] = [],
): [Link, Link] {
  lastRoute += 1;
  const [left, right] = ([0, 1] as const).map((side) => {
    const peerAddress = (hubs[way][1 - side] as Hub).address;
    const end = { id: lastRoute, peer: 1 - side, peerAddress, side, credits: plan };
    const credits = creditsAt(end);
    const pipe = openPipe(hubs[way][side] as Hub, end, credits, new Signal());
    return new PackedLink(open(credits, side), pipe, new IpcEncoding(undefined), 1 << 20, clocks[side]);
  });
  return [left as Link, right as Link];
}

const makers: Record<string, () => [Link, Link]> = {
  "a link within a thread": () => MemoryLink.pair(true),
  "a link between threads": () =>
    portLinkEnds(new Signal(), new Signal()).map((end) => opener.open(end)) as [Link, Link],
  "a link between processes": () => {
    const counters = new SharedArrayBuffer(creditCountersBytes);
    return packedLinks(
      "unix",
      { path: "", byteOffset: 0 },
      (_credits, side) => new CreditCounters(counters, side),
    );
  },
  "a link between hosts": () =>
    packedLinks("tcp", { reportEvery: 3 }, (credits) => opener.credits(credits, 0)),
};

/** A packet with one message for each body. */
function packet(...bodies: unknown[]): Packet {
  const writer = new PacketWriter();
  for (const body of bodies) writer.append({ ...blankRecord, type: RecordType.tell, kind: "kind", body });
  return writer.take().packet;
}

/** The bodies in a packet. */
function bodiesOf(received: Packet | undefined): unknown[] {
  const bodies: unknown[] = [];
  readPacket(received ?? [], ({ body }) => bodies.push(body));
  return bodies;
}

describe.each(Object.keys(makers))("%s", (name) => {
  function makeLink(): [Link, Link] {
    const [left, right] = (makers[name] as () => [Link, Link])();
    onTestFinished(() => {
      left.close();
      right.close();
    });
    return [left, right];
  }

  /** Resolves with what `link` receives, once it is `count`. */
  function receive(link: Link, count: number): Promise<unknown[]> {
    return new Promise((resolve) => {
      const bodies: unknown[] = [];
      link.listen(
        (received) => {
          bodies.push(...bodiesOf(received));
          if (bodies.length === count) resolve(bodies);
        },
        () => {},
      );
    });
  }

  test("brings every packet, in order, both ways", async () => {
    const bodies = fc.array(fc.jsonValue(), { minLength: 1, maxLength: 50 });
    await fc.assert(
      fc.asyncProperty(bodies, bodies, async (eastward, westward) => {
        const [left, right] = (makers[name] as () => [Link, Link])();
        const arrivals = [receive(right, eastward.length), receive(left, westward.length)];
        for (const body of eastward) left.post(packet(body), [], false);
        for (const body of westward) right.post(packet(body), [], false);
        const [east, west] = await Promise.all(arrivals);
        left.close();
        right.close();
        expect(JSON.stringify(east)).toBe(JSON.stringify(eastward));
        expect(JSON.stringify(west)).toBe(JSON.stringify(westward));
      }),
      { numRuns: 20, seed: 3 },
    );
  });

  test("lets the receiver poll instead, and holds what came before anyone listened", async () => {
    const [left, right] = makeLink();
    left.post(packet("first"), [], false);
    left.post(packet("second"), [], false);
    let first = right.poll();
    // Packets between processes take a moment.
    while (first === undefined) {
      await new Promise(setImmediate);
      first = right.poll();
    }
    expect(bodiesOf(first)).toEqual(["first"]);
    expect(await receive(right, 1)).toEqual(["second"]);
    expect(right.poll()).toBeUndefined();
  });

  test("refuses a packet that cannot be copied, and nothing of it arrives", async () => {
    const [left, right] = makeLink();
    const arrival = receive(right, 1);
    expect(() =>
      left.post(
        packet("good", () => {}),
        [],
        false,
      ),
    ).toThrow(/could not be cloned/);
    left.post(packet("after"), [], false);
    expect(await arrival).toEqual(["after"]);
  });

  test.runIf(name !== "a link within a thread")(
    "refuses a packet with a buffer that cannot change owner: nothing of it arrives, and no other buffer is lost",
    async () => {
      const [left, right] = makeLink();
      const arrival = receive(right, 1);
      const kept = new ArrayBuffer(8);
      const pooled = Buffer.from("pooled").buffer as ArrayBuffer;
      for (const other of [pooled, kept])
        expect(() => left.post(packet("refused"), [kept, other], false)).toThrow();
      expect(kept.detached).toBe(false);
      left.post(packet("after"), [kept], false);
      expect(kept.detached).toBe(true);
      expect(await arrival).toEqual(["after"]);
    },
  );

  const sharesMemory = name !== "a link between hosts";
  test.runIf(sharesMemory)("keeps one set of credit counters for both ends", () => {
    const [left, right] = makeLink();
    for (let count = 0; count < 3; count++) right.credits.take(1);
    left.credits.take(2);
    expect([left.credits.takenByPeer(0), left.credits.takenByPeer(1), left.credits.takenByPeer(2)]).toEqual([
      0, 3, 0,
    ]);
    expect(right.credits.takenByPeer(2)).toBe(1);
    left.credits.askForCredit(1, 5);
    expect([
      right.credits.take(1),
      right.credits.take(2),
      right.credits.take(1),
      right.credits.take(1),
    ]).toEqual([false, false, true, false]);
  });

  test.runIf(!sharesMemory)(
    "brings what its ends have taken, with each packet and after its end",
    async () => {
      const [left, right] = makeLink();
      const taken = [1, 1, 2, 1, 1].map((lane) => right.credits.take(lane as 1 | 2));
      expect(taken).toEqual([false, false, false, true, false]);
      const arrival = receive(left, 1);
      right.post(packet("answer"), [], false);
      await arrival;
      expect([0, 1, 2].map((lane) => left.credits.takenByPeer(lane as 0 | 1 | 2))).toEqual([0, 4, 1]);
      right.credits.take(0);
      right.close();
      while (left.credits.takenByPeer(0) === 0) await new Promise(setImmediate);
      expect(left.credits.takenByPeer(0)).toBe(1);
    },
  );

  test("brings what was posted before its end closed, and nothing after", async () => {
    const [left, right] = makeLink();
    const arrival = receive(right, 1);
    left.post(packet("last words"), [], false);
    left.close();
    expect(await arrival).toEqual(["last words"]);
    expect(() => left.post(packet("too late"), [], false)).not.toThrow();
    expect(right.poll()).toBeUndefined();
  });
});

test.each([
  ["what cannot be a frame", frameHeader(1 << 30, 5, 0, 1), { sizeBytes: 1 << 30 }],
  ["a frame twice", frameHeader(0, 5, 0, 0), { expected: 1, sequence: 0 }],
  ["a frame after one that was lost", frameHeader(0, 5, 0, 2), { expected: 1, sequence: 2 }],
])("a process that says %s is given up, with the reason", async (_what, said, fields) => {
  const lost = Promise.withResolvers<[number, Error | undefined]>();
  const onLost: Lost = (index, error) => lost.resolve([index, error]);
  const door = new UnixDoor(folder, 7);
  const hub = await openHub(7, door, { onLost });
  const greeting = packGreeting({ index: 3, address: "nowhere" }, door.address, "token");
  const call = connect(socketPath(folder, 7));
  call.write(Buffer.concat([frameHeader(greeting.length, 0, 0, 0), greeting, said]));
  const [index, error] = await lost.promise;
  hub.close();
  expect(index).toBe(3);
  expect(error).toMatchObject({ code: "FRAME_INVALID", fields });
});

test("hosts whose clocks do not agree read a question's deadline and its time of sending on their own", async () => {
  const nowMs = { east: 5, west: 5 + 1e9 };
  const clocks = [{ now: () => nowMs.east }, { now: () => nowMs.west }];
  const open = (credits: CreditsEnd) => opener.credits(credits, 0);
  const ends = packedLinks("tcp", { reportEvery: 3 }, open, clocks);
  onTestFinished(() => {
    for (const end of ends) end.close();
  });
  const sent = [
    { id: 1, deadlineMs: 1005, trace: ["trace", "span", 4] },
    { id: 2, deadlineMs: 0, trace: undefined },
  ] as const;
  const times = ([left, right]: readonly Link[]): Promise<unknown[]> => {
    const writer = new PacketWriter();
    for (const each of sent) writer.append({ ...blankRecord, ...each, type: RecordType.ask });
    left?.post(writer.take().packet, [], false);
    return new Promise((resolve) => {
      const read: unknown[] = [];
      const receive = (received: Packet) => {
        readPacket(received, ({ id, deadlineMs, trace }) => read.push({ id, deadlineMs, trace }));
        resolve(read);
      };
      right?.listen(receive, () => {});
    });
  };
  expect(await times(ends)).toEqual([
    { id: 1, deadlineMs: 1e9 + 1005, trace: ["trace", "span", 1e9 + 4] },
    { id: 2, deadlineMs: 0, trace: undefined },
  ]);
  expect(await times(ends.toReversed())).toEqual([
    { id: 1, deadlineMs: -1e9 + 1005, trace: ["trace", "span", -1e9 + 4] },
    { id: 2, deadlineMs: 0, trace: undefined },
  ]);
  // A packet that waits has no longer for that, but for what the clocks may have drifted apart.
  nowMs.west += 400;
  expect(await times(ends)).toMatchObject([{ deadlineMs: 1e9 + 1005 + 0.4 }, { deadlineMs: 0 }]);
});

test("between threads goes with each packet how far its sender is, and is heard before the packet is read", async () => {
  const log: unknown[] = [];
  let place = 7;
  const order = { outgoing: () => place, incoming: (heard: number) => log.push(heard) };
  const ordered = new LinkOpener(
    () => undefined,
    () => order,
  );
  const [left, right] = portLinkEnds(new Signal(), new Signal()).map((end) => ordered.open(end)) as [
    Link,
    Link,
  ];
  onTestFinished(() => {
    left.close();
    right.close();
  });
  left.post(packet("polled"), [], false);
  log.push(...bodiesOf(right.poll()));
  place = 0;
  left.post(packet("of nowhere"), [], false);
  log.push(...bodiesOf(right.poll()));
  place = 8;
  left.post(packet("listened to"), [], false);
  await new Promise<void>((resolve) => {
    right.listen(
      (received) => {
        log.push(...bodiesOf(received));
        resolve();
      },
      () => {},
    );
  });
  expect(log).toEqual([7, "polled", "of nowhere", 8, "listened to"]);
});

test("a packet gives back every record as it was written, in order", () => {
  const record = fc.record({
    type: fc.constantFrom(RecordType.tell, RecordType.ask, RecordType.emit, RecordType.answer),
    lane: fc.constantFrom(0 as const, 1 as const, 2 as const),
    isEncoded: fc.boolean(),
    id: fc.constantFrom(0, 0, 7, -3),
    kind: fc.constantFrom("a", "b"),
    deadlineMs: fc.constantFrom(0, 0, 1.5),
    trace: fc.constantFrom(undefined, undefined, ["trace", "span", 2.5] as const),
    body: fc.jsonValue(),
  });
  fc.assert(
    fc.property(fc.array(record, { maxLength: 40 }), (records) => {
      const writer = new PacketWriter();
      for (const each of records) writer.append(each);
      const read: unknown[] = [];
      readPacket(structuredClone(writer.take().packet), (each) => read.push(each));
      expect(JSON.stringify(read)).toBe(JSON.stringify(structuredClone(records)));
      expect(writer.isEmpty).toBe(true);
    }),
    { seed: 9 },
  );
});

test("a packet between hosts keeps to the size limit with the report before it", () => {
  const maxBytes = 1_000;
  const sizes: number[] = [];
  const pipe: Pipe = {
    send: (parcel) => sizes.push("bytes" in parcel ? parcel.bytes.length : 0),
    listen() {},
    poll: () => undefined,
    close() {},
  };
  const credits = opener.credits({ reportEvery: 3, taken: new SharedArrayBuffer(reportBytes) }, 0);
  const encoding = new IpcEncoding(undefined);
  const link = new PackedLink(credits, pipe, encoding, maxBytes);
  const grow = (): void => {
    for (let size = 0; ; size++) link.post(packet("a".repeat(size)), [], false);
  };
  expect(grow).toThrow("a packet of at most 1000 bytes: it has 1001");
  expect(Math.max(...sizes)).toBe(maxBytes);
});

test("two ends in one thread that answer each other for ever leave the event loop its turns", async () => {
  const most = 100_000;
  let numSent = 0;
  const ends: [Link, Link] = MemoryLink.pair(true);
  onTestFinished(() => {
    for (const end of ends) end.close();
  });
  const answer = (end: Link) => {
    numSent += 1;
    if (numSent < most) end.post(packet("again"), [], false);
  };
  for (const end of ends)
    end.listen(
      () => answer(end),
      () => {},
    );
  answer(ends[0]);
  await new Promise(setImmediate);
  expect(numSent).toBeLessThan(most);
});
