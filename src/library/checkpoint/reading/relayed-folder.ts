import type { TroupeError } from "../../../errors/index.ts";
import { layInto } from "../storage/bytes.ts";
import type { FileSums, ReadHow, StoredFile, StoredFolder } from "../storage/storage.ts";
import { placeOf } from "./open-checkpoint.ts";

/** A request for stretches of a checkpoint's file, from a host that may not have the folder. Plain data. */
export interface RelayedRead {
  /** Path of the checkpoint's folder. */
  readonly path: string;
  readonly file: string;
  /** Two numbers each, in bytes: start in the file, size. */
  readonly stretches: readonly number[];
  readonly sums: FileSums | undefined;
  /** Name of the data for messages. */
  readonly what: string;
}

/** The bytes that were read. Plain data. */
export interface RelayedBytes {
  /** Size of the file. */
  readonly fileBytes: number;
  /** The stretches, one after the other. */
  readonly bytes: Uint8Array;
  /** Number of bytes read from the file. */
  readonly readBytes: number;
}

/** Reads stretches for another host. @throws errors of opening and reading the file */
export async function readForOthers(asked: RelayedRead): Promise<RelayedBytes> {
  const { path, file, stretches, sums, what } = asked;
  const { storage, name } = await placeOf(path);
  const folder = await storage.open(name ?? "");
  await using opened = await folder.openFile(file);
  const triples: number[] = [];
  let sizeBytes = 0;
  for (let index = 0; index < stretches.length; index += 2) {
    const [begin = 0, size = 0] = [stretches[index], stretches[index + 1]];
    triples.push(begin, sizeBytes, size);
    sizeBytes += size;
  }
  const bytes = new Uint8Array(sizeBytes);
  const readBytes = await opened.read(Float64Array.from(triples), bytes, { sums, what });
  return { fileBytes: opened.sizeBytes, bytes, readBytes };
}

/** Sends a request to an actor that has files of the checkpoint. */
export type Relay = (asked: RelayedRead) => Promise<RelayedBytes>;

/**
 * A checkpoint's folder on other hosts, possibly in parts on several, read through actors there.
 * @param relays - actors that may have its files: each is asked for a file that those before it lack
 */
export function relayedFolder(path: string, relays: readonly Relay[]): StoredFolder {
  return {
    path,
    name: path.slice(path.lastIndexOf("/") + 1),
    async openFile(file) {
      let missing: unknown;
      for (const relay of relays) {
        const read = (stretches: readonly number[], { sums, what }: ReadHow) =>
          relay({ path, file, stretches, sums, what });
        try {
          const { fileBytes } = await read([], { what: file });
          return relayedFile(`${path}/${file}`, fileBytes, read);
        } catch (error) {
          if ((error as TroupeError).code !== "FILE_READ") throw error;
          missing ??= error;
        }
      }
      throw missing;
    },
  };
}

function relayedFile(
  path: string,
  sizeBytes: number,
  read: (stretches: readonly number[], how: ReadHow) => Promise<RelayedBytes>,
): StoredFile {
  return {
    path,
    sizeBytes,
    async read(stretches, into, how) {
      const wanted: number[] = [];
      for (let at = 0; at < stretches.length; at += 3)
        wanted.push(stretches[at] as number, stretches[at + 2] as number);
      const { bytes, readBytes } = await read(wanted, how);
      let from = 0;
      for (let at = 0; at < stretches.length; at += 3) {
        const size = stretches[at + 2] as number;
        layInto(bytes.subarray(from, from + size), into, stretches[at + 1] as number);
        from += size;
      }
      return readBytes;
    },
    async [Symbol.asyncDispose]() {},
  };
}
