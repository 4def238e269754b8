import type { Socket } from "node:net";
import { TroupeError } from "../../../errors/index.ts";
import { type Frame, FrameReader, frameFlag, frameHeader } from "../frame.ts";
import type { Door, Heartbeat } from "./door.ts";
import {
  greetingBytes,
  packGreeting,
  refusalFrame,
  refusalIn,
  unauthenticated,
  unpackGreeting,
} from "./greeting.ts";
import { OwnTime, PeerLiveness } from "./peer-liveness.ts";

/** This process's end of a route to another process. */
export interface Route {
  /** The process at the other end. */
  readonly peer: number;
  /** Address of that process's door. */
  readonly peerAddress: string;
  /** Delivers bytes from there to their actor. */
  deliver(bytes: Uint8Array<ArrayBuffer>, flags: number): void;
}

/** Options of a {@link Hub}. */
export interface HubOptions {
  /** Index of this process; 0 is the one that started the others. */
  readonly index: number;
  /** The door that others call; the hub opens it. */
  readonly door: Door;
  /** Secret shared by the processes of this system. */
  readonly token: string;
  readonly maxFrameBytes: number;
  /** Receives messages of another hub to this one, sent on `controlRoute`. */
  onControl(from: number, bytes: Uint8Array<ArrayBuffer>): void;
  /** Receives frames of and for processes that this hub relays for. @returns whether it was one; else it is this hub's own */
  relay?(from: number, frame: Frame): boolean;
  /** Called before each heartbeat is sent; messages sent in it go along. */
  onBeat?(): void;
  /** Called when the connection from another process has ended; `error` if it was invalid, or one did not trust the other. */
  onLost(index: number, error: Error | undefined): void;
}

/** A call to another process. */
interface Call {
  readonly socket: Socket;
  /** Frames written to it. */
  numFrames: number;
}

/** A call from another process. */
interface Caller {
  readonly socket: Socket;
  /** Undefined if the end of a process closes its sockets at once. */
  readonly liveness: PeerLiveness | undefined;
}

// Checks per heartbeat, so that an overdue peer is noticed before its next heartbeat would be due.
const looksPerBeat = 4;

/** The route of messages between hubs. */
const controlRoute = 0;

/**
 * Carries bytes between this process and others, over one socket for each direction, and never looks into them. It writes
 * only on calls that it made and reads only from calls of others; only a refused call gets an answer. Thus two processes that
 * call each other at once do not collide, and the last messages of a killed process arrive: a socket that is closed with
 * unread data would drop what is under way. The hub runs on the main thread, which never computes.
 */
export class Hub {
  readonly index: number;
  readonly #options: HubOptions;
  readonly #addresses = new Map<number, string>();
  readonly #outbound = new Map<number, Call>();
  readonly #inbound = new Map<number, Caller>();
  /** By process: the hub that relays for it. */
  readonly #relays = new Map<number, number>();
  readonly #routes = new Map<number, Route>();
  /** Frames that arrived before their route was opened here. */
  readonly #early = new Map<number, Frame[]>();
  readonly #finished = new Set<number>();
  readonly #atEnd = new Map<number, (() => void)[]>();
  readonly #lost = new Set<number>();
  readonly #time: OwnTime | undefined;
  #heart: NodeJS.Timeout | undefined;
  #numLooks = 0;

  private constructor(options: HubOptions) {
    this.index = options.index;
    this.#options = options;
    const { heartbeat } = options.door;
    this.#time = heartbeat && new OwnTime(heartbeat);
  }

