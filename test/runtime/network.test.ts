import { once } from "node:events";
import { mkdtempSync, readFileSync, rmSync } from "node:fs";
import { connect, type Socket } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { connect as connectTls } from "node:tls";
import { expect, onTestFinished, test } from "vitest";
import type { Keys, Network } from "../../src/runtime/index.ts";
import { frameFlag, frameHeader } from "../../src/runtime/transport/frame.ts";
import { packGreeting } from "../../src/runtime/transport/hub/greeting.ts";
import { Hub } from "../../src/runtime/transport/hub/hub.ts";
import { TcpDoor } from "../../src/runtime/transport/tcp/tcp-door.ts";
import { makeCertificate } from "../fixtures/certificates.ts";
import type { EchoProtocol } from "./actors/echo.ts";
import type { MortalProtocol } from "./actors/mortal.ts";
import { actorModule, startSystem } from "./start-system.ts";

const deadlineMs = 60_000;
const host = "127.0.0.1";

/** One of several hubs, and what it hears. */
interface Heard {
  readonly hub: Hub;
  readonly said: string[];
  readonly lost: Map<number, PromiseWithResolvers<Error | undefined>>;
  untilLost(index: number): Promise<Error | undefined>;
}

async function openHub(index: number, network: Partial<Network> = {}, token = "token"): Promise<Heard> {
  const said: string[] = [];
  const lost: Heard["lost"] = new Map();
  const ofIndex = (other: number) => {
    const known = lost.get(other) ?? Promise.withResolvers<Error | undefined>();
    lost.set(other, known);
    return known;
  };
  const hub = await Hub.open({
    index,
    door: new TcpDoor({ host, ...network }),
    token,
    maxFrameBytes: 1 << 20,
    onControl: (from, bytes) => said.push(`${from}: ${Buffer.from(bytes)}`),
    onLost: (other, error) => ofIndex(other).resolve(error),
  });
  onTestFinished(() => hub.close());
  return { hub, said, lost, untilLost: (other) => ofIndex(other).promise };
}

/** A connection to the hub of a peer that writes anything. */
function callUnauthenticated({ hub }: Heard): Socket {
  const [, port] = JSON.parse(hub.address) as [string, number];
  const call = connect({ host, port });
  call.on("error", () => {});
  call.resume();
  onTestFinished(() => void call.destroy());
  return call;
}

/** The first frame of a process to the hub. */
function greeting({ hub }: Heard, index: number, token = "token"): Buffer {
  const text = packGreeting({ index, address: "nowhere" }, hub.address, token);
  return Buffer.concat([frameHeader(text.length, 0, 0, 0), text]);
}

async function until(isSo: () => boolean): Promise<void> {
  while (!isSo()) await new Promise(setImmediate);
}

/** Has `from` say something to `to`, and waits for it. */
async function say(from: Heard, to: Heard, text: string): Promise<void> {
  from.hub.know(to.hub.index, to.hub.address);
  from.hub.control(to.hub.index, new TextEncoder().encode(text));
  await until(() => to.said.includes(`${from.hub.index}: ${text}`));
}

test("unauthenticated peers who guess, shout or say nothing are shown the door, however many, and those who belong here are served", async () => {
  const [here, other] = [await openHub(0), await openHub(1)];
  const silent = Array.from({ length: 200 }, () => callUnauthenticated(here));
  // All but the last 64 of those who say nothing.
  const shownOut = silent.slice(0, 136).filter(({ closed }) => !closed);
  await Promise.all(shownOut.map((call) => once(call, "close")));
  for (const said of [
    greeting(here, 7, "guessed"),
    frameHeader(2_000, 0, 0, 0),
    Buffer.from("GET / HTTP/1.1\r\n\r\n"),
  ]) {
    const call = callUnauthenticated(here);
    call.write(said);
    await once(call, "close");
  }
  await say(other, here, "still served");
  expect(here.lost.size).toBe(0);
});

test("a connection that broke is a death: its process is not taken back", async () => {
  const here = await openHub(0);
  const first = callUnauthenticated(here);
  first.write(Buffer.concat([greeting(here, 3), frameHeader(3, 0, 0, 1), Buffer.from("one")]));
  await until(() => here.said.length > 0);
  first.destroy();
  expect(await here.untilLost(3)).toBeUndefined();
  const again = callUnauthenticated(here);
  again.write(Buffer.concat([greeting(here, 3), frameHeader(3, 0, 0, 1), Buffer.from("two")]));
  await once(again, "close");
  expect(here.said).toEqual(["3: one"]);
});

test("a host without heartbeats is reported lost by name, and one that sends nothing else is not", async () => {
  const heartbeat = { everyMs: 20, lostAfter: 25 };
  const [here, quiet] = [await openHub(0, { heartbeat }), await openHub(1, { heartbeat })];
  await say(quiet, here, "nothing more for now");
  callUnauthenticated(here).write(greeting(here, 3));
  expect(await here.untilLost(3)).toMatchObject({ code: "PEER_SILENT" });
  expect(here.lost.has(1)).toBe(false);
  await say(quiet, here, "here I am");
});

