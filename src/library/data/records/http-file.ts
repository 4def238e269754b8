import { pooled } from "./beside.ts";
import { findHttp, type HttpPlace, readHttp } from "./http-range.ts";
import type { HttpRequest } from "./http-worker.ts";
import type { RangedFile } from "./ranged-file.ts";

/** Smaller parts are read by the calling thread. */
const LEAST_BYTES = 256 << 10;

/** Two threads receive a gigabyte a second together. */
const receive = pooled<HttpRequest, Uint8Array>(new URL("./http-worker.ts", import.meta.url), 2);

/** A file on a web server that answers ranges. Large parts are received by other threads: the calling one has records to read. */
export class HttpFile implements RangedFile {
  readonly place: string;
  readonly sizeBytes: number;
  readonly mark: string;
  readonly #at: HttpPlace;
  readonly #isAlone: boolean;

  private constructor(at: HttpPlace, isAlone: boolean) {
    this.#at = at;
    this.#isAlone = isAlone;
    this.place = at.place;
    this.sizeBytes = at.sizeBytes;
    this.mark = at.mark;
  }

  /**
   * @param isAlone - whether the calling thread has nothing else to do, and receives all parts
   * @throws {TroupeError} `DATA_MISSING`, `DATA_UNREADABLE`, also for a server that answers no ranges
   */
  static async open(url: string, isAlone: boolean): Promise<HttpFile> {
    return new HttpFile(await findHttp(url), isAlone);
  }

  async read(begin: number, end: number): Promise<Buffer> {
    if (begin === end) return Buffer.alloc(0);
    if (this.#isAlone || end - begin < LEAST_BYTES) return readHttp(this.#at, begin, end);
    const { buffer, byteOffset, byteLength } = await receive({ at: this.#at, begin, end });
    return Buffer.from(buffer as ArrayBuffer, byteOffset, byteLength);
  }
}
