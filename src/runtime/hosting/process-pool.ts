import { randomBytes } from "node:crypto";
import { join } from "node:path";
import { MessageChannel } from "node:worker_threads";
import { TroupeError } from "../../errors/index.ts";
import { boardSizeBytes } from "../inspection/status-board.ts";
import { creditCountersBytes } from "../mailbox/credit-counters.ts";
import type { Failure } from "../protocol/failure.ts";
import { defaultStartDeadlineMs, type MessagingSettings } from "../protocol/settings.ts";
import { Hub } from "../transport/hub/hub.ts";
import { creditsAt, openPipe, openPortRoute, type RouteEnd } from "../transport/hub/routes.ts";
import type { CreditsPlan, LinkEnd } from "../transport/link.ts";
import { type ProcessSupport, processSupport } from "../transport/link-opener.ts";
import { type MemoryPlace, SharedMemory } from "../transport/shared-memory.ts";
import { type Network, TcpDoor } from "../transport/tcp/tcp-door.ts";
import { UnixDoor } from "../transport/unix/unix-door.ts";
import { ForkServer } from "./fork-server.ts";
import type { Invitation } from "./host-agent.ts";
import { makeHostFolder, sweepHostFolder } from "./host-folder.ts";
import { firstHostIndex } from "./host-orders.ts";
import { HostProcess } from "./host-process.ts";
import { Hosts, type HostsOptions } from "./hosts.ts";
import { removeOwnedFolder } from "./owned-folder.ts";
import type { LinkPlace } from "./placement.ts";
import { type News, unpackNews } from "./process-orders.ts";
import type { RemoteHost } from "./remote-host.ts";
import { startProcess } from "./started-process.ts";
import type { Warmup } from "./thread.ts";

const own = 0;

/** The state of a pool once it has started a process. */
interface Opened {
  readonly folder: string;
  readonly hub: Hub;
  /** Undefined if its processes share no memory. */
  readonly memory: SharedMemory | undefined;
  /** Undefined if no other host starts processes. */
  readonly hosts: Hosts | undefined;
  /** Undefined if each process is started by itself. */
  readonly forks: ForkServer | undefined;
}

/** Options of a {@link ProcessPool}. */
export interface ProcessPoolOptions {
  readonly preloadUrl: string | undefined;
  readonly settings: MessagingSettings;
  /** How its processes reach each other; undefined for Unix sockets and shared memory. */
  readonly network: Network | undefined;
  /** Other hosts, which reach it over the network. Default: none. */
  readonly hosts: HostsOptions | undefined;
  readonly support: () => ProcessSupport | undefined;
}

/** The processes of one system. A process is started for its first actor and ended after its last. */
export class ProcessPool {
  readonly #options: ProcessPoolOptions;
  readonly #token: string;
  readonly #byName = new Map<string, HostProcess>();
  /** Warm standbys by the name of the process that they replace. */
  readonly #standbys = new Map<string, HostProcess>();
  /** Numbers of the hosts that processes are wanted on. */
  readonly #wanted = new Map<string, number>();
  /** Names whose standby ended by itself, as in `WarmStandbys`. */
  readonly #lost = new Set<string>();
  readonly #running = new Map<number, HostProcess>();
  #opening: Promise<Opened> | undefined;
  #opened: Opened | undefined;
  #isClosed = false;
  #lastIndex = own;
  #lastRoute = 0;

  constructor(options: ProcessPoolOptions) {
    this.#options = options;
    this.#token = options.hosts?.token ?? randomBytes(16).toString("hex");
  }

