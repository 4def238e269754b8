import { readdirSync } from "node:fs";
import { join } from "node:path";
import { TroupeError } from "../../errors/index.ts";
import { fileStatus } from "../../errors/untrusted/index.ts";

/** A file as it was when it was first read. Plain data. */
export interface FileMark {
  /** Its size, its time of change and its inode; empty where there was none. */
  readonly mark: string;
  /** Whether a fingerprint tells its bytes: a copy with the same bytes is the same file then. */
  readonly isHashed: boolean;
}

/** Files by path. */
export type FileMarks = Readonly<Record<string, FileMark>>;

const noted = new Map<string, FileMark>();

/**
 * Remembers how a file of a dataset is before it is read, for {@link fileMarks}; a file that this thread has noted already stays as it
 * was. Every function of the data room that opens a file calls it.
 */
export function noteFile(path: string, { isHashed = false }: Partial<Pick<FileMark, "isHashed">> = {}): void {
  const before = noted.get(path);
  noted.set(path, { mark: before?.mark ?? markOf(path), isHashed: isHashed || before?.isHashed === true });
}

/** The files that this thread has read so far. */
export function fileMarks(): FileMarks {
  return Object.fromEntries(noted);
}

/** @returns the files of folders as they are now, by path, without those of folders below */
export function markFolders(folders: readonly string[]): FileMarks {
  const isFolder = (path: string) => fileStatus(path)?.isDirectory() === true;
  const paths = folders.filter(isFolder).flatMap((folder) =>
    readdirSync(folder, { withFileTypes: true })
      .filter((entry) => !entry.isDirectory())
      .map(({ name }) => join(folder, name)),
  );
  return Object.fromEntries(paths.map((path) => [path, { mark: markOf(path), isHashed: false }]));
}

/** @returns the paths of the files that are not as they were */
export function changedFiles(marks: FileMarks): string[] {
  return Object.entries(marks).flatMap(([path, { mark }]) => (mark === markOf(path) ? [] : [path]));
}

/**
 * Checks a noted file that is opened again.
 * @throws {TroupeError} `DATA_CHANGED` if it has changed
 */
export function refuseChanged(path: string): void {
  const before = noted.get(path);
  if (before !== undefined && before.mark !== markOf(path))
    throw dataChanged(path, "another file, or other bytes");
}

/**
 * @param what - the file, or the data where no file is known
 * @param where - the part of a run that reads it
 * @returns `DATA_CHANGED`
 */
export function dataChanged(what: string, got: string, where = "data"): TroupeError {
  return new TroupeError(
    "DATA_CHANGED",
    {
      where,
      expected: `${what} to stay as it was when the run began`,
      got,
      hint: "put it back and go on from the newest checkpoint, or begin another run with the new data",
    },
    { fields: { path: what } },
  );
}

function markOf(path: string): string {
  const found = fileStatus(path);
  return found === undefined ? "" : `${found.size} ${found.mtimeNs} ${found.ino}`;
}
