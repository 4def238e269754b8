import { existsSync, readFileSync } from "node:fs";
import type { Socket } from "node:net";
import { expect, onTestFinished, test, vi } from "vitest";
import {
  firstHostIndex,
  type HostNews,
  type HostOrder,
  unpackHostNews,
} from "../../src/runtime/hosting/host-orders.ts";
import { packControl } from "../../src/runtime/hosting/packed-control.ts";
import {
  type ActorRef,
  type ActorSystem,
  type Addressed,
  HostAgent,
  type Network,
} from "../../src/runtime/index.ts";
import { Hub } from "../../src/runtime/transport/hub/hub.ts";
import { TcpDoor } from "../../src/runtime/transport/tcp/tcp-door.ts";
import { patience } from "../fixtures/patience.ts";
import type { EchoProtocol } from "./actors/echo.ts";
import type { SenderProtocol } from "./actors/sender.ts";
import type { SinkInit, SinkProtocol } from "./actors/sink.ts";
import {
  actorModule,
  closedGate,
  type EventLog,
  otherHost,
  sharedWords,
  startSystem,
} from "./start-system.ts";

const deadlineMs = 60_000;
const preload = new URL("./actors/preload.ts", import.meta.url);
/** Processes that the test delays must be late, not lost. */
const patient: Network = { host: "127.0.0.1", heartbeat: { everyMs: 200, lostAfter: 1_000 } };
const doors: [string, Network | undefined][] = [
  ["Unix sockets", undefined],
  ["a network", patient],
];
/** Far more time than a process takes that leaves at once. */
const leavesWithinMs = 500;

interface Pair {
  readonly system: ActorSystem;
  readonly log: EventLog;
  readonly sender: ActorRef<SenderProtocol>;
  readonly sink: ActorRef<SinkProtocol>;
  /** How often the sink has received each number. */
  readonly counts: Int32Array;
  pidOf(actor: Addressed): number;
}

/** A sender and a sink, each in a process of its own, that take `numValues` numbers. */
async function startPair(network: Network | undefined, numValues: number): Promise<Pair> {
  const { system, log } = startSystem({ preload, ...(network && { network }) });
  const { path: countsPath, words: counts } = sharedWords(numValues);
  const [sender, sink] = await Promise.all([
    system.spawn<SenderProtocol>({ name: "sender", module: actorModule("sender"), placement: "process" }),
    system.spawn<SinkProtocol, SinkInit>({
      name: "sink",
      module: actorModule("sink"),
      init: { countsPath },
      placement: "process",
    }),
  ]);
  const pidOf = ({ address }: Addressed) =>
    system.inspect().find(({ actor }) => actor === address.name)?.pid as number;
  return { system, log, sender, sink, counts, pidOf };
}

async function until(isSo: () => boolean): Promise<void> {
  while (!isSo()) await new Promise(setImmediate);
}

/** Stops `held`, has `end` end an actor of process `leaving`, and lets `held` go on when that process has had time to leave. */
async function endUnheard(held: number, leaving: number, end: () => Promise<unknown>): Promise<void> {
  process.kill(held, "SIGSTOP");
  try {
    await until(() => readFileSync(`/proc/${held}/stat`, "utf8").includes(") T "));
    await end();
    const latestMs = performance.now() + leavesWithinMs;
    await until(() => !existsSync(`/proc/${leaving}/stat`) || performance.now() > latestMs);
  } finally {
    process.kill(held, "SIGCONT");
  }
}

test.each(doors)(
  "DL-1 what an actor has taken is no dead letter to a sender whose process hears late of its end, by %s",
  async (_door, network) => {
    const numValues = 18;
    const { system, sender, sink, counts, pidOf } = await startPair(network, numValues);
    // Fewer than half a window: the sink's process has said nothing to the sender's when it leaves.
    await sender.ask("burst", { to: sink, from: 0, count: numValues }, { deadlineMs });
    await until(() => counts.every((count) => count === 1));
    await endUnheard(pidOf(sender), pidOf(sink), () => system.stopActor(sink));
    const down = Promise.withResolvers<void>();
    system.watch(sink, () => down.resolve());
    await down.promise;
    // One more is lost: a process that hears of it has heard of all before.
    await sender.ask("burst", { to: sink, from: 0, count: 1 }, { deadlineMs });
    await until(() => system.deadLetters.count("Stopped") > 0);
    expect(system.deadLetters.count()).toBe(1);
  },
);

