import { TroupeError } from "../../../../errors/index.ts";
import { isAbsent, request, type S3Connection } from "../../../s3-client.ts";
import { type Bytes, layInto } from "../bytes.ts";
import type { FileSums, ReadHow, StoredFile } from "../storage.ts";
import { crc32c } from "../summed-file.ts";

/** The most bytes per request, and requests in flight. */
const fetchBytes = 16 << 20;
const numAtOnce = 4;

/** Bytes `begin` to `end` of a file, and the stretches within them. */
interface Fetch {
  readonly begin: number;
  readonly end: number;
  readonly stretches: readonly (readonly [begin: number, target: number, sizeBytes: number])[];
}

/** An object, read by ranges, with its checksums verified. */
export class S3File implements StoredFile {
  readonly path: string;
  readonly sizeBytes: number;
  readonly #connection: S3Connection;
  readonly #key: string;
  /** Identifies the object that was opened: a later version must not be read. */
  readonly #etag: string | undefined;

  private constructor(connection: S3Connection, key: string, sizeBytes: number, etag: string | undefined) {
    this.path = `s3://${connection.bucket}/${key}`;
    this.sizeBytes = sizeBytes;
    this.#connection = connection;
    this.#key = key;
    this.#etag = etag;
  }

  /** Opens an object. @throws {TroupeError} `FILE_READ` where it does not exist, `S3_FAILED` where it cannot be read */
  static async open(connection: S3Connection, key: string): Promise<S3File> {
    const head = await requestExisting(connection, "find", key, (client, sdk, object) =>
      client.send(new sdk.HeadObjectCommand(object)),
    );
    return new S3File(connection, key, head.ContentLength ?? 0, head.ETag);
  }

  async read(stretches: Float64Array, into: Bytes, how: ReadHow): Promise<number> {
    const fetches = planFetches(stretches, how.sums, this.sizeBytes);
    const waiting = fetches.values();
    const work = async () => {
      for (const fetch of waiting) await this.#fetch(fetch, into, how);
    };
    await Promise.all(Array.from({ length: Math.min(numAtOnce, fetches.length) }, work));
    return fetches.reduce((sum, { begin, end }) => sum + end - begin, 0);
  }

  async [Symbol.asyncDispose](): Promise<void> {}

  async #fetch({ begin, end, stretches }: Fetch, into: Bytes, { sums, what }: ReadHow): Promise<void> {
    const bytes = await this.#range(begin, end);
    if (bytes.length !== end - begin)
      throw this.#damaged(begin, end, what, "as many bytes", `${bytes.length}`);
    if (sums !== undefined) {
      for (let at = begin; at < end; at += sums.chunkBytes) {
        const chunk = bytes.subarray(at - begin, Math.min(at + sums.chunkBytes, end) - begin);
        const expected = sums.crc32c[at / sums.chunkBytes];
        if (crc32c(chunk) !== expected)
          throw this.#damaged(at, at + chunk.length, what, "the bytes that were saved", "others");
      }
    }
    for (const [from, target, sizeBytes] of stretches)
      layInto(bytes.subarray(from - begin, from - begin + sizeBytes), into, target);
  }

  #damaged(begin: number, end: number, what: string, expected: string, got: string): TroupeError {
    return new TroupeError("CHECKPOINT_DAMAGED", {
      where: "checkpoint",
      expected: `${expected} in bytes ${begin} to ${end} of ${this.path}, read for ${what}`,
      got,
      hint: "resume from an older checkpoint",
      fields: { path: this.path, what, offsetBytes: begin, endBytes: end, expected, got },
    });
  }

  async #range(begin: number, end: number): Promise<Uint8Array> {
    if (begin === end) return new Uint8Array(0);
    const range = { Range: `bytes=${begin}-${end - 1}`, IfMatch: this.#etag };
    return requestExisting(this.#connection, "read", this.#key, async (client, sdk, object) => {
      const { Body } = await client.send(new sdk.GetObjectCommand({ ...object, ...range }));
      return (await Body?.transformToByteArray()) ?? new Uint8Array(0);
    });
  }
}

/** Makes a {@link request}. @throws {TroupeError} `FILE_READ` where the object does not exist; `S3_FAILED` */
function requestExisting<T>(
  connection: S3Connection,
  doing: string,
  key: string,
  send: Parameters<typeof request<T>>[3],
): Promise<T> {
  return request(connection, doing, key, (...given) =>
    send(...given).catch((cause: unknown) => {
      if (!isAbsent(cause)) throw cause;
      const path = `s3://${connection.bucket}/${key}`;
      const reason = "no such object";
      const fields = { path, reason };
      throw new TroupeError("FILE_READ", {
        where: "s3",
        expected: `to read ${path}`,
        got: reason,
        fields,
        cause,
      });
    }),
  );
}

/** Plans requests for some stretches: with checksums, complete chunks, each once; adjacent chunks together. */
function planFetches(stretches: Float64Array, sums: FileSums | undefined, fileBytes: number): Fetch[] {
  const chunkBytes = sums?.chunkBytes ?? 1;
  const wanted = [];
  for (let i = 0; i < stretches.length; i += 3) {
    const [begin, target, sizeBytes] = [stretches[i]!, stretches[i + 1]!, stretches[i + 2]!];
    // A longer stretch is split at the ends of chunks.
    for (let at = begin; at < begin + sizeBytes; ) {
      const next = Math.min(begin + sizeBytes, (Math.floor(at / fetchBytes) + 1) * fetchBytes);
      wanted.push([at, target + at - begin, next - at] as const);
      at = next;
    }
  }
  wanted.sort((a, b) => a[0] - b[0]);
  const fetches: { begin: number; end: number; stretches: (readonly [number, number, number])[] }[] = [];
  for (const stretch of wanted) {
    const [from, , sizeBytes] = stretch;
    const begin = Math.floor(from / chunkBytes) * chunkBytes;
    const end = Math.min(
      Math.ceil((from + sizeBytes) / chunkBytes) * chunkBytes,
      sums === undefined ? Number.POSITIVE_INFINITY : fileBytes,
    );
    const last = fetches.at(-1);
    if (last !== undefined && begin <= last.end && end - last.begin <= fetchBytes) {
      last.end = Math.max(last.end, end);
      last.stretches.push(stretch);
    } else {
      fetches.push({ begin, end, stretches: [stretch] });
    }
  }
  return fetches;
}
