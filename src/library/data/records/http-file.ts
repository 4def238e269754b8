import { setTimeout as sleep } from "node:timers/promises";
import { TroupeError } from "../../../errors/index.ts";
import { unreadable } from "../formats/index.ts";
import { dataChanged } from "../noted-files.ts";
import { type AnswerHead, askRange, SILENCE_MS } from "./range-connection.ts";
import type { RangedFile } from "./ranged-file.ts";

/** Pauses before a request is repeated: a server that restarts is waited for, one that is gone is reported in half a minute. */
const PAUSES_MS = [100, 400, 1_600, 6_400, 20_000];
/** Where Node is to ask a proxy, `fetch` alone does. */
const isProxied =
  process.env.NODE_USE_ENV_PROXY === "1" ||
  `${process.env.NODE_OPTIONS} ${process.execArgv}`.includes("--use-env-proxy");

/** A file on a web server that answers ranges. */
export class HttpFile implements RangedFile {
  readonly place: string;
  readonly sizeBytes: number;
  readonly mark: string;
  readonly #url: string;
  /** The address that answered, behind redirects; undefined where it must be asked by `fetch`. */
  #direct: URL | undefined;

  private constructor(
    url: string,
    {
      sizeBytes,
      mark,
      direct,
    }: Pick<RangedFile, "sizeBytes" | "mark"> & { readonly direct: URL | undefined },
  ) {
    this.#url = url;
    this.#direct = direct;
    this.place = placeOf(url);
    this.sizeBytes = sizeBytes;
    this.mark = mark;
  }

  /** @throws {TroupeError} `DATA_MISSING`, `DATA_UNREADABLE`, also for a server that answers no ranges */
  static async open(url: string): Promise<HttpFile> {
    // Asked for by its first byte: servers answer HEAD otherwise than GET, or not at all.
    return repeated(placeOf(url), () =>
      request(url, 0, 1, async (response) => {
        const size = sizeIn(response);
        if (size === undefined) throw refused(placeOf(url), response);
        const direct = isProxied ? undefined : new URL(response.url);
        return new HttpFile(url, { sizeBytes: size, mark: markIn(response, size), direct });
      }),
    );
  }

  async read(begin: number, end: number): Promise<Buffer> {
    if (begin === end) return Buffer.alloc(0);
    return repeated(this.place, async () => {
      const direct = this.#direct;
      const accept = (head: AnswerHead) => this.#accepts(head);
      const received = direct && (await passing(() => askRange(direct, { begin, end, accept })));
      if (received !== undefined) return received;
      return request(this.#url, begin, end, async (response, heard) => {
        if (!this.#accepts(response)) throw refused(this.place, response);
        // An address that answers `fetch` alone, such as by parts without a length, is not asked twice again.
        const { url } = response;
        if (direct !== undefined) this.#direct = url === direct.href ? undefined : new URL(url);
        return bodyOf(response, end - begin, heard);
      });
    });
  }

  /** Whether an answer has bytes of this file. @throws {TroupeError} `DATA_CHANGED`; {Passing} */
  #accepts(head: AnswerHead): boolean {
    refusePassing(head);
    const size = sizeIn(head);
    if (head.status !== 206 || size === undefined) return false;
    if (markIn(head, size) === this.mark) return true;
    throw dataChanged(this.place, "another file, or other bytes");
  }
}

/** An address without its query and password, which may be secrets. */
function placeOf(address: string): string {
  const { origin, pathname } = new URL(address);
  return `${origin}${pathname}`;
}

/** An answer that another request may not give. */
class Passing extends Error {}

/** @throws {Passing} for an answer of a server that is busy or broken */
function refusePassing({ status }: AnswerHead): void {
  if (status === 408 || status === 429 || status >= 500) throw new Passing(`status ${status}`);
}

/** Turns failures of the connection into {@link Passing}. */
async function passing<T>(attempt: () => Promise<T>): Promise<T> {
  try {
    return await attempt();
  } catch (cause) {
    if (cause instanceof Passing || cause instanceof TroupeError) throw cause;
    const reason = (cause as Error).cause ?? cause;
    // The error of a name with several addresses has no words.
    const { message, code } = reason as NodeJS.ErrnoException;
    throw new Passing(message || code, { cause });
  }
}

/**
 * Asks for bytes `begin` to `end`.
 * @param receive - reads the answer, calling `heard` for each part; what it leaves of the body is not waited for
 * @throws {Passing} also where the server sends nothing for half a minute
 */
async function request<T>(
  url: string,
  begin: number,
  end: number,
  receive: (response: Response, heard: () => void) => Promise<T>,
): Promise<T> {
  const stopper = new AbortController();
  // One timer for all parts of an answer: a block has many.
  const timer = setTimeout(() => stopper.abort(new Passing("silence")), SILENCE_MS);
  try {
    const headers = { range: `bytes=${begin}-${end - 1}`, "accept-encoding": "identity" };
    return await passing(async () => {
      const response = await fetch(url, { headers, signal: stopper.signal });
      refusePassing(response);
      return receive(response, () => timer.refresh());
    });
  } finally {
    clearTimeout(timer);
    stopper.abort();
  }
}

/** Reads a body of `length` bytes, refusing one that ends before or goes on. */
async function bodyOf(response: Response, length: number, heard: () => void): Promise<Buffer> {
  const buffer = Buffer.allocUnsafeSlow(length);
  const reader = response.body?.getReader();
  let filled = 0;
  for (;;) {
    const part = await reader?.read();
    if (part === undefined || part.done) break;
    heard();
    if (filled + part.value.length > length) throw new Passing("more bytes than asked for");
    buffer.set(part.value, filled);
    filled += part.value.length;
  }
  if (filled !== length) throw new Passing(`${filled} of ${length} bytes`);
  return buffer;
}

async function repeated<T>(place: string, attempt: () => Promise<T>): Promise<T> {
  for (const pause of PAUSES_MS) {
    try {
      return await attempt();
    } catch (error) {
      if (!(error instanceof Passing)) throw error;
      await sleep(pause);
    }
  }
  return attempt().catch((error: unknown) => {
    throw error instanceof Passing ? unreadable(place, error) : error;
  });
}

/** The size of the complete file by an answer to a range; undefined for another answer. */
function sizeIn({ status, headers }: AnswerHead): number | undefined {
  if (status !== 206 && status !== 416) return undefined;
  const [, size] = /^bytes (?:\d+-\d+|\*)\/(\d+)$/.exec(headers.get("content-range") ?? "") ?? [];
  return size === undefined ? undefined : Number(size);
}

function markIn({ headers }: AnswerHead, size: number): string {
  return `${size} ${headers.get("etag") ?? headers.get("last-modified") ?? ""}`;
}

function refused(place: string, { status }: Response): TroupeError {
  const isMissing = status === 404 || status === 410;
  return new TroupeError(isMissing ? "DATA_MISSING" : "DATA_UNREADABLE", {
    where: "data",
    expected: status === 200 ? `a server that answers ranges (status 206) at ${place}` : `a file at ${place}`,
    got: `status ${status}`,
    hint: status === 200 ? "copy the file to this machine, or to a server with ranges" : undefined,
    fields: { place, status },
  });
}