test.each(doors)(
  "DL-4 the last words of an actor are heard however late and long, the first that its process says there too, by %s",
  async (_door, network) => {
    const { sender, sink, counts, log, pidOf } = await startPair(network, 1);
    await sender.ask("connect", sink, { deadlineMs });
    sink.tell("watch", sender);
    await log.untilEmitted({ watching: "sender" });
    // More than lies in a socket while nobody reads.
    const words = { to: sink, as: "long ".repeat(4 << 20), value: 0 };
    await endUnheard(pidOf(sink), pidOf(sender), () => {
      sender.tell("farewell", words);
      return log.until(({ kind }) => kind === "actor.stopped");
    });
    // The words are taken in before the news of the end, and handled before a later question.
    await log.untilEmitted({ down: "sender", reason: "stopped" });
    await sink.ask("taken", null, { deadlineMs });
    expect(counts[0]).toBe(1);
  },
);

/** Resources of a small host. */
const theProcess = 1;

/** A head without a system: what it hears of one host, and that host's call, which it can hold. */
class BareHead extends TcpDoor {
  readonly token = "token";
  readonly maxFrameBytes = 1 << 20;
  readonly news: HostNews[] = [];
  readonly calls: Socket[] = [];
  #hub: Hub | undefined;
  #host = 0;

  constructor() {
    super(patient);
    onTestFinished(() => this.#hub?.close());
  }

  /** Opens its door, and takes in the host that calls. */
  async takeIn(): Promise<HostAgent> {
    const { token, maxFrameBytes } = this;
    this.#hub = await Hub.open({
      index: 0,
      door: this,
      token,
      maxFrameBytes,
      onControl: (from, bytes) => {
        if (from < firstHostIndex) return; // a process
        this.#hub?.knowRelayed(theProcess, from);
        this.#host = from;
        this.news.push(unpackHostNews(bytes));
      },
      onLost: () => {},
    });
    const joining = HostAgent.join({
      invitation: { address: this.address, token, isSealed: false, maxFrameBytes },
      ...otherHost,
      network: patient,
    });
    await this.heard("host");
    this.order({ kind: "welcome" });
    return await joining;
  }

  override open(onCall: (socket: Socket, admit: () => void) => void): Promise<void> {
    return super.open((socket, admit) => {
      this.calls.push(socket);
      onCall(socket, admit);
    });
  }

  order(order: HostOrder): void {
    this.#hub?.control(this.#host, packControl(order));
  }

  async heard<K extends HostNews["kind"]>(kind: K): Promise<Extract<HostNews, { readonly kind: K }>> {
    const find = () => this.news.find((news): news is Extract<HostNews, { kind: K }> => news.kind === kind);
    await until(() => find() !== undefined);
    return find() as Extract<HostNews, { readonly kind: K }>;
  }
}

test("a host that is let go stays until the one that leads has heard how its processes have ended", async () => {
  const head = new BareHead();
  const agent = await head.takeIn();
  const { token, maxFrameBytes } = head;
  const start = { index: theProcess, token, preloadUrl: undefined, maxFrameBytes };
  head.order({ kind: "begin", name: "a", start });
  const { pid } = await head.heard("begun");
  let isOver = false;
  void agent.over.then(() => {
    isOver = true;
  });
  const [call] = head.calls;
  call?.pause();
  head.order({ kind: "dismiss", failure: undefined });
  await until(() => !existsSync(`/proc/${pid}/stat`));
  const latestMs = performance.now() + leavesWithinMs;
  await until(() => isOver || performance.now() > latestMs);
  call?.resume();
  await agent.over;
  expect(head.news.at(-1)).toMatchObject({ kind: "over", index: theProcess, signalCode: "SIGKILL" });
});

