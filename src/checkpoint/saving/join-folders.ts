import { stat } from "node:fs/promises";
import { basename, join } from "node:path";
import { TroupeError } from "../../errors.ts";
import { openContents } from "../reading/folder-contents.ts";
import { replaceDurably } from "../storage/durable-file.ts";
import { LocalFolder } from "../storage/local-folder.ts";
import { type FileSums, oneStretch } from "../storage/storage.ts";
import { SummedReader } from "../storage/summed-file.ts";

const PIECE_CHUNKS = 16;

/**
 * Brings together in the folder of a checkpoint what other hosts have kept of it on disks of their own. Each file is checked
 * while it is copied, and in place once it is durable.
 * @param path - of the folder with the manifest
 * @param others - copies of the other hosts' folders, of the checkpoint or of its run
 * @returns the names of the files that were brought
 * @throws {TroupeError} `CHECKPOINT_ELSEWHERE` naming the file that none of them has, and its host; `CHECKPOINT_DAMAGED`
 */
export async function joinFolders(path: string, others: readonly string[]): Promise<string[]> {
  await using contents = await openContents(await new LocalFolder(path).open(""));
  const brought: string[] = [];
  for (const name of contents.elsewhere) {
    const sums = contents.manifest.files.get(name) as FileSums;
    const from = await firstWith(name, [...others, ...others.map((other) => join(other, basename(path)))]);
    if (from === undefined) throw nobodyHas(path, name, sums);
    await copyChecked(from, join(path, name), sums);
    brought.push(name);
  }
  return brought;
}

async function firstWith(name: string, folders: readonly string[]): Promise<string | undefined> {
  for (const folder of folders) {
    const path = join(folder, name);
    const found = await stat(path).catch(() => undefined);
    if (found?.isFile()) return path;
  }
  return undefined;
}

async function copyChecked(from: string, to: string, sums: FileSums): Promise<void> {
  await using file = await SummedReader.open(from);
  const pieceBytes = PIECE_CHUNKS * sums.chunkBytes;
  const buffer = new Uint8Array(Math.min(pieceBytes, sums.sizeBytes));
  await replaceDurably(to, async (sink) => {
    for (let begin = 0; begin < sums.sizeBytes; begin += pieceBytes) {
      const piece = buffer.subarray(0, Math.min(pieceBytes, sums.sizeBytes - begin));
      await file.read(oneStretch(begin, piece.length), piece, { sums, what: basename(to) });
      await sink.append(piece);
    }
  });
}

function nobodyHas(path: string, name: string, { host = "" }: FileSums): TroupeError {
  return new TroupeError(
    "CHECKPOINT_ELSEWHERE",
    {
      where: "checkpoint",
      expected: `${name}, which ${host} has kept, in one of the folders`,
      got: "none of them with it",
      hint: `copy that host's ${basename(path)} here first`,
    },
    { fields: { path: join(path, name), host } },
  );
}
