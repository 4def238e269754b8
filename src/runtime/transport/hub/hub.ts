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
import { OwnTime, SignsOfLife } from "./signs-of-life.ts";

/** One end, in this process, of a route to another. */
export interface Route {
  /** The process at the other end. */
  readonly peer: number;
  /** Of that process's door. */
  readonly peerAddress: string;
  /** Brings bytes that came from there to their actor. */
  deliver(bytes: Uint8Array<ArrayBuffer>, flags: number): void;
}

/** How a hub is made. */
export interface HubOptions {
  /** Of this process; 0 is the one that started the others. */
  readonly index: number;
  /** Where others call it; opened by the hub. */
  readonly door: Door;
  /** Known to the processes of this system and to nobody else. */
  readonly token: string;
  readonly maxFrameBytes: number;
  /** Takes what another hub says to this one, which is on `controlRoute`. */
  onControl(from: number, bytes: Uint8Array<ArrayBuffer>): void;
  /**
   * Takes what is not this hub's own: from a process for which it stands in, or for one.
   * @returns whether it has taken the frame; otherwise it is the hub's own after all
   */
  passOn?(from: number, frame: Frame): boolean;
  /** Called at each heartbeat: what is said in it goes with the signs of life. */
  onBeat?(): void;
  /** Another process can be heard no more; `error` where it said what cannot be, or one of the two did not trust the other. */
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
  /** None where the end of a process closes its sockets at once. */
  readonly signs: SignsOfLife | undefined;
}

// Whose sign is too old is to be known before the next one would be due.
const looksPerBeat = 4;

/** The route of what hubs say to each other. */
const controlRoute = 0;

/**
 * The post office of one process: takes bytes to and from other processes, over a socket for each direction, and never
 * looks into them. It writes only where it has called and reads only where it was called; no call is answered but one that is refused. So two that
 * call each other at once do not collide, and the last words of a process that is killed arrive: a socket that is closed while something in
 * it is unread drops what is under way. Lives on the main thread, which never computes.
 */
export class Hub {
  readonly index: number;
  readonly #options: HubOptions;
  readonly #addresses = new Map<number, string>();
  readonly #outbound = new Map<number, Call>();
  readonly #inbound = new Map<number, Caller>();
  /** The hub that passes on what a process says and hears. */
  readonly #behind = new Map<number, number>();
  readonly #routes = new Map<number, Route>();
  /** Frames that came before their route was opened here. */
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

  /** What other processes call this one by. */
  get address(): string {
    return this.#options.door.address;
  }

  /** Enters where another process can be called. */
  know(index: number, address: string): void {
    this.#addresses.set(index, address);
  }

  /** Enters that another process is reached through a hub that passes on what it says and hears: it is lost with that. */
  knowBehind(index: number, hub: number): void {
    this.#behind.set(index, hub);
  }

  /** Passes a frame on as it came. @param of - see {@link Frame.of} */
  pass(to: number, { route, flags, bytes }: Frame, of = 0): void {
    this.#write(to, route, flags, bytes, of);
  }

  /** Says something to another hub. */
  control(to: number, bytes: Uint8Array): void {
    this.#write(to, controlRoute, 0, bytes);
  }

  /** Opens this end of a route; what came for it before is delivered now. */
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

  /** Ends this end of a route: what was sent before still arrives. */
  closeRoute(id: number): void {
    const route = this.#routes.get(id);
    if (route === undefined) return;
    this.#write(route.peer, id, frameFlag.last, new Uint8Array());
    this.#finish(id);
  }

