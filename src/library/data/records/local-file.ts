import { openRegular } from "../../../errors/untrusted/index.ts";
import { unreadable } from "../formats/index.ts";
import { dataChanged, noteFile, refuseChanged } from "../noted-files.ts";
import type { RangedFile } from "./ranged-file.ts";

/** A local file, opened for each read: holds no descriptor between two batches, and costs microseconds. */
export class LocalFile implements RangedFile {
  readonly place: string;
  readonly sizeBytes: number;
  readonly mark: string;

  private constructor(place: string, sizeBytes: number, mark: string) {
    this.place = place;
    this.sizeBytes = sizeBytes;
    this.mark = mark;
  }

  /** @throws {TroupeError} `DATA_MISSING`, `DATA_UNREADABLE` */
  static async open(path: string): Promise<LocalFile> {
    noteFile(path);
    try {
      await using file = await openRegular(path);
      const { size, mtimeMs } = await file.stat();
      return new LocalFile(path, size, `${size} ${mtimeMs}`);
    } catch (cause) {
      throw unreadable(path, cause);
    }
  }

  async read(begin: number, end: number): Promise<Buffer> {
    refuseChanged(this.place);
    const bytes = await readRange(this.place, begin, end).catch((cause: unknown) => {
      throw unreadable(this.place, cause);
    });
    if (bytes.length === end - begin) return bytes;
    throw dataChanged(this.place, "fewer bytes");
  }
}

/** Reads bytes `begin` to `end` of a file, fewer where it ends before. @throws errors of the file system */
export async function readRange(path: string, begin: number, end: number): Promise<Buffer> {
  await using file = await openRegular(path);
  const buffer = Buffer.allocUnsafeSlow(end - begin);
  let length = 0;
  while (length < buffer.length) {
    const { bytesRead } = await file.read(buffer, length, buffer.length - length, begin + length);
    if (bytesRead === 0) break;
    length += bytesRead;
  }
  return buffer.subarray(0, length);
}
