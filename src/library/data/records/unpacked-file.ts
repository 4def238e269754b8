import { createHash, randomUUID } from "node:crypto";
import { createWriteStream } from "node:fs";
import { readdir, rename, rm, stat, utimes } from "node:fs/promises";
import { join } from "node:path";
import { Transform, type TransformCallback } from "node:stream";
import { pipeline } from "node:stream/promises";
import zlib from "node:zlib";
import { fileFailure, TroupeError } from "../../../errors/index.ts";
import { exampleError } from "../formats/index.ts";
import { readRange } from "./local-file.ts";
import { type Forward, ForwardReader, type RangedFile } from "./ranged-file.ts";

/** The most times that a file may become larger, and bytes in addition: more is meant to fill the disk. */
const [MOST_GROWTH, FREE_BYTES] = [64, 64 << 20];

const endings = { gzip: /\.(gz|tgz)$/i, zstd: /\.zst$/i } as const;

/** How a file is packed, by its name; undefined if it is not. */
export function packingOf(place: string): keyof typeof endings | undefined {
  return (["gzip", "zstd"] as const).find((packing) => endings[packing].test(place));
}

/** Options of {@link UnpackedFile}. */
export interface UnpackOptions {
  /** Unpacked files lie here. */
  readonly folder: string;
  /** The most bytes of all unpacked files there; those that were longest not used give way. */
  readonly mostBytes: number;
  /** Called with the number of packed bytes that were read. */
  readonly advance: (numBytes: number) => void;
}

/** Unpacked files that this thread reads. */
const inUse = new Set<string>();

/**
 * A packed file, which cannot be read by ranges: it is unpacked into a folder, where another run finds it again by its mark, and
 * unpacked again where it was removed.
 */
export class UnpackedFile implements RangedFile {
  readonly place: string;
  readonly mark: string;
  readonly sizeBytes: number;
  readonly #packed: RangedFile;
  readonly #path: string;

  private constructor(packed: RangedFile, path: string, sizeBytes: number) {
    this.#packed = packed;
    this.#path = path;
    this.place = packed.place;
    this.mark = packed.mark;
    this.sizeBytes = sizeBytes;
  }

  /** @throws {TroupeError} `DATA_EXAMPLE` for a damaged file or one that grows more than text does, `DATA_CACHE_FAILED` */
  static async open(
    packed: RangedFile,
    { folder, mostBytes, advance }: UnpackOptions,
  ): Promise<UnpackedFile> {
    const name = createHash("sha256").update(`${packed.place}\n${packed.mark}`).digest("hex").slice(0, 32);
    const path = join(folder, name);
    inUse.add(path);
    const found = await stat(path).catch(() => undefined);
    if (found === undefined) await unpack(packed, path, advance);
    else {
      advance(packed.sizeBytes);
      await utimes(path, new Date(), found.mtime);
    }
    const { size } = await stat(path);
    await makeRoom(folder, mostBytes);
    return new UnpackedFile(packed, path, size);
  }

