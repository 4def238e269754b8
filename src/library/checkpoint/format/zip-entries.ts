import { oneStretch, type StoredFile } from "../storage/storage.ts";
import { torchFileError } from "./pickle.ts";

/** The place of a file's bytes in an archive. */
export interface ZipEntry {
  /** First byte, from the start of the archive. */
  readonly begin: number;
  readonly sizeBytes: number;
}

const LOCAL_HEADER = 30;
const CENTRAL_HEADER = 46;
const END_RECORD = 22;
const END_RECORD_64 = 56;
const LOCATOR_64 = 20;
const MAX_COMMENT = 0xffff;
const MAX_DIRECTORY_BYTES = 1 << 25;
/** Marks a number that is in a record of 64 bits instead. */
const ELSEWHERE = 0xffffffff;

const DIRECTORY = "the directory of the archive";

/**
 * Finds the uncompressed files of a zip archive, by name.
 * @throws {TroupeError} `TORCH_FILE` for an invalid or incomplete archive, or one with a compressed file
 * @see PKWARE's APPNOTE.TXT, 4.3 and 4.5.3
 */
export async function zipEntries(file: StoredFile): Promise<ReadonlyMap<string, ZipEntry>> {
  const { path, sizeBytes } = file;
  const refuse = (expected: string, got: string) => torchFileError(path, expected, got);
  const { begin, size, count } = await findDirectory(file, refuse);
  if (!(size <= MAX_DIRECTORY_BYTES && begin + size <= sizeBytes))
    throw refuse("a directory within the archive", `one of ${size} bytes at ${begin}`);
  const directory = new DataView((await bytesAt(file, begin, size)).buffer);
  const found: { name: string; header: number; sizeBytes: number }[] = [];
  for (let at = 0; at < size && found.length < count; ) {
    if (at + CENTRAL_HEADER > size || directory.getUint32(at, true) !== 0x02014b50)
      throw refuse(`${count} files in its directory`, `${found.length}`);
    const method = directory.getUint16(at + 10, true);
    const [numName, numExtra, numComment] = [28, 30, 32].map((offset) =>
      directory.getUint16(at + offset, true),
    ) as [number, number, number];
    if (at + CENTRAL_HEADER + numName + numExtra > size)
      throw refuse("complete names in its directory", "a part of one");
    const name = new TextDecoder().decode(new Uint8Array(directory.buffer, at + CENTRAL_HEADER, numName));
    if (method !== 0)
      throw refuse("files that are not compressed, as torch.save writes", `${name}, compressed`);
    const wide = wideNumbers(directory, at, at + CENTRAL_HEADER + numName, numExtra);
    found.push({ name, header: wide.header, sizeBytes: wide.sizeBytes });
    at += CENTRAL_HEADER + numName + numExtra + numComment;
  }
  // Each file's local header repeats its name and pads the data to an alignment, at any length.
  const headers = new Uint8Array(LOCAL_HEADER * found.length);
  for (const { name, header } of found)
    if (!(header + LOCAL_HEADER <= sizeBytes)) throw refuse(`${name} within the archive`, `it at ${header}`);
  const stretches = found.flatMap(({ header }, index) => [header, LOCAL_HEADER * index, LOCAL_HEADER]);
  await file.read(Float64Array.from(stretches), headers, { what: DIRECTORY });
  const local = new DataView(headers.buffer);
  return new Map(
    found.map(({ name, header, sizeBytes: own }, index): [string, ZipEntry] => {
      const at = LOCAL_HEADER * index;
      const data = header + LOCAL_HEADER + local.getUint16(at + 26, true) + local.getUint16(at + 28, true);
      if (local.getUint32(at, true) !== 0x04034b50 || !(data + own <= sizeBytes))
        throw refuse(`all ${own} bytes of ${name}`, "an archive that was cut or written over");
      return [name, { begin: data, sizeBytes: own }];
    }),
  );
}

type Refuse = (expected: string, got: string) => Error;

async function findDirectory(
  file: StoredFile,
  refuse: Refuse,
): Promise<{ readonly begin: number; readonly size: number; readonly count: number }> {
  const length = Math.min(file.sizeBytes, END_RECORD + MAX_COMMENT + LOCATOR_64);
  const first = file.sizeBytes - length;
  const tail = new DataView((await bytesAt(file, first, length)).buffer);
  let at = length - END_RECORD;
  while (at >= 0 && tail.getUint32(at, true) !== 0x06054b50) at--;
  if (at < 0) throw refuse("the end of a zip archive", "none: the file was cut");
  const narrow = {
    count: tail.getUint16(at + 10, true),
    size: tail.getUint32(at + 12, true),
    begin: tail.getUint32(at + 16, true),
  };
  const locator = at - LOCATOR_64;
  if (locator < 0 || tail.getUint32(locator, true) !== 0x07064b50) return narrow;
  const place = wide64(tail, locator + 8);
  if (!(place + END_RECORD_64 <= file.sizeBytes)) throw refuse("the end of a zip archive", `one at ${place}`);
  const record = new DataView((await bytesAt(file, place, END_RECORD_64)).buffer);
  if (record.getUint32(0, true) !== 0x06064b50) throw refuse("the end of a zip archive", "other bytes");
  return { count: wide64(record, 32), size: wide64(record, 40), begin: wide64(record, 48) };
}

/** The size and the place of a file of the directory, from its record of 64 bits where needed. */
function wideNumbers(directory: DataView, at: number, extra: number, numExtra: number) {
  const packed = directory.getUint32(at + 20, true);
  let sizeBytes = directory.getUint32(at + 24, true);
  let header = directory.getUint32(at + 42, true);
  for (let place = extra; place + 4 <= extra + numExtra; place += 4 + directory.getUint16(place + 2, true)) {
    if (directory.getUint16(place, true) !== 1) continue;
    let next = place + 4;
    const take = () => {
      next += 8;
      return next <= extra + numExtra ? wide64(directory, next - 8) : Number.NaN;
    };
    if (sizeBytes === ELSEWHERE) sizeBytes = take();
    if (packed === ELSEWHERE) take();
    if (header === ELSEWHERE) header = take();
  }
  return { sizeBytes, header };
}

/** NaN where it exceeds the size of any file. */
function wide64(view: DataView, at: number): number {
  const value = Number(view.getBigUint64(at, true));
  return Number.isSafeInteger(value) ? value : Number.NaN;
}

/** Reads part of a file. @param what - its name for messages */
export async function bytesAt(
  file: StoredFile,
  begin: number,
  size: number,
  what = DIRECTORY,
): Promise<Uint8Array<ArrayBuffer>> {
  const bytes = new Uint8Array(size);
  if (size > 0) await file.read(oneStretch(begin, size), bytes, { what });
  return bytes;
}
