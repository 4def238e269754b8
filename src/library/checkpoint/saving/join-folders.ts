import { stat } from "node:fs/promises";
import { basename, dirname, join } from "node:path";
import { TroupeError } from "../../../errors/index.ts";
import { openContents } from "../reading/folder-contents.ts";
import { LocalFolder } from "../storage/local-folder.ts";
import { type FileSums, oneStretch } from "../storage/storage.ts";
import { SummedReader } from "../storage/summed-file.ts";

const PIECE_CHUNKS = 16;

/**
 * Copies the parts of a checkpoint that other hosts wrote to their own disks into its folder. Each file is checked
 * while it is copied, and in place once it is durable.
 * @param path - of the folder with the manifest
 * @param others - copies of the other hosts' folders, of the checkpoint or of its run
 * @returns the names of the copied files
 * @throws {TroupeError} `CHECKPOINT_LOCKED` while another process writes there; `CHECKPOINT_ELSEWHERE` naming a file
 * that none of them has, and its host; `CHECKPOINT_DAMAGED`
 */
export async function joinFolders(path: string, others: readonly string[]): Promise<string[]> {
  const storage = new LocalFolder(dirname(path));
  await using contents = await openContents(await storage.open(basename(path)));
  const brought: string[] = [];
  if (contents.elsewhere.size === 0) return brought;
  await using _lock = await storage.lock("troupe checkpoint join");
  for (const name of contents.elsewhere) {
    const sums = contents.manifest.files.get(name) as FileSums;
    const from = await firstWith(name, [...others, ...others.map((other) => join(other, basename(path)))]);
    if (from === undefined) throw nobodyHas(path, name, sums);
    await copyChecked(from, { storage, folder: basename(path), name, sums });
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

interface Target {
  readonly storage: LocalFolder;
  readonly folder: string;
  readonly name: string;
  readonly sums: FileSums;
}

async function copyChecked(from: string, { storage, folder, name, sums }: Target): Promise<void> {
  await using file = await SummedReader.open(from);
  const pieceBytes = PIECE_CHUNKS * sums.chunkBytes;
  const buffer = new Uint8Array(Math.min(pieceBytes, sums.sizeBytes));
  await storage.putFile(folder, name, async (sink) => {
    for (let begin = 0; begin < sums.sizeBytes; begin += pieceBytes) {
      const piece = buffer.subarray(0, Math.min(pieceBytes, sums.sizeBytes - begin));
      await file.read(oneStretch(begin, piece.length), piece, { sums, what: name });
      await sink.append(piece);
    }
  });
}

function nobodyHas(path: string, name: string, { host = "" }: FileSums): TroupeError {
  return new TroupeError("CHECKPOINT_ELSEWHERE", {
    where: "checkpoint",
    expected: `${name}, which ${host} has kept, in one of the folders`,
    got: "none of them with it",
    hint: `copy that host's ${basename(path)} here first`,
    fields: { path: join(path, name), host },
  });
}