  /**
   * Returns the process of this name, and starts it if needed.
   * @param warmup - of a thread in it that an actor is about to get
   * @throws {TroupeError} `PROCESS_START_FAILED`, `PROCESS_UNSUPPORTED`; `SYSTEM_STOPPED` if the pool is being closed
   */
  async host(name: string, warmup?: Warmup): Promise<HostProcess> {
    this.#opening ??= this.#open();
    const opened = await this.#opening;
    if (this.#isClosed) throw closed(name);
    const living = this.#byName.get(name);
    const host = living?.isLeaving === false ? living : this.#take(name, opened);
    if (warmup !== undefined) host.prepareStandby(warmup);
    await untilReady(host);
    return host;
  }

  /** Notes the host that a process is wanted on, from its next start on. @returns whether there is or may be such a host */
  want(name: string, host: number): boolean {
    this.#wanted.set(name, host);
    return Number.isInteger(host) && host >= 0 && host < (this.#options.hosts?.count ?? 1);
  }

  /** Listens for other hosts and returns the data that they need to join. */
  async invite(): Promise<Invitation> {
    this.#opening ??= this.#open();
    const { hub } = await this.#opening;
    const { hosts, network, settings } = this.#options;
    const { maxFrameBytes } = settings;
    const isSealed = network?.tls !== undefined;
    const token = hosts?.token === undefined && { token: this.#token };
    return { address: hub.address, isSealed, maxFrameBytes, ...token };
  }

  /** Resolves once all hosts have joined. @throws {TroupeError} `HOST_MISSING` naming those that did not within the deadline */
  async hostsJoined(deadlineMs: number): Promise<void> {
    await this.#use().hosts?.all(deadlineMs);
  }

  /** Numbers of the hosts that have not joined or are lost. */
  get hostsMissing(): readonly number[] {
    return this.#opened?.hosts?.missing ?? [];
  }

  /** Prepares a standby for the process of this name, with a thread for `warmup`. @returns false if nothing is left to start */
  prepareStandby(name: string, warmup: Warmup): boolean {
    if (this.#opened === undefined || this.#isClosed || this.#lost.has(name)) return false;
    const host = this.#standbys.get(name) ?? this.#start(name, this.#opened);
    this.#standbys.set(name, host);
    return host.prepareStandby(warmup);
  }

  /** Ids of its processes on this host, including standbys. The server that forks them has nearly nothing that they do not hold too. */
  get pids(): readonly number[] {
    return [...this.#running.values()].flatMap(({ pid, place }) => (place === undefined ? (pid ?? []) : []));
  }

  /**
   * Allocates memory for the board of an actor that `host` will start. `place` is undefined if the two processes share no
   * memory; then `bytes` is a copy that is kept up to date.
   */
  boardOf(
    uid: number,
    host: HostProcess,
  ): { readonly place: MemoryPlace | undefined; readonly bytes: Uint8Array } {
    const { memory } = this.#use();
    if (memory !== undefined) return memory.allocate(boardSizeBytes);
    const bytes = new Uint8Array(boardSizeBytes);
    host.mirror(uid, bytes);
    return { place: undefined, bytes };
  }

  /** Makes both ends of a new route between two processes. Each process is notified when the other ends. */
  route(left: LinkPlace, right: LinkPlace): [RouteEnd, RouteEnd] {
    if (left.host !== undefined && right.host !== undefined) {
      left.host.peers.add(right.host);
      right.host.peers.add(left.host);
    }
    this.#lastRoute += 1;
    const id = this.#lastRoute;
    const credits = this.#credits();
    return [
      { id, ...this.#peer(right), side: 0, credits },
      { id, ...this.#peer(left), side: 1, credits },
    ];
  }

  #peer({ host }: LinkPlace): { readonly peer: number; readonly peerAddress: string } {
    return { peer: host?.index ?? own, peerAddress: host?.address ?? this.#use().hub.address };
  }

  #credits(): CreditsPlan {
    const { memory } = this.#use();
    if (memory !== undefined) return memory.allocate(creditCountersBytes).place;
    return { reportEvery: Math.max(1, this.#options.settings.window >> 1) };
  }

  /** Opens this process's end of a route, for an actor at `place`. */
  open(end: RouteEnd, place: LinkPlace): LinkEnd & { readonly kind: "packed" } {
    const { side } = end;
    const credits = creditsAt(end);
    const { maxFrameBytes } = this.#options.settings;
    const { hub } = this.#use();
    const link = { kind: "packed" as const, side, credits, maxFrameBytes };
    if (place.placement === "main") return { ...link, pipe: openPipe(hub, end, credits, place.signal) };
    const { port1, port2 } = new MessageChannel();
    openPortRoute(hub, end, credits, port2, place.signal);
    return { ...link, pipe: port1 };
  }

  /** Calls `run` once nothing more can arrive on a route that ends in this process. */
  afterRoute(id: number, run: () => void): void {
    this.#use().hub.afterRoute(id, run);
  }

  /**
   * Keeps the process of this name for the next incarnations of its actors, which are about to end. A standby that still loads is ended.
   * @param warmup - of a thread that one of them is about to get
   * @returns false if another takes its place: a standby that is ready, or a new one, because it is ending or on another host than wanted
   */
  keep(name: string, warmup: Warmup | undefined): boolean {
    const host = this.#byName.get(name);
    const isOutdone = this.#opened === undefined || this.#standbys.get(name)?.isReady === true;
    if (host === undefined || isOutdone || !host.isReady || host.place !== this.#placeOf(name, this.#use()))
      return false;
    host.isKept = true;
    // It would take processors from the restart, which does not need it.
    void this.#standbys.get(name)?.leave();
    this.#standbys.delete(name);
    if (warmup !== undefined) host.prepareStandby(warmup);
    return true;
  }

  /** Ends the process of this name with its last actor, though it was to be kept. */
  letGo(name: string): void {
    const host = this.#byName.get(name);
    if (host === undefined) return;
    host.isKept = false;
    this.release({ host });
  }

  /** Ends the process at `place` if the last actor in it has ended, unless it is kept. */
  release({ host }: Pick<LinkPlace, "host">): void {
    if (host === undefined || !host.isEmpty || host.isKept || this.#byName.get(host.name) !== host) return;
    this.#byName.delete(host.name);
    void host.leave();
  }

  /**
   * Ends standbys, and resolves when they and those processes that have lost their last actor have ended.
   * @param standbys - names of the processes that they stand by for
   */
  async left(standbys: ReadonlySet<string>, processes: ReadonlySet<string>): Promise<void> {
    const waiting = [...standbys].flatMap((name) => this.#standbys.get(name) ?? []);
    for (const host of waiting) void host.leave();
    const leaving = [...this.#running.values()].filter(
      (host) => waiting.includes(host) || (processes.has(host.name) && host.isLeaving),
    );
    await Promise.all(leaving.map(({ ended }) => ended));
  }

  /**
   * Ends all processes, resolves when none runs any more, and removes their shared folder.
   * @param failure - failure of the system, which other hosts receive
   */
  async close(failure?: Failure): Promise<void> {
    this.#isClosed = true;
    if (this.#opening === undefined) return;
    await this.#opening.catch(() => {});
    for (const host of [...this.#byName.values(), ...this.#standbys.values()]) void host.leave();
    await Promise.all([...this.#running.values()].map(({ ended }) => ended));
    await this.#opened?.hosts?.dismiss(failure);
    await this.#opened?.forks?.close();
    this.#opened?.hub.close();
    if (this.#opened === undefined) return;
    this.#options.support()?.leave?.();
    removeOwnedFolder(this.#opened.folder);
  }

  async #open(): Promise<Opened> {
    const support = processSupport(this.#options.support());
    const folder = makeHostFolder();
    try {
      support.enter?.(folder, own);
    } catch (error) {
      removeOwnedFolder(folder);
      throw error;
    }
    const { network, settings, hosts: hostsOptions } = this.#options;
    const memory =
      network === undefined ? new SharedMemory(join(folder, "shared"), support.mapFile) : undefined;
    const hub = await Hub.open({
      index: own,
      door: network === undefined ? new UnixDoor(folder, own) : new TcpDoor(network),
      token: this.#token,
      maxFrameBytes: settings.maxFrameBytes,
      onControl: (from, bytes) => {
        if (from < firstHostIndex) this.#hear(from, unpackNews(bytes));
        else this.#opened?.hosts?.hear(from, bytes);
      },
      onLost: (index, error) => {
        if (index < firstHostIndex) this.#running.get(index)?.disconnected(error);
        else this.#opened?.hosts?.lose(index, error);
      },
    });
    const hosts = hostsOptions && new Hosts(hostsOptions, hub);
    const forking = support.forks?.();
    const forks = forking && new ForkServer(forking);
    this.#opened = { folder, hub, memory, hosts, forks };
    return this.#opened;
  }

  #take(name: string, opened: Opened): HostProcess {
    const standby = this.#standbys.get(name);
    // The standby may be on another host than the process is to run on now.
    const isThere = standby !== undefined && standby.place === this.#placeOf(name, opened);
    const host = isThere ? standby : this.#start(name, opened);
    if (isThere) this.#standbys.delete(name);
    this.#lost.delete(name);
    this.#byName.set(name, host);
    return host;
  }

  #hostOf(name: string, { hosts }: Opened): RemoteHost | undefined {
    return hosts?.hostOf(name, this.#wanted.get(name));
  }

  #placeOf(name: string, opened: Opened): number | undefined {
    return this.#hostOf(name, opened)?.card.place;
  }

  #start(name: string, opened: Opened): HostProcess {
    const { folder, hub, forks } = opened;
    this.#lastIndex += 1;
    const { preloadUrl, network, settings } = this.#options;
    const start = {
      index: this.#lastIndex,
      folder,
      token: this.#token,
      preloadUrl,
      maxFrameBytes: settings.maxFrameBytes,
      systemAddress: hub.address,
      // The port is this process's own; the new one takes a free port.
      network: network && { ...network, port: 0 },
    };
    const started =
      this.#hostOf(name, opened)?.start(name, start) ??
      forks?.start(name, start) ??
      startProcess(name, start);
    const host = new HostProcess(name, start.index, hub, started);
    this.#running.set(host.index, host);
    void host.ended.then(() => this.#ended(host, folder));
    return host;
  }

  #hear(from: number, news: News): void {
    if (news.kind === "corrupted") this.#running.get(news.index)?.corrupted(news.failure);
    else this.#running.get(from)?.hear(news);
  }

  #ended(host: HostProcess, folder: string): void {
    this.#running.delete(host.index);
    if (this.#byName.get(host.name) === host) this.#byName.delete(host.name);
    if (this.#standbys.get(host.name) === host) {
      this.#standbys.delete(host.name);
      this.#lost.add(host.name);
    }
    this.#opened?.hub.lose(host.index);
    // Only peers wait for its messages, so that of many processes that end at once none hears of all others.
    for (const peer of host.peers) {
      peer.peers.delete(host);
      peer.order({ kind: "lost", index: host.index });
    }
    sweepHostFolder(folder, host.index);
  }

  #use(): Opened {
    if (this.#opened !== undefined) return this.#opened;
    throw new TroupeError("SYSTEM_STOPPED", {
      where: "processes",
      expected: "a process that has been started",
      got: "none yet",
      hint: "spawn an actor with placement process first",
    });
  }
}

function closed(name: string): TroupeError {
  return new TroupeError("SYSTEM_STOPPED", {
    where: "processes",
    expected: "a running system",
    got: `one that is stopping, asked for process ${name}`,
    hint: "make a new one",
    fields: { process: name },
  });
}

async function untilReady(host: HostProcess): Promise<void> {
  const timer = setTimeout(() => host.kill(), defaultStartDeadlineMs);
  try {
    await host.ready;
  } finally {
    clearTimeout(timer);
  }
}
