import { TroupeError } from "../../errors/index.ts";
import { Gate, inUrl, keepToken, makeToken } from "../../runtime/access/index.ts";
import {
  type EventSink,
  type OutputFailed,
  stampMs,
  type TellTrouble,
  type TroupeEvent,
} from "../events/index.ts";
import { type Call, HttpServer, Refused, reply } from "../http.ts";
import { assetAt } from "./assets.ts";
import { Broadcast } from "./broadcast.ts";
import type { ActorStatus, BoardFrame } from "./frame.ts";
import { RecentSpans } from "./recent-spans.ts";
import { RunView } from "./run-view.ts";

/** Options of {@link Dashboard}. */
export interface DashboardOptions {
  /** Address to listen on; other machines can reach any but a loopback address, and need the token. Default: "127.0.0.1". */
  readonly host?: string | undefined;
  /** Port; 0: any free one. Default: 4747, or any free one if that is taken. */
  readonly port?: number | undefined;
  /** File that keeps the token between runs, so that an open page finds the next run. Default: a new token for each run. */
  readonly tokenFile?: string | undefined;
}

/** Sources of the dashboard besides events. */
export interface DashboardSources {
  /** Reads the state of every actor from shared memory, without a message. */
  readonly inspect?: () => readonly ActorStatus[];
  /** Milliseconds since 1970. */
  readonly clock?: () => number;
}

const usualPort = 4747;
const maxListeners = 32;
const closeMs = 300;
/** Least time between two sends of the status board. */
const boardMs = 200;
/** Time between two sends for each actor, where there are many. */
const boardMsPerActor = 4;

const pageGivenUp: OutputFailed = {
  kind: "output.failed",
  output: "a page of the dashboard",
  error: { message: "it read nothing for half a minute and was disconnected" },
};

/** Headers of every answer, besides the server's own: the page may load from and call its own address only. */
const headers = {
  "content-security-policy":
    "default-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'; object-src 'none'",
  "referrer-policy": "no-referrer",
  "cross-origin-resource-policy": "same-origin",
  "cross-origin-opener-policy": "same-origin",
} as const;

/**
 * Serves one web page that shows a run while it trains: a sink that sends events to every listening page. The page itself
 * contains nothing of the run and needs no token; its data come in one stream, which does. The page cannot control the run. Pages
 * that read slowly are sent less, so the run is never slowed. The server does not keep the process running.
 */
export class Dashboard implements EventSink, AsyncDisposable {
  /** Address for a browser; the token is behind `#`, which browsers do not send. */
  readonly url: string;
  readonly #server: HttpServer;
  readonly #view: RunView;
  readonly #broadcast: Broadcast;
  readonly #spans = new RecentSpans();
  readonly #inspect: () => readonly ActorStatus[] | undefined;
  readonly #clock: () => number;
  #tell: TellTrouble = () => {};
  #board: NodeJS.Timeout;
  #closed = false;

  private constructor(server: HttpServer, url: string, sources: DashboardSources) {
    this.url = url;
    this.#server = server;
    this.#clock = sources.clock ?? stampMs;
    this.#inspect = sources.inspect ?? (() => undefined);
    this.#view = new RunView(this.#clock);
    this.#broadcast = new Broadcast(this.#view, () => this.#tell(pageGivenUp));
    this.#board = setTimeout(() => this.#sendBoard(), boardMs).unref();
    server.serve((call) => this.#answer(call));
  }

  /** Opens the port. @throws {TroupeError} `DASHBOARD_PORT` if it is taken or not an address of this machine; `ACCESS_TOKEN` */
  static async open(options: DashboardOptions = {}, sources: DashboardSources = {}): Promise<Dashboard> {
    const { host = "127.0.0.1", port, tokenFile } = options;
    const token = tokenFile === undefined ? makeToken() : await keepToken(tokenFile);
    const server = await HttpServer.open({ gate: new Gate({ host, token }), headers, refusesUpgrades: true });
    const listen = (port: number) => server.listen(host, port, (cause) => notFree(host, port, cause));
    const listened = port === undefined ? await listen(usualPort).catch(() => listen(0)) : await listen(port);
    return new Dashboard(server, `http://${inUrl(host)}:${listened}/#token=${token}`, sources);
  }

  attach(tell: TellTrouble): void {
    this.#tell = tell;
  }

  write(event: TroupeEvent): void {
    if (this.#spans.take(event)) return;
    this.#view.apply(event);
    this.#broadcast.wake();
  }

  /** Marks a recorded run that stopped reporting as silent, unless it has ended. @param heardAtMs - time of its last event */
  fallSilent(heardAtMs: number): void {
    this.#view.fallSilent(heardAtMs);
    this.#broadcast.wake();
  }

  /** Drops all state, for a record that is read again from its start. */
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
    // Some browsers do not react to the end of their stream.
    await this.#server.close(closeMs);
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.close();
  }

  #answer(call: Call): void {
    if (call.path === "/stream") {
      this.#stream(call);
      return;
    }
    const asset = assetAt(call.path);
    if (asset === undefined) throw new Refused(404, "there is nothing here");
    reply(call, asset.contentType, asset.body);
  }

  #stream(call: Call): void {
    const { request, response } = call;
    call.authenticate();
    if (request.method === "HEAD") {
      response.writeHead(200).end();
      return;
    }
    if (this.#broadcast.numListeners >= maxListeners) throw new Refused(503, "too many pages listen already");
    call.admit();
    const lastEventId = request.headersDistinct["last-event-id"]?.[0];
    this.#broadcast.join(response, lastEventId, this.#look(this.#spans.latest()));
  }

  /** Sends the status board if any page listens. */
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

function notFree(host: string, port: number, cause: NodeJS.ErrnoException): TroupeError {
  const expected = `to listen on ${host}, port ${port}`;
  const hint = "choose another port, 0 for any, or an address of this machine";
  const operands = { where: "dashboard", expected, got: cause.code ?? String(cause), hint };
  return new TroupeError("DASHBOARD_PORT", { ...operands, fields: { host, port }, cause });
}