test("a host whose heartbeats arrive ever later is lost, unless its own data delays them", async () => {
  const heartbeat = { everyMs: 20, lostAfter: 25 };
  const here = await openHub(0, { heartbeat });
  const { beat } = frameFlag;
  const old = new Uint8Array(new Float64Array([1_000]).buffer);
  const speakAs = (index: number) => {
    const call = callUnauthenticated(here);
    call.write(greeting(here, index));
    let sequence = 1;
    return (bytes: Uint8Array, flags: number) =>
      call.write(Buffer.concat([frameHeader(bytes.length, 0, flags, sequence++), bytes]));
  };
  const [slow, busy] = [speakAs(3), speakAs(4)];
  const timer = setInterval(() => {
    slow(old, beat);
    busy(old, beat);
    busy(new Uint8Array(8_192), 0);
  }, heartbeat.everyMs / 4);
  onTestFinished(() => clearInterval(timer));
  // One that says nothing at all, from later on, is the clock.
  await until(() => here.said.length >= 20);
  callUnauthenticated(here).write(greeting(here, 5));
  await here.untilLost(5);
  expect([...here.lost.keys()].sort()).toEqual([3, 5]);
  expect(await here.untilLost(3)).toMatchObject({ code: "PEER_SILENT" });
});

test("a hanging process on another host is given up with its actors, and the reason is reported", async () => {
  const { system } = startSystem({
    preload: new URL("./actors/preload.ts", import.meta.url),
    network: { host, heartbeat: { everyMs: 50, lostAfter: 40 } },
  });
  const place = { placement: "process", process: "still" } as const;
  const mortal = await system.spawn<MortalProtocol>({
    name: "mortal",
    module: actorModule("mortal"),
    ...place,
  });
  const beside = await system.spawn<EchoProtocol>({ name: "beside", module: actorModule("echo"), ...place });
  const held = beside.ask("hold", null, { deadlineMs });
  mortal.tell("die", { signal: "SIGSTOP", words: "stands still" });
  await expect(held).rejects.toMatchObject({
    code: "ACTOR_DOWN",
    cause: { code: "PEER_SILENT", message: expect.stringContaining("none that was sent within") },
  });
});

test("with keys, messages are encrypted, and a peer without a certificate of the same signer is not admitted", async () => {
  const [ours, theirs] = [makeKeys(), makeKeys()];
  const [here, other] = [await openHub(0, { tls: ours }), await openHub(1, { tls: ours })];
  await say(other, here, "in confidence");
  const plain = callUnauthenticated(here);
  plain.write(greeting(here, 3));
  await once(plain, "close");
  const [, port] = JSON.parse(here.hub.address) as [string, number];
  const strange = connectTls({ host, port, ...theirs, rejectUnauthorized: false });
  strange.on("error", () => {});
  strange.resume();
  strange.write(greeting(here, 4));
  await once(strange, "close");
  expect(here.said).toEqual(["1: in confidence"]);
  await say(other, here, "still");
});

test("a process that is refused hears why at once: for its token, for its certificate, and for that of the door", async () => {
  const [ours, theirs] = [makeKeys(), makeKeys()];
  const [plain, sealed] = [await openHub(0), await openHub(0, { tls: ours })];
  const called = async ({ hub }: Heard, by: Heard) => {
    by.hub.know(0, hub.address);
    by.hub.control(0, new TextEncoder().encode("let me in"));
    return await by.untilLost(0);
  };
  expect(await called(plain, await openHub(1, {}, "another"))).toMatchObject({
    code: "HOST_REFUSED",
    message: expect.stringContaining("expected the token of the host that is called, got another one"),
  });
  expect(await called(sealed, await openHub(2, { tls: { ...theirs, ca: ours.ca } }))).toMatchObject({
    code: "PEER_UNTRUSTED",
    message: expect.stringMatching(/got \w+ for the certificate of the host that calls/),
  });
  expect(await called(sealed, await openHub(4, { tls: { ...ours, ca: theirs.ca } }))).toMatchObject({
    code: "PEER_UNTRUSTED",
  });
  expect([plain.said, sealed.said, plain.lost.size, sealed.lost.size]).toEqual([[], [], 0, 0]);
});

test("a caller without a certificate gets that reason, and is not let in by resuming the session in which it was refused", async () => {
  const ours = makeKeys();
  const here = await openHub(0, { tls: ours });
  const [, port] = JSON.parse(here.hub.address) as [string, number];
  const callWith = async (session?: Buffer) => {
    const call = connectTls({
      host,
      port,
      ca: ours.ca,
      checkServerIdentity: () => undefined,
      ...(session && { session }),
    });
    call.on("error", () => {});
    let newest: Buffer | undefined;
    let heard = "";
    let isResumed = false;
    call.on("secureConnect", () => {
      isResumed = call.isSessionReused();
    });
    call.on("session", (ticket) => {
      newest = ticket;
    });
    call.on("data", (piece) => {
      heard += piece;
    });
    call.write(greeting(here, 3));
    call.write(Buffer.concat([frameHeader(3, 0, 0, 1), Buffer.from("one")]));
    await once(call, "close");
    return { newest, heard, isResumed };
  };
  const first = await callWith();
  expect(first.heard).toContain("no certificate");
  const again = await callWith(first.newest);
  expect(again).toMatchObject({ isResumed: true, heard: expect.stringContaining("no certificate") });
  expect([here.said, here.lost.size]).toEqual([[], 0]);
});

test("a door that cannot be opened is reported with its address", async () => {
  await expect(openHub(0, { host: "192.0.2.1" })).rejects.toMatchObject({
    code: "NETWORK_ADDRESS",
    message: expect.stringContaining("192.0.2.1"),
  });
});

/** A certificate, its key, and who signed it: itself. */
function makeKeys(): Keys {
  const folder = mkdtempSync(join(tmpdir(), "troupe-test-"));
  onTestFinished(() => rmSync(folder, { recursive: true }));
  const { cert, key, ca } = makeCertificate(folder);
  const read = (file: string) => readFileSync(file, "utf8");
  return { cert: read(cert), key: read(key), ca: read(ca) };
}