  /** Opens this process's door. */
  static async open(options: HubOptions): Promise<Hub> {
    const hub = new Hub(options);
    const { door } = options;
    await door.open((socket, admit) => hub.#accept(socket, admit));
    const { heartbeat } = door;
    if (heartbeat !== undefined)
      hub.#heart = setInterval(() => hub.#look(heartbeat), heartbeat.everyMs / looksPerBeat).unref();
    return hub;
  }

  /** The address that other processes call. */
  get address(): string {
    return this.#options.door.address;
  }

  /** Records the address of another process. */
  know(index: number, address: string): void {
    this.#addresses.set(index, address);
  }

  /** Records that another process is reached through a hub that relays for it. If the hub is lost, so is the process. */
  knowRelayed(index: number, hub: number): void {
    this.#relays.set(index, hub);
  }

  /** Sends a frame on unchanged. @param of - see {@link Frame.of} */
  pass(to: number, { route, flags, bytes }: Frame, of = 0): void {
    this.#write(to, route, flags, bytes, of);
  }

  /** Sends a message to another hub. */
  control(to: number, bytes: Uint8Array): void {
    this.#write(to, controlRoute, 0, bytes);
  }

  /** Opens this end of a route and delivers frames that arrived for it before. */
  openRoute(id: number, route: Route): void {
    this.#routes.set(id, route);
    this.know(route.peer, route.peerAddress);
    const early = this.#early.get(id) ?? [];
    this.#early.delete(id);
    for (const frame of early) this.#route(frame);
    if (this.#lost.has(route.peer)) this.#finish(id);
  }

  /** Sends bytes over a route that is open here. */
  send(id: number, bytes: Uint8Array, flags: number): void {
    const route = this.#routes.get(id);
    if (route !== undefined) this.#write(route.peer, id, flags, bytes);
  }

  /** Closes this end of a route; bytes sent before still arrive. */
  closeRoute(id: number): void {
    const route = this.#routes.get(id);
    if (route === undefined) return;
    this.#write(route.peer, id, frameFlag.last, new Uint8Array());
    this.#finish(id);
  }

  /** Calls `run` once nothing more can arrive on this route; at once if that is so already. */
  afterRoute(id: number, run: () => void): void {
    if (this.#finished.has(id)) run();
    else this.#atEnd.set(id, [...(this.#atEnd.get(id) ?? []), run]);
  }

  /** Records that another process is lost, unless its own call is still open and will say so by its end. */
  lose(index: number, error?: Error): void {
    if (!this.#inbound.has(index)) this.#lose(index, error);
  }

  /**
   * Ends all calls, or all but the one to `staying`. Resolves when each of those processes has read everything that this one
   * has sent, or is lost. Without that, bytes still under way could be lost with this process.
   */
  async leave(staying?: number): Promise<void> {
    const calls = [...this.#outbound].filter(([to]) => to !== staying);
    await Promise.all(
      calls.map(async ([, { socket }]) => {
        socket.end();
        // A process that has read to the end of a call closes it too.
        if (!socket.closed) await new Promise((resolve) => socket.once("close", resolve));
      }),
    );
  }

  /** Closes the hub. Nothing is sent or received afterwards. */
  close(): void {
    clearInterval(this.#heart);
    this.#options.door.close();
    for (const { socket } of this.#outbound.values()) socket.destroy();
    for (const { socket } of this.#inbound.values()) socket.destroy();
  }

  /** Drops the peers whose heartbeats are overdue. Every {@link looksPerBeat}-th look sends heartbeats. */
  #look({ everyMs, lostAfter }: Heartbeat): void {
    this.#time?.turn();
    this.#numLooks += 1;
    if (this.#numLooks % looksPerBeat === 0) this.#beat();
    for (const { liveness, socket } of this.#inbound.values())
      if (liveness !== undefined && liveness.ageMs > everyMs * lostAfter)
        socket.destroy(silent(liveness.ageMs));
  }

  /** Sends a heartbeat to every process that this one has called. */
  #beat(): void {
    const calls = [...this.#outbound.values()].filter(({ socket }) => socket.writable);
    for (const { socket } of calls) socket.cork();
    this.#options.onBeat?.();
    for (const call of calls) writeFrame(call, controlRoute, frameFlag.beat, sentNow());
    for (const { socket } of calls) socket.uncork();
    for (const { liveness } of this.#inbound.values()) liveness?.turn();
  }

  #write(to: number, route: number, flags: number, bytes: Uint8Array, of = 0): void {
    if (this.#lost.has(to)) return;
    const hub = this.#relays.get(to);
    if (hub === undefined) writeFrame(this.#outbound.get(to) ?? this.#call(to), route, flags, bytes, of);
    else this.#write(hub, route, flags, bytes, to);
  }

  #call(to: number): Call {
    const { door, index, token } = this.#options;
    const address = this.#addresses.get(to) as string;
    const socket = door.call(address);
    const call = { socket, numFrames: 0 };
    this.#outbound.set(to, call);
    let refusal: Error | undefined;
    const reader = new FrameReader(greetingBytes);
    socket.on("data", (piece: Uint8Array) => {
      try {
        reader.read(piece, (frame) => {
          refusal ??= refusalIn(frame);
        });
      } catch {
        socket.destroy();
      }
    });
    socket.on("error", (error) => {
      refusal ??= door.distrustIn(error);
    });
    // The end of a process that has called arrives on its own call, after its last messages. One that never called has none.
    socket.on("close", () => {
      if (!this.#inbound.has(to)) this.#lose(to, refusal);
    });
    writeFrame(call, controlRoute, 0, packGreeting({ index, address: door.address }, address, token));
    return call;
  }

  /** Reads a caller's first frame, which identifies it. A caller without the token gets a refusal and is not read any further. */
  #accept(socket: Socket, admit: () => void): void {
    const reader = new FrameReader(greetingBytes);
    let from: number | undefined;
    let error: Error | undefined;
    let isRefused = false;
    socket.on("data", (piece: Uint8Array) => {
      if (isRefused) return;
      if (from !== undefined) this.#inbound.get(from)?.liveness?.countBytes(piece.length);
      try {
        reader.read(piece, (frame) => {
          if (isRefused) return;
          if (from !== undefined) return this.#receive(from, frame);
          from = this.#greet(frame);
          isRefused = from === undefined;
          if (from === undefined) return void socket.end(refusalFrame({ reason: "token" }));
          reader.allow(this.#options.maxFrameBytes);
          admit();
          this.#inbound.set(from, { socket, liveness: this.#newLiveness() });
        });
      } catch (caught) {
        error = caught as Error;
        socket.destroy();
      }
    });
    socket.on("error", (caught) => {
      error ??= caught instanceof TroupeError ? caught : undefined;
    });
    socket.on("close", () => {
      if (from !== undefined) this.#lose(from, error);
    });
  }

  /**
   * Records which process calls, and where to call it back. A process that was declared lost is never readmitted, because its
   * frames were dropped meanwhile.
   * @returns undefined for a caller that has another token
   */
  #greet(frame: Frame): number | undefined {
    const { door, token } = this.#options;
    const { greeting, isProven } = unpackGreeting(frame, door.address, token);
    const { index, address } = greeting;
    if (!isProven) return undefined;
    if (this.#inbound.has(index) || this.#lost.has(index)) throw unauthenticated();
    this.know(index, address);
    return index;
  }

  #newLiveness(): PeerLiveness | undefined {
    const { heartbeat } = this.#options.door;
    return heartbeat && this.#time && new PeerLiveness(this.#time, heartbeat);
  }

  #receive(from: number, frame: Frame): void {
    if ((frame.flags & frameFlag.beat) !== 0)
      this.#inbound.get(from)?.liveness?.heartbeat(sentMsOf(frame.bytes));
    else if (this.#options.relay?.(from, frame) === true) return;
    else if (frame.of === 0) this.#take(from, frame);
    else if (this.#relays.get(frame.of) === from) this.#take(frame.of, frame);
    // Frames of a lost process are dropped.
    else if (!this.#lost.has(frame.of)) throw notRelayed(frame.of);
  }

  #take(from: number, frame: Frame): void {
    if (frame.route === controlRoute) this.#options.onControl(from, frame.bytes);
    else this.#route(frame);
  }

  #route(frame: Frame): void {
    const route = this.#routes.get(frame.route);
    if (this.#finished.has(frame.route)) return;
    if (route === undefined) {
      this.#early.set(frame.route, [...(this.#early.get(frame.route) ?? []), frame]);
    } else if ((frame.flags & frameFlag.last) !== 0) this.#finish(frame.route);
    else route.deliver(frame.bytes, frame.flags);
  }

  /** Records that nothing more arrives on a route, and calls those that waited for that. */
  #finish(id: number): void {
    this.#routes.delete(id);
    this.#finished.add(id);
    const waiting = this.#atEnd.get(id) ?? [];
    this.#atEnd.delete(id);
    for (const run of waiting) run();
  }

  #lose(index: number, error: Error | undefined): void {
    if (this.#lost.has(index)) return;
    this.#lost.add(index);
    // Before its call is closed: a process that still lives would take that for the end of its system and clean up after it.
    this.#options.onLost(index, error);
    this.#inbound.delete(index);
    this.#relays.delete(index);
    this.#outbound.get(index)?.socket.destroy();
    this.#outbound.delete(index);
    for (const [id, route] of this.#routes) if (route.peer === index) this.#finish(id);
    for (const [process, hub] of this.#relays) if (hub === index) this.#lose(process, undefined);
  }
}

function writeFrame(call: Call, route: number, flags: number, bytes: Uint8Array, of = 0): void {
  const { socket } = call;
  socket.cork();
  socket.write(frameHeader(bytes.length, route, flags, call.numFrames, of));
  if (bytes.length > 0) socket.write(bytes);
  socket.uncork();
  call.numFrames += 1;
}

function notRelayed(process: number): TroupeError {
  return new TroupeError("FRAME_INVALID", {
    where: "hub",
    expected: "frames of the processes that it relays for",
    got: `one of process ${process}`,
    hint: "the other end is not a host of this system, or has another version",
  });
}

/** Returns the bytes of a heartbeat: the time of sending on this process's clock. */
const sentNow = (): Uint8Array => new Uint8Array(new Float64Array([performance.now()]).buffer);

const sentMsOf = (bytes: Uint8Array<ArrayBuffer>): number => new Float64Array(bytes.buffer)[0] as number;

function silent(ageMs: number): TroupeError {
  return new TroupeError("PEER_SILENT", {
    where: "hub",
    expected: "a heartbeat of each process in time",
    got: `none that was sent within ${(ageMs / 1e3).toFixed(1)} s`,
    hint: "its host is down or halted, or the network between the two is cut or too slow",
  });
}
