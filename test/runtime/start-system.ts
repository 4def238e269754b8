import {
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  rmSync,
  symlinkSync,
  writeFileSync,
} from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath, pathToFileURL } from "node:url";
import { afterAll, onTestFinished, vi } from "vitest";
import { preloads } from "../../src/actors/preload/index.ts";
import { forkSupport } from "../../src/compute/tensor/index.ts";
import {
  type ActorRef,
  ActorSystem,
  type ChildSpec,
  type Clock,
  fromFailure,
  HostAgent,
  type HostsOptions,
  type MessagingSettings,
  type Network,
  type Protocol,
  type RuntimeEvent,
  type SpawnOptions,
  type Supervisor,
  type SupervisorOptions,
  type SystemOptions,
} from "../../src/runtime/index.ts";
import { FakeClock } from "../fixtures/fake-clock.ts";
import { patience } from "../fixtures/patience.ts";
import { mapWords } from "./actors/shared-words.ts";

let threads: "thread" | "process" = "thread";
let network: Network | undefined;
/** The folder of the actors' modules, if they are a user's. */
let ownFiles: URL | undefined;
const actorsFolder = new URL("./actors/", import.meta.url);
const root = fileURLToPath(new URL("../..", import.meta.url)).replace(/\/$/, "");

/** From here on, where a test of this file wants an actor on a thread of its own, that thread is in a process of its own. */
export function moveThreadsToProcesses(): void {
  threads = "process";
}

/**
 * The same, and the processes share no memory for messages: they reach each other over the network. Each other one lives on a host that has
 * joined, whose post passes on what it and the system say.
 */
export function moveThreadsToHosts(): void {
  threads = "process";
  network = { host: "127.0.0.1" };
}

/**
 * From here on the actors are those of a user: files outside of Troupe that import `troupe/actors`, in a part of a system like the
 * one that a runtime's training lives in.
 */
export function moveToOwnFiles(): void {
  const folder = mkdtempSync(join(tmpdir(), "troupe-own-"));
  afterAll(() => rmSync(folder, { recursive: true }));
  writeFileSync(join(folder, "package.json"), '{ "type": "module" }');
  mkdirSync(join(folder, "node_modules"));
  symlinkSync(root, join(folder, "node_modules", "troupe"));
  for (const file of readdirSync(actorsFolder).filter((name) => name.endsWith(".ts"))) {
    const text = readFileSync(new URL(file, actorsFolder), "utf8")
      .replaceAll('"../../../src/runtime/index.ts"', '"troupe/actors"')
      .replaceAll('"../../../', `"${pathToFileURL(root)}/`)
      .replaceAll('"../../', `"${pathToFileURL(root)}/test/`);
    writeFileSync(join(folder, file), text);
  }
  ownFiles = pathToFileURL(`${folder}/`);
}

/** Whether threads are. */
export function inProcesses(): boolean {
  return threads === "process";
}

/** Expects of what actors are seen doing: at once where memory is shared, else when their boards have been reported. */
export async function seen(expectation: () => void): Promise<void> {
  if (network === undefined) expectation();
  else await vi.waitFor(expectation, patience);
}

/** Zeroed words that the test shares with actors wherever they live; `path` is what a message carries. */
export function sharedWords(count: number): { readonly path: string; readonly words: Int32Array } {
  const folder = mkdtempSync(join(tmpdir(), "troupe-test-"));
  onTestFinished(() => rmSync(folder, { recursive: true }));
  const path = join(folder, "words");
  writeFileSync(path, new Uint8Array(4 * count));
  return { path, words: mapWords(path) };
}

/** A closed gate: `path` for the actor that is to wait at it. */
export function closedGate(): { readonly gate: string; open(): void } {
  const { path, words } = sharedWords(1);
  return { gate: path, open: () => Atomics.store(words, 0, 1) };
}

/** A system whose threads are where this file has them. */
class PlacedSystem extends ActorSystem {
  #joined: Promise<unknown> | undefined;

  override async spawn<P extends Protocol<P>, Init = undefined>(
    options: SpawnOptions<Init>,
  ): Promise<ActorRef<P>> {
    await this.#otherJoined();
    return await super.spawn<P, Init>(placed(options));
  }

  override async supervise(options: SupervisorOptions): Promise<Supervisor> {
    await this.#otherJoined();
    return await super.supervise(placedGroup(options));
  }

  async #otherJoined(): Promise<void> {
    if (network !== undefined) this.#joined ??= this.#takeIn(network);
    await this.#joined;
  }

  /** Has the one other host join. */
  async #takeIn(network: Network): Promise<void> {
    const invitation = await this.invite();
    await HostAgent.join({ invitation, network, ...otherHost });
    await this.hostsJoined(60_000);
  }
}

