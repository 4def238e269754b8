import { once } from "node:events";
import { connect, createServer, type Server, type Socket } from "node:net";
import { join } from "node:path";
import { TroupeError } from "../../../errors.ts";
import { type Frame, FrameReader, frameFlag, frameHeader } from "../frame.ts";

/** One end, in this process, of a route to another. */
export interface Route {
  /** The process at the other end. */
  readonly peer: number;
  /** Brings bytes that came from there to their actor. */
  deliver(bytes: Uint8Array<ArrayBuffer>, flags: number): void;
}

/** How a hub is made. */
export interface HubOptions {
  /** Of this process; 0 is the one that started the others. */
  readonly index: number;
  /** Where the sockets of all processes lie: nobody else may enter it. */
  readonly folder: string;
  /** Known to the processes of this system and to nobody else. */
  readonly token: string;
  readonly maxFrameBytes: number;
  /** Takes what another hub says to this one, which is on `controlRoute`. */
  onControl(from: number, bytes: Uint8Array<ArrayBuffer>): void;
  /** Another process can be heard no more; `error` where it said what cannot be. */
  onLost(index: number, error: Error | undefined): void;
}

/** A call to another process. */
interface Call {
  readonly socket: Socket;
  /** Frames written to it. */
  numFrames: number;
}

/** The route of what hubs say to each other. */
export const controlRoute = 0;

/**
 * One process's door: takes bytes to and from the processes beside it, over a Unix socket for each direction, and never
 * looks into them. It writes only where it has called and reads only where it was called, so two that call each other at
 * once do not collide. Lives on the main thread, which never computes.
 */
export class Hub {
  readonly index: number;
  readonly #options: HubOptions;
  readonly #server: Server;
  readonly #outbound = new Map<number, Call>();
  readonly #inbound = new Map<number, Socket>();
  readonly #routes = new Map<number, Route>();
  /** Frames that came before their route was opened here. */
  readonly #early = new Map<number, Frame[]>();
  readonly #finished = new Set<number>();
  readonly #atEnd = new Map<number, (() => void)[]>();
  readonly #lost = new Set<number>();

  private constructor(options: HubOptions, server: Server) {
    this.index = options.index;
    this.#options = options;
    this.#server = server;
    server.on("connection", (socket) => this.#accept(socket));
  }

  /** Opens this process's door. */
  static async open(options: HubOptions): Promise<Hub> {
    const server = createServer();
    const hub = new Hub(options, server);
    server.listen(socketPath(options.folder, options.index));
    await once(server, "listening");
    return hub;
  }

  /** Says something to another hub. */
  control(to: number, bytes: Uint8Array): void {
    this.#write(to, controlRoute, 0, bytes);
  }

  /** Opens this end of a route; what came for it before is delivered now. */
  openRoute(id: number, route: Route): void {
    this.#routes.set(id, route);
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

  /** Takes in that another process has ended, unless its own last words will say so. */
  lose(index: number): void {
    if (!this.#inbound.has(index)) this.#lose(index, undefined);
  }

  /** Leaves: nothing is sent or received after it. */
  close(): void {
    this.#server.close();
    for (const { socket } of this.#outbound.values()) socket.destroy();
    for (const socket of this.#inbound.values()) socket.destroy();
  }

  #write(to: number, route: number, flags: number, bytes: Uint8Array): void {
    if (this.#lost.has(to)) return;
    writeFrame(this.#outbound.get(to) ?? this.#call(to), route, flags, bytes);
  }

  #call(to: number): Call {
    const { folder, index, token } = this.#options;
    const socket = connect(socketPath(folder, to));
    const call = { socket, numFrames: 0 };
    this.#outbound.set(to, call);
    socket.on("error", () => {});
    // The end of one that has called comes by the other direction, behind its last words; of one that never has, there are none.
    socket.on("close", () => this.lose(to));
    writeFrame(call, controlRoute, 0, new TextEncoder().encode(JSON.stringify([index, token])));
    return call;
  }

  /** The first frame of a caller says who it is. */
  #accept(socket: Socket): void {
    const reader = new FrameReader(this.#options.maxFrameBytes);
    let from: number | undefined;
    let error: Error | undefined;
    socket.on("data", (piece: Uint8Array) => {
      try {
        reader.read(piece, (frame) => {
          if (from !== undefined) return this.#receive(from, frame);
          from = this.#greet(frame);
          this.#inbound.set(from, socket);
        });
      } catch (caught) {
        error = caught as Error;
        socket.destroy();
      }
    });
    socket.on("error", () => {});
    socket.on("close", () => {
      if (from !== undefined) this.#lose(from, error);
    });
  }

  #greet({ bytes }: Frame): number {
    const [index, token] = JSON.parse(new TextDecoder().decode(bytes)) as [unknown, unknown];
    if (token === this.#options.token && typeof index === "number" && !this.#inbound.has(index)) return index;
    throw new TroupeError("FRAME_INVALID", {
      where: "hub",
      expected: "a process of this system",
      got: "an unauthenticated peer",
      hint: "nothing is to be done",
    });
  }

  #receive(from: number, frame: Frame): void {
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
    this.#outbound.get(index)?.socket.destroy();
    this.#outbound.delete(index);
    for (const [id, route] of this.#routes) if (route.peer === index) this.#finish(id);
  }
}

function writeFrame(call: Call, route: number, flags: number, bytes: Uint8Array): void {
  const { socket } = call;
  socket.cork();
  socket.write(frameHeader(bytes.length, route, flags, call.numFrames));
  if (bytes.length > 0) socket.write(bytes);
  socket.uncork();
  call.numFrames += 1;
}

/** The socket of one process. */
export function socketPath(folder: string, index: number): string {
  return join(folder, `p${index}.sock`);
}