  /** Calls `run` once nothing more can come over this route; at once where that is so already. */
  afterRoute(id: number, run: () => void): void {
    if (this.#finished.has(id)) run();
    else this.#atEnd.set(id, [...(this.#atEnd.get(id) ?? []), run]);
  }

  /** Takes in that another process can be heard no more, unless its own last words will say so. */
  lose(index: number, error?: Error): void {
    if (!this.#inbound.has(index)) this.#lose(index, error);
  }

  /**
   * Says its last to all, or all but `staying`; resolves when each of them has taken in all that this process has said to it, or is lost.
   * What is under way when a process ends may end with it: a call that is not answered yet, and what no socket holds.
   */
  async leave(staying?: number): Promise<void> {
    const calls = [...this.#outbound].filter(([to]) => to !== staying);
    await Promise.all(
      calls.map(async ([, { socket }]) => {
        socket.end();
        // Who has read to the end of a call ends it too.
        if (!socket.closed) await new Promise((resolve) => socket.once("close", resolve));
      }),
    );
  }

  /** Nothing is sent or received after it. */
  close(): void {
    clearInterval(this.#heart);
    this.#options.door.close();
    for (const { socket } of this.#outbound.values()) socket.destroy();
    for (const { socket } of this.#inbound.values()) socket.destroy();
  }

  /** Takes those for lost whose signs are too old; a look in so many is a heartbeat. */
  #look({ everyMs, lostAfter }: Heartbeat): void {
    this.#time?.turn();
    this.#numLooks += 1;
    if (this.#numLooks % looksPerBeat === 0) this.#beat();
    for (const { signs, socket } of this.#inbound.values())
      if (signs !== undefined && signs.ageMs > everyMs * lostAfter) socket.destroy(silent(signs.ageMs));
  }

  /** Says to all who are called that this process is there. */
  #beat(): void {
    const calls = [...this.#outbound.values()].filter(({ socket }) => socket.writable);
    for (const { socket } of calls) socket.cork();
    this.#options.onBeat?.();
    for (const call of calls) writeFrame(call, controlRoute, frameFlag.beat, sentNow());
    for (const { socket } of calls) socket.uncork();
    for (const { signs } of this.#inbound.values()) signs?.turn();
  }

  #write(to: number, route: number, flags: number, bytes: Uint8Array, of = 0): void {
    if (this.#lost.has(to)) return;
    const hub = this.#behind.get(to);
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
    // The end of one that has called comes by the other direction, behind its last words; of one that never has, there are none.
    socket.on("close", () => {
      if (!this.#inbound.has(to)) this.#lose(to, refusal);
    });
    writeFrame(call, controlRoute, 0, packGreeting({ index, address: door.address }, address, token));
    return call;
  }

  /** Reads a caller's first frame, which says who it is. A caller without the token gets a refusal, and is read no further. */
  #accept(socket: Socket, admit: () => void): void {
    const reader = new FrameReader(greetingBytes);
    let from: number | undefined;
    let error: Error | undefined;
    let isRefused = false;
    socket.on("data", (piece: Uint8Array) => {
      if (isRefused) return;
      if (from !== undefined) this.#inbound.get(from)?.signs?.came(piece.length);
      try {
        reader.read(piece, (frame) => {
          if (isRefused) return;
          if (from !== undefined) return this.#receive(from, frame);
          from = this.#greet(frame);
          isRefused = from === undefined;
          if (from === undefined) return void socket.end(refusalFrame({ reason: "token" }));
          reader.allow(this.#options.maxFrameBytes);
          admit();
          this.#inbound.set(from, { socket, signs: this.#newSigns() });
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
   * Notes which process calls, and where to call it back. A process that was lost stays lost: its messages meanwhile are gone.
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

  #newSigns(): SignsOfLife | undefined {
    const { heartbeat } = this.#options.door;
    return heartbeat && this.#time && new SignsOfLife(this.#time, heartbeat);
  }

  #receive(from: number, frame: Frame): void {
    if ((frame.flags & frameFlag.beat) !== 0) this.#inbound.get(from)?.signs?.sign(sentMsOf(frame.bytes));
    else if (this.#options.passOn?.(from, frame) === true) return;
    else if (frame.of === 0) this.#take(from, frame);
    else if (this.#behind.get(frame.of) === from) this.#take(frame.of, frame);
    // Of one that is lost nothing is heard any more.
    else if (!this.#lost.has(frame.of)) throw notBehind(frame.of);
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

  /** Nothing more comes over the route: whoever waited for that goes on. */
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
    // Before its call is ended: one that still lived would take that for the end of its system, and clear up behind it.
    this.#options.onLost(index, error);
    this.#inbound.delete(index);
    this.#behind.delete(index);
    this.#outbound.get(index)?.socket.destroy();
    this.#outbound.delete(index);
    for (const [id, route] of this.#routes) if (route.peer === index) this.#finish(id);
    for (const [process, hub] of this.#behind) if (hub === index) this.#lose(process, undefined);
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

function notBehind(process: number): TroupeError {
  return new TroupeError("FRAME_INVALID", {
    where: "hub",
    expected: "what a process of its own says",
    got: `what process ${process} is to have said`,
    hint: "the other end is no host of this system, or of another version",
  });
}

/** What a sign of life says: when it was sent, on its sender's clock. */
function sentNow(): Uint8Array {
  return new Uint8Array(new Float64Array([performance.now()]).buffer);
}

function sentMsOf(bytes: Uint8Array<ArrayBuffer>): number {
  return new Float64Array(bytes.buffer)[0] as number;
}

function silent(ageMs: number): TroupeError {
  return new TroupeError("PEER_SILENT", {
    where: "hub",
    expected: "a sign from each process every heartbeat",
    got: `none that was sent within ${(ageMs / 1e3).toFixed(1)} s`,
    hint: "its host is down or stands still, or the network between the two is cut or too slow",
  });
}