/** The one host that joins, but for its invitation and network. */
export const otherHost = {
  token: undefined,
  number: 0,
  place: 1,
  name: "b",
  means: { numCores: 1, memoryBytes: 1, devices: [] },
  about: "",
  isCompanion: false,
  forks: forkSupport(),
};

/** Each of two hosts has every other process. */
function twoHosts(): HostsOptions {
  const placeOf = new Map<string, number>();
  return {
    count: 2,
    about: otherHost.about,
    placeOf(process) {
      const place = placeOf.get(process) ?? placeOf.size % 2;
      placeOf.set(process, place);
      return place;
    },
    onJoined() {},
    onLost(_host, failure) {
      throw fromFailure(failure);
    },
    onSignal() {},
  };
}

function placed<T extends Pick<ChildSpec, "placement">>(options: T): T {
  const { placement = "thread" } = options;
  return { ...options, placement: placement === "thread" ? threads : placement };
}

function placedGroup(options: SupervisorOptions): SupervisorOptions {
  const children = options.children.map((child) => ("name" in child ? placed(child) : child.map(placed)));
  return { ...options, children };
}

/** The module of one of the actors of these tests. */
export function actorModule(name: string): URL {
  return new URL(`${name}.ts`, ownFiles ?? actorsFolder);
}

/** The events of a system so far, and a way to wait for later ones. */
export class EventLog {
  readonly events: RuntimeEvent[] = [];
  readonly unhandled: Error[] = [];
  #waiting: {
    readonly matches: (event: RuntimeEvent) => boolean;
    readonly resolve: (event: RuntimeEvent) => void;
  }[] = [];

  readonly enter = (event: RuntimeEvent): void => {
    this.events.push(event);
    const matched = this.#waiting.filter(({ matches }) => matches(event));
    this.#waiting = this.#waiting.filter((waiter) => !matched.includes(waiter));
    for (const { resolve } of matched) resolve(event);
  };

  /** All of one kind so far. */
  ofKind<K extends RuntimeEvent["kind"]>(kind: K): Extract<RuntimeEvent, { kind: K }>[] {
    return this.events.filter((event): event is Extract<RuntimeEvent, { kind: K }> => event.kind === kind);
  }

  /** The first event that matches, past or to come. */
  async until(matches: (event: RuntimeEvent) => boolean): Promise<RuntimeEvent> {
    const past = this.events.find(matches);
    return past ?? (await new Promise((resolve) => this.#waiting.push({ matches, resolve })));
  }

  /** The payloads that actors emitted so far. */
  get emitted(): unknown[] {
    return this.ofKind("actor.emitted").map(({ event }) => event);
  }

  /** Resolves when an actor has emitted this payload. */
  async untilEmitted(payload: unknown): Promise<void> {
    const text = JSON.stringify(payload);
    await this.until((event) => event.kind === "actor.emitted" && JSON.stringify(event.event) === text);
  }
}

/** A system that is stopped when the test has finished; messages are frozen, as in every test. */
export function startSystem(
  options: Partial<SystemOptions> & { messaging?: Partial<MessagingSettings> } = {},
): { system: ActorSystem; log: EventLog } {
  const log = new EventLog();
  const all = {
    name: "test",
    ...(inProcesses() ? { preload: new URL("./actors/preload.ts", import.meta.url) } : {}),
    ...(network === undefined ? {} : { network, hosts: twoHosts() }),
    onEvent: log.enter,
    onUnhandled: (error: Error) => log.unhandled.push(error),
    ...options,
    messaging: { freezeMessages: true, ...options.messaging },
  };
  const system = ownFiles === undefined ? new PlacedSystem(all) : partOfTraining(all);
  onTestFinished(() => stopCompletely(system, options.clock));
  return { system, log };
}

/** A part of a system with what every thread of a training loads first; the test hears of its actors alone. */
function partOfTraining(options: SystemOptions): ActorSystem {
  const whole = new ActorSystem({ preload: preloads.oneHost, ...options, name: "training" });
  onTestFinished(() => whole.stop());
  return whole.part(options);
}

/** Stops the system; a fake clock is advanced whenever nothing else happens, so that deadlines pass. */
async function stopCompletely(system: ActorSystem, clock: Clock | undefined): Promise<void> {
  const stopping = system.stop({ deadlineMs: 2_000 });
  const movedOn = clock instanceof FakeClock ? setInterval(() => clock.advance(2_000), 500) : undefined;
  await stopping.finally(() => clearInterval(movedOn));
}