test("a host reports the end of a process whose output another process holds", async () => {
  const head = new BareHead();
  const agent = await head.takeIn();
  const { token, maxFrameBytes } = head;
  const { path, words } = sharedWords(1);
  const preloadUrl = new URL(`./actors/preload-grandchild.ts?${path}`, import.meta.url).href;
  const start = { index: theProcess, token, preloadUrl, maxFrameBytes };
  head.order({ kind: "begin", name: "a", start });
  const { pid } = await head.heard("begun");
  await until(() => Atomics.load(words, 0) !== 0);
  onTestFinished(() => void process.kill(Atomics.load(words, 0)));
  process.kill(pid, "SIGKILL");
  expect(await head.heard("over")).toMatchObject({ index: theProcess, signalCode: "SIGKILL" });
  head.order({ kind: "dismiss", failure: undefined });
  await agent.over;
});

test("an actor that has nothing left to do waits for the link that its last words are to go by", async () => {
  const { system, log } = startSystem();
  const { path: countsPath, words: counts } = sharedWords(1);
  const { path: leavingPath, words: leaving } = sharedWords(1);
  const { gate, open } = closedGate();
  const sender = await system.spawn<SenderProtocol>({ name: "sender", module: actorModule("sender") });
  const to = await system.spawn<SinkProtocol, SinkInit>({
    name: "sink",
    module: actorModule("sink"),
    init: { countsPath },
  });
  sender.tell("farewell", { to, as: "sender", value: 0, behind: { gate, leavingPath } });
  await log.untilEmitted("at the gate");
  open();
  // Links are made in this thread: as long as it is held there is none. Hosts would take it for dead, so this is no promise of theirs.
  const latestMs = performance.now() + deadlineMs;
  while (Atomics.load(leaving, 0) === 0 && performance.now() < latestMs);
  expect(leaving[0]).toBe(1);
  await log.until(({ kind }) => kind === "actor.stopped");
  expect(system.deadLetters.count()).toBe(0);
  await vi.waitFor(() => expect(counts[0]).toBe(1), patience);
});

test("processes that take long to end when ordered to do not count as a halted host", async () => {
  const network = { host: "127.0.0.1" };
  const lost: string[] = [];
  const { system } = startSystem({
    preload: new URL("./actors/preload-slow-exit.ts", import.meta.url),
    network,
    hosts: {
      count: 2,
      about: "",
      placeOf: () => 1,
      onJoined() {},
      onLost: (_host, { message }) => lost.push(message),
      onSignal() {},
    },
  });
  const agent = await HostAgent.join({
    invitation: await system.invite(),
    ...otherHost,
    network,
  });
  const actors = ["one", "other"].map((name) =>
    system.spawn({ name, module: actorModule("echo"), placement: "process" }),
  );
  for (const actor of await Promise.all(actors)) await system.stopActor(actor);
  await system.stop();
  expect(await agent.over).toBeUndefined();
  expect(lost).toEqual([]);
});

test("a message as large as the system allows reaches an actor on another host, and comes back", async () => {
  const lost: string[] = [];
  const { system } = startSystem({
    preload,
    network: patient,
    messaging: { maxFrameBytes: 1 << 27 },
    hosts: {
      count: 2,
      about: otherHost.about,
      placeOf: () => 1,
      onJoined() {},
      onLost: (_host, { message }) => lost.push(message),
      onSignal() {},
    },
  });
  await HostAgent.join({ invitation: await system.invite(), ...otherHost, network: patient });
  const module = actorModule("echo");
  const echo = await system.spawn<EchoProtocol>({ name: "echo", module, placement: "process" });
  // Above the default of 64 MiB.
  const large = new Uint8Array(65 << 20).fill(7);
  const answer = (await echo.ask("echo", large, { deadlineMs })) as Uint8Array;
  expect(Buffer.compare(answer, large)).toBe(0);
  expect(lost).toEqual([]);
});