  async read(begin: number, end: number): Promise<Buffer> {
    const found = await readRange(this.#path, begin, end).catch(() => undefined);
    if (found?.length === end - begin) return found;
    await unpack(this.#packed, this.#path, () => {});
    return readRange(this.#path, begin, end);
  }
}

async function unpack(packed: RangedFile, path: string, advance: (numBytes: number) => void): Promise<void> {
  const packing = packingOf(packed.place) ?? "gzip";
  const temporary = `${path}.tmp-${randomUUID()}`;
  const most = FREE_BYTES + MOST_GROWTH * packed.sizeBytes;
  const bounded = new Bounded(most, () =>
    exampleError(packed.place, `at most ${most} bytes, unpacked`, "more"),
  );
  try {
    const target = createWriteStream(temporary, { flags: "wx", mode: 0o600 });
    if (packing === "gzip") await pipeline(chunksOf(packed, advance), zlib.createGunzip(), bounded, target);
    else await pipeline(zstdParts(packed, advance), bounded, target);
    await rename(temporary, path);
  } catch (cause) {
    await rm(temporary, { force: true });
    if (cause instanceof TroupeError) throw cause;
    const { code = "", message } = cause as NodeJS.ErrnoException;
    if (/^Z/.test(code)) throw exampleError(packed.place, `a file packed by ${packing}`, message);
    throw new TroupeError("DATA_CACHE_FAILED", {
      where: "data",
      expected: `to unpack ${packed.place} to ${path}`,
      got: fileFailure(cause),
      hint: "free space there, or set TROUPE_CACHE to another folder",
      fields: { path },
      cause,
    });
  }
}

/** Unpacks a file frame by frame: Node's own unpacker ends without a word after the first. */
async function* zstdParts(file: RangedFile, advance: (numBytes: number) => void): AsyncGenerator<Buffer> {
  // Since Node 22.15.
  if (typeof zlib.createZstdDecompress !== "function")
    throw exampleError(file.place, "Node 22.15 or newer, which unpacks zstd", process.version);
  const heads = new ForwardReader(file);
  for (let begin = 0; begin < file.sizeBytes; ) {
    const { end, isSkipped } = await zstdFrame(heads, begin, file.place);
    if (!isSkipped) {
      const unpacker = zlib.createZstdDecompress();
      const fed = pipeline(
        chunksOf(file, () => {}, begin, end),
        unpacker,
      );
      fed.catch(() => {}); // thrown by the unpacker too
      for await (const part of unpacker) yield part as Buffer;
      await fed;
    }
    advance(end - begin);
    begin = end;
  }
}

/** Finds the end of the frame at `begin` by the heads of its blocks. See RFC 8878. */
async function zstdFrame(
  bytes: Forward,
  begin: number,
  place: string,
): Promise<{ end: number; isSkipped: boolean }> {
  const read = async (at: number, length: number): Promise<Buffer> => {
    if (at + length <= bytes.sizeBytes) return bytes.read(at, at + length);
    throw exampleError(place, "a complete frame of zstd", "one that was cut");
  };
  const magic = (await read(begin, 4)).readUInt32LE();
  const isSkipped = (magic & 0xfffffff0) >>> 0 === 0x184d2a50;
  if (isSkipped) return { end: begin + 8 + (await read(begin + 4, 4)).readUInt32LE(), isSkipped };
  if (magic !== 0xfd2fb528) throw exampleError(`${place}, byte ${begin}`, "a frame of zstd", "other bytes");
  const [flags = 0] = await read(begin + 4, 1);
  const isSingle = (flags >> 5) & 1;
  const sizeBytes = [isSingle, 2, 4, 8][flags >> 6] ?? 0;
  let at = begin + 5 + (1 - isSingle) + ([0, 1, 2, 4][flags & 3] ?? 0) + sizeBytes;
  for (let isLast = false; !isLast; ) {
    const head = (await read(at, 3)).readUIntLE(0, 3);
    isLast = (head & 1) === 1;
    // A block of kind 1 is one byte, repeated.
    at += 3 + (((head >> 1) & 3) === 1 ? 1 : head >> 3);
  }
  const end = at + 4 * ((flags >> 2) & 1);
  await read(end, 0);
  return { end, isSkipped };
}

async function* chunksOf(
  file: RangedFile,
  advance: (numBytes: number) => void,
  begin = 0,
  end = file.sizeBytes,
): AsyncGenerator<Buffer> {
  const reader = new ForwardReader(file);
  for (let at = begin; at < end; ) {
    const chunk = (await reader.chunkAt(at)).subarray(0, end - at);
    at += chunk.length;
    advance(chunk.length);
    yield chunk;
  }
}

/** Passes on so many bytes and refuses more. */
class Bounded extends Transform {
  #left: number;
  readonly #refuse: () => Error;

  constructor(mostBytes: number, refuse: () => Error) {
    super();
    this.#left = mostBytes;
    this.#refuse = refuse;
  }

  override _transform(chunk: Buffer, _encoding: BufferEncoding, done: TransformCallback): void {
    this.#left -= chunk.length;
    if (this.#left < 0) done(this.#refuse());
    else done(null, chunk);
  }
}

/** Removes unpacked files of other runs, those first that were longest not used, until all are within the limit. */
async function makeRoom(folder: string, mostBytes: number): Promise<void> {
  const files = await Promise.all(
    (await readdir(folder)).map(async (name) => {
      const path = join(folder, name);
      const found = await stat(path).catch(() => undefined);
      return { path, sizeBytes: found?.size ?? 0, usedMs: found?.atimeMs ?? 0 };
    }),
  );
  let total = files.reduce((sum, { sizeBytes }) => sum + sizeBytes, 0);
  for (const { path, sizeBytes } of files.toSorted((one, other) => one.usedMs - other.usedMs)) {
    if (total <= mostBytes) return;
    if (inUse.has(path) || path.includes(".tmp-")) continue;
    await rm(path, { force: true });
    total -= sizeBytes;
  }
  if (total <= mostBytes) return;
  throw new TroupeError("DATA_CACHE_FAILED", {
    where: "data",
    expected: `unpacked files of at most ${mostBytes} bytes in ${folder}`,
    got: `${total}`,
    hint: "raise unpackedBytes, or keep the files unpacked where they are",
    fields: { path: folder },
  });
}
