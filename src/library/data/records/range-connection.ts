import { connect, isIP, type Socket } from "node:net";

/** The beginning of an answer: its status and what it says of itself. */
export type AnswerHead = Pick<Response, "status" | "headers">;

/** How a range is asked for. */
export interface RangeAsked {
  readonly begin: number;
  readonly end: number;
  /** Decides by the head whether the bytes are the wanted ones. Its error is thrown. */
  readonly accept: (head: AnswerHead) => boolean;
}

/** How long a server may send nothing before the request is repeated. */
export const SILENCE_MS = 30_000;
/** A longer head is no answer to a range. */
const MOST_HEAD_BYTES = 16 << 10;

/** Connections that nobody uses, by origin. */
const idle = new Map<string, RangeConnection[]>();

/**
 * Asks a server for bytes `begin` to `end` of a file, over a connection that is kept for the next. They are received where they
 * stay: `fetch` and `node:http` copy them twice, which takes twice the processor's time of reading a local file.
 * @returns undefined for any other answer than these bytes, as they are, with their length: a redirect, an error, a part of them
 * @throws {Error} where the connection fails, or nothing comes for {@link SILENCE_MS}
 */
export async function askRange(url: URL, asked: RangeAsked): Promise<Buffer | undefined> {
  const known = idle.get(url.origin) ?? [];
  idle.set(url.origin, known);
  const connection =
    known.pop() ??
    new RangeConnection(url, (ended) => {
      const place = known.indexOf(ended);
      if (place >= 0) known.splice(place, 1);
    });
  const bytes = await connection.ask(url, asked);
  if (connection.isReusable) known.push(connection);
  else connection.close();
  return bytes;
}

/** An answer that is waited for. */
interface Waiting extends RangeAsked {
  readonly resolve: (bytes: Buffer | undefined) => void;
  readonly reject: (error: Error) => void;
}

/** A connection to a server, on which one range is asked for after the other. */
class RangeConnection {
  readonly #socket: Socket;
  readonly #head = Buffer.allocUnsafeSlow(MOST_HEAD_BYTES);
  #waiting: Waiting | undefined;
  #body: Buffer | undefined;
  /** Bytes of the body, or else of the head, that are there. */
  #numBytes = 0;
  isReusable = false;

  constructor({ protocol, hostname, port }: URL, onEnd: (ended: RangeConnection) => void) {
    const isSecure = protocol === "https:";
    const host = hostname.replace(/^\[|\]$/g, "");
    const options = {
      host,
      port: port === "" ? (isSecure ? 443 : 80) : Number(port),
      onread: {
        buffer: () => this.#space(),
        callback: (numBytes: number) => this.#receive(numBytes),
      },
    };
    // TLS is loaded only for a secure origin: it would take 3 ms of each thread that loads a job.
    this.#socket = isSecure
      ? process
          .getBuiltinModule("node:tls")
          .connect({ ...options, ALPNProtocols: ["http/1.1"], servername: isIP(host) ? "" : host })
      : connect({ ...options, noDelay: true });
    // Also ends a connection that is idle.
    this.#socket.setTimeout(SILENCE_MS, () => this.#socket.destroy(new Error("silence")));
    let cause = new Error("the connection was closed");
    this.#socket.on("error", (error) => {
      cause = error;
    });
    this.#socket.on("close", () => {
      this.isReusable = false;
      onEnd(this);
      this.#waiting?.reject(cause);
    });
  }

  ask({ host, pathname, search }: URL, asked: RangeAsked): Promise<Buffer | undefined> {
    this.isReusable = false;
    this.#socket.ref();
    const answer = new Promise<Buffer | undefined>((resolve, reject) => {
      this.#waiting = { ...asked, resolve, reject };
    });
    const lines = [
      `GET ${pathname}${search} HTTP/1.1`,
      `host: ${host}`,
      `range: bytes=${asked.begin}-${asked.end - 1}`,
      ...["accept: */*", "accept-encoding: identity", "user-agent: troupe"],
    ];
    this.#socket.write(`${lines.join("\r\n")}\r\n\r\n`, "latin1");
    return answer;
  }

  close(): void {
    this.#socket.destroy();
  }

  /** Where the next bytes are to be put. */
  #space(): Buffer {
    return (this.#body ?? this.#head).subarray(this.#numBytes);
  }

  /** Takes note of bytes that were put there. @returns true: more are wanted */
  #receive(numBytes: number): boolean {
    this.#numBytes += numBytes;
    try {
      if (this.#waiting === undefined) this.close();
      else if (this.#body === undefined) this.#readHead(this.#waiting);
      if (this.#body?.length === this.#numBytes) this.#answer(this.#body);
    } catch (error) {
      this.#waiting?.reject(error as Error);
      this.#waiting = undefined;
      this.close();
    }
    return true;
  }

  #readHead(waiting: Waiting): void {
    const { begin, end, accept } = waiting;
    const received = this.#head.subarray(0, this.#numBytes);
    const blank = received.indexOf("\r\n\r\n");
    if (blank < 0) {
      if (received.length === MOST_HEAD_BYTES) this.#answer(undefined);
      return;
    }
    const head = headOf(received.toString("latin1", 0, blank));
    const isPlain =
      head !== undefined &&
      !head.headers.has("transfer-encoding") &&
      (head.headers.get("content-encoding") ?? "identity") === "identity" &&
      head.headers.get("content-length") === `${end - begin}`;
    const first = received.subarray(blank + 4);
    if (!(head !== undefined && accept(head) && isPlain && first.length <= end - begin)) {
      this.#answer(undefined);
      return;
    }
    this.isReusable = !/close/i.test(head.headers.get("connection") ?? "");
    this.#body = Buffer.allocUnsafeSlow(end - begin);
    this.#body.set(first);
    this.#numBytes = first.length;
  }

  #answer(bytes: Buffer | undefined): void {
    const waiting = this.#waiting;
    [this.#waiting, this.#body, this.#numBytes] = [undefined, undefined, 0];
    this.#socket.unref();
    waiting?.resolve(bytes);
  }
}

/** Reads a head of HTTP/1.1; undefined for another. */
function headOf(text: string): AnswerHead | undefined {
  const [first = "", ...lines] = text.split("\r\n");
  const [, status] = /^HTTP\/1\.1 (\d{3})(?: |$)/.exec(first) ?? [];
  if (status === undefined) return undefined;
  const headers = new Headers();
  for (const line of lines) {
    const [, name, value] = /^([!#$%&'*+.^_`|~0-9A-Za-z-]+):[ \t]*(.*?)[ \t]*$/.exec(line) ?? [];
    if (name === undefined || value === undefined) return undefined;
    headers.append(name, value);
  }
  return { status: Number(status), headers };
}
