import { once } from "node:events";
import type { IncomingMessage, Server, ServerResponse } from "node:http";
import type { AddressInfo } from "node:net";
import type { Duplex } from "node:stream";
import { TroupeError } from "../../errors/index.ts";
import {
  Callers,
  callerLimits,
  Gate,
  inUrl,
  keepToken,
  makeToken,
  type Refusal,
} from "../../runtime/access/index.ts";
import {
  type EventSink,
  type OutputFailed,
  stampMs,
  type TellTrouble,
  type TroupeEvent,
} from "../events/index.ts";
import { assetAt } from "./assets.ts";
import { Broadcast } from "./broadcast.ts";
import type { ActorStatus, BoardFrame } from "./frame.ts";
import { RunView } from "./run-view.ts";
import { SpanLog } from "./span-log.ts";

/** Where a dashboard is served. */
export interface DashboardOptions {
  /** An address other than one of this machine's own opens it to others, who need the token. "127.0.0.1" */
  readonly host?: string | undefined;
  /** 0: any free one. 4747, or any free one where that is taken */
  readonly port?: number | undefined;
  /** Keeps the token from one run to the next, so that a page that is open finds the next; else each has its own. */
  readonly tokenFile?: string | undefined;
}

/** What a dashboard looks at besides events. */
export interface DashboardSources {
  /** Reads what every actor does, without asking them. */
  readonly inspect?: () => readonly ActorStatus[];
  /** Milliseconds since 1970. */
  readonly clock?: () => number;
}

const usualPort = 4747;
const maxListeners = 32;
const closeMs = 300;
/** How often a page that listens is told what actors do… */
const boardMs = 200;
/** …but so much less often where there are many of them. */
const boardMsPerActor = 4;

const pageGivenUp: OutputFailed = {
  kind: "output.failed",
  output: "a page of the dashboard",
  error: { message: "it read nothing for half a minute, and is let go" },
};

/** On every answer. `connect-src` and all the others are the page's own address only; nothing is kept, framed or guessed. */
const headers = {
  "Content-Security-Policy":
    "default-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'; object-src 'none'",
  "X-Frame-Options": "DENY",
  "X-Content-Type-Options": "nosniff",
  "Referrer-Policy": "no-referrer",
  "Cross-Origin-Resource-Policy": "same-origin",
  "Cross-Origin-Opener-Policy": "same-origin",
  "Cache-Control": "no-store",
} as const;

/**
 * Serves one page that shows a run while it goes on: a sink of events, which are sent on to every page that listens. The
 * page itself holds nothing of the run and is served to whoever calls this machine by a name of its own; what it shows comes
 * by one stream, which asks for the token. Nothing can be told to the run this way. It never slows a run: pages that read
 * slowly are sent less. It does not keep a program from ending.
 */
export class Dashboard implements EventSink, AsyncDisposable {
  /** Where a browser finds it, the token behind `#`, which browsers keep to themselves. */
  readonly url: string;
  readonly #server: Server;
  readonly #callers: Callers;
  readonly #gate: Gate;
  readonly #view: RunView;
  readonly #broadcast: Broadcast;
  readonly #spans = new SpanLog();
  readonly #inspect: () => readonly ActorStatus[] | undefined;
  readonly #clock: () => number;
  #tell: TellTrouble = () => {};
  #board: NodeJS.Timeout;
  #closed = false;

