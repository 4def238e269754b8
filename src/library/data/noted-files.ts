import { readdirSync } from "node:fs";
import { join } from "node:path";
import { TroupeError } from "../../errors/index.ts";
import { fileStatus } from "../../errors/untrusted/index.ts";

/** A file's state when it was first read. Plain data. */
export interface FileMark {
  /** Its size, modification time and inode; empty if it did not exist. */
  readonly mark: string;
  /** Whether the fingerprint covers its bytes: then a copy with the same bytes counts as the same file. */
  readonly isHashed: boolean;
}

/** Files by path. */
export type FileMarks = Readonly<Record<string, FileMark>>;

const noted = new Map<string, FileMark>();

/**
 * Records a dataset's file before it is read, for {@link fileMarks}; the first record of a thread counts. Every
 * function of the data room that opens a file calls this.
 */
export function noteFile(path: string, { isHashed = false }: Partial<Pick<FileMark, "isHashed">> = {}): void {
  const before = noted.get(path);
  noted.set(path, { mark: before?.mark ?? markOf(path), isHashed: isHashed || before?.isHashed === true });
}

/** The files that this thread has read so far. */
export function fileMarks(): FileMarks {
  return Object.fromEntries(noted);
}

/** Returns the present state of all files in some folders, by path, without subfolders. */
export function markFolders(folders: readonly string[]): FileMarks {
  const isFolder = (path: string) => fileStatus(path)?.isDirectory() === true;
  const paths = folders.filter(isFolder).flatMap((folder) =>
    readdirSync(folder, { withFileTypes: true })
      .filter((entry) => !entry.isDirectory())
      .map(({ name }) => join(folder, name)),
  );
  return Object.fromEntries(paths.map((path) => [path, { mark: markOf(path), isHashed: false }]));
}

/** Returns the paths of changed files. */
export function changedFiles(marks: FileMarks): string[] {
  return Object.entries(marks).flatMap(([path, { mark }]) => (mark === markOf(path) ? [] : [path]));
}

/**
 * Checks that a recorded file has not changed before it is opened again.
 * @throws {TroupeError} `DATA_CHANGED` if it has
 */
export function refuseChanged(path: string): void {
  const before = noted.get(path);
  if (before !== undefined && before.mark !== markOf(path))
    throw dataChanged(path, "another file, or other bytes");
}

/**
 * The error for changed data.
 * @param what - the file, or the data where no file is known
 * @param where - the part of a run that reads it
 * @returns `DATA_CHANGED`
 */
export function dataChanged(what: string, got: string, where = "data"): TroupeError {
  return new TroupeError("DATA_CHANGED", {
    where,
    expected: `${what} to stay as it was when the run began`,
    got,
    hint: "put it back and resume from the newest checkpoint, or start another run with the new data",
    fields: { path: what },
  });
}

function markOf(path: string): string {
  const found = fileStatus(path);
  return found === undefined ? "" : `${found.size} ${found.mtimeNs} ${found.ino}`;
}
