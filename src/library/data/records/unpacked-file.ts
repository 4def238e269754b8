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
import { ForwardReader, type RangedFile } from "./ranged-file.ts";

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
    await pipeline(chunksOf(packed, advance), unpacker(packing, packed.place), bounded, target);
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

function unpacker(packing: keyof typeof endings, place: string): Transform {
  if (packing === "gzip") return zlib.createGunzip();
  // Since Node 22.15.
  if (typeof zlib.createZstdDecompress === "function") return zlib.createZstdDecompress();
  throw exampleError(place, "Node 22.15 or newer, which unpacks zstd", process.version);
}

async function* chunksOf(file: RangedFile, advance: (numBytes: number) => void): AsyncGenerator<Buffer> {
  const reader = new ForwardReader(file);
  for (let at = 0; at < file.sizeBytes; ) {
    const chunk = await reader.chunkAt(at);
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