  private constructor(server: Server, token: string, host: string, sources: DashboardSources) {
    const { port } = server.address() as AddressInfo;
    this.url = `http://${inUrl(host)}:${port}/#token=${token}`;
    this.#server = server;
    this.#callers = new Callers(server);
    this.#gate = new Gate({ host, token });
    this.#clock = sources.clock ?? stampMs;
    this.#inspect = sources.inspect ?? (() => undefined);
    this.#view = new RunView(this.#clock);
    this.#broadcast = new Broadcast(this.#view, () => this.#tell(pageGivenUp));
    this.#board = setTimeout(() => this.#sendBoard(), boardMs).unref();
    server.on("request", (request, response) => this.#answer(request, response));
    // A socket that wants to be something else than HTTP: there is nothing else here.
    for (const event of ["upgrade", "connect"]) server.on(event, refuseSocket);
    server.on("connection", (socket) => socket.unref());
    server.unref();
  }

  /**
   * Opens the port.
   * @throws {TroupeError} `DASHBOARD_PORT` where it is taken or the address is not of this machine, `ACCESS_TOKEN`
   */
  static async open(options: DashboardOptions = {}, sources: DashboardSources = {}): Promise<Dashboard> {
    const { host = "127.0.0.1", port, tokenFile } = options;
    const token = tokenFile === undefined ? makeToken() : await keepToken(tokenFile);
    const server =
      port === undefined
        ? await listen(host, usualPort).catch(() => listen(host, 0))
        : await listen(host, port);
    return new Dashboard(server, token, host, sources);
  }

  attach(tell: TellTrouble): void {
    this.#tell = tell;
  }

  write(event: TroupeEvent): void {
    if (this.#spans.take(event)) return;
    this.#view.apply(event);
    this.#broadcast.wake();
  }

  /** The record's run is gone without a word; unless that is over already. @param heardAtMs - of the last that it told */
  fallSilent(heardAtMs: number): void {
    this.#view.fallSilent(heardAtMs);
    this.#broadcast.wake();
  }

  /** Forgets what it was told, for a record that begins anew. */
  reset(): void {
    this.#view.reset();
    this.#broadcast.wake();
  }

  /** Sends what is left and closes the port. */
  async close(): Promise<void> {
    if (this.#closed) return;
    this.#closed = true;
    clearTimeout(this.#board);
    this.#broadcast.close();
    const closed = once(this.#server, "close");
    this.#server.close();
    // For a browser that does not take the end of its stream.
    const force = setTimeout(() => this.#server.closeAllConnections(), closeMs);
    await closed;
    clearTimeout(force);
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.close();
  }

  #answer(request: IncomingMessage, response: ServerResponse): void {
    for (const [name, value] of Object.entries(headers)) response.setHeader(name, value);
    const refusal = this.#gate.refuse(request);
    const [path = ""] = (request.url ?? "").split("?");
    if (refusal !== undefined) refuse(response, refusal);
    else if (path === "/stream") this.#stream(request, response);
    else serveAsset(path, request.method, response);
  }

  #stream(request: IncomingMessage, response: ServerResponse): void {
    const refusal = this.#gate.refuseUnauthenticated(request);
    if (refusal !== undefined) refuse(response, refusal);
    else if (request.method === "HEAD") response.writeHead(200).end();
    else if (this.#broadcast.numListeners >= maxListeners) {
      refuse(response, { status: 503, reason: "too many pages listen already" });
    } else {
      this.#callers.admit(request.socket);
      const lastEventId = request.headersDistinct["last-event-id"]?.[0];
      this.#broadcast.join(response, lastEventId, this.#look(this.#spans.latest()));
    }
  }

  /** Looks only while someone is there to see it. */
  #sendBoard(): void {
    const spans = this.#spans.takeNew();
    const board = this.#broadcast.numListeners === 0 ? undefined : this.#look(spans);
    const isNews = board?.actors !== undefined || spans.length > 0;
    if (board !== undefined && isNews) this.#broadcast.sendNow(board);
    const numActors = board?.actors?.length ?? 0;
    this.#board = setTimeout(() => this.#sendBoard(), Math.max(boardMs, boardMsPerActor * numActors)).unref();
  }

  #look(spans: BoardFrame["spans"] & object): BoardFrame {
    return { timeMs: this.#clock(), actors: this.#inspect(), spans };
  }
}

function serveAsset(path: string, method: string | undefined, response: ServerResponse): void {
  const asset = assetAt(path);
  if (asset === undefined) {
    refuse(response, { status: 404, reason: "there is nothing here" });
    return;
  }
  response.writeHead(200, { "Content-Type": asset.contentType, "Content-Length": asset.body.length });
  response.end(method === "HEAD" ? undefined : asset.body);
}

function refuse(
  response: ServerResponse,
  { status, reason }: Refusal | { status: 404 | 503; reason: string },
): void {
  response.setHeader("Content-Type", "text/plain; charset=utf-8");
  if (status === 405) response.setHeader("Allow", "GET, HEAD");
  // What a refused request still sends is not read.
  response.setHeader("Connection", "close");
  response.writeHead(status).end(`${reason}\n`);
}

function refuseSocket(_request: IncomingMessage, socket: Duplex): void {
  socket.on("error", () => {});
  socket.end("HTTP/1.1 403 Forbidden\r\nConnection: close\r\nContent-Length: 0\r\n\r\n");
}

async function listen(host: string, port: number): Promise<Server> {
  // Loaded where it serves: every actor's thread imports this module with the job.
  const { createServer } = await import("node:http");
  const server = createServer({ ...callerLimits, requestTimeout: 10_000 });
  try {
    server.listen(port, host);
    await once(server, "listening");
    return server;
  } catch (error) {
    const got = (error as NodeJS.ErrnoException).code ?? String(error);
    throw new TroupeError(
      "DASHBOARD_PORT",
      {
        where: "dashboard",
        expected: `to listen on ${host}, port ${port}`,
        got,
        hint: "choose another port, 0 for any, or an address of this machine",
      },
      { fields: { host, port }, cause: error },
    );
  }
}
