import { createHash } from "node:crypto";
// A named import of glob would hide the message about a too old Node.
import fs, { readdir, stat } from "node:fs/promises";
import { join, relative } from "node:path";
import { TextDecoder } from "node:util";
import { fileErrors, TroupeError, whichPathWasMeant } from "../../../errors/index.ts";
import { openRegular } from "../../../errors/untrusted/index.ts";
import { noteFile } from "../noted-files.ts";

/**
 * The source of a text: a file, a directory (every file below it, except names that begin with a dot), a pattern such
 * as `lib/*.d.ts`, or a list of those. The text is their bytes, one file after the other.
 */
export type TextSource = string | readonly string[];

/** One file of a text. */
export interface TextFile {
  readonly path: string;
  readonly sizeBytes: number;
}

const chunkBytes = 1 << 20;
/** Number of bytes in which git looks for a zero byte to recognize binary files. */
const headBytes = 8000;

/**
 * Finds the files of `source`: entries in the given order, the files of one directory or pattern sorted by path (by
 * code unit, the same everywhere).
 * @throws {TroupeError} `DATA_MISSING` for an entry without files, `DATA_UNREADABLE`, `DATA_EMPTY`
 */
export async function resolveText(source: TextSource): Promise<TextFile[]> {
  const files: TextFile[] = [];
  for (const entry of typeof source === "string" ? [source] : source) {
    const paths = await pathsOf(entry);
    if (paths.length === 0) throw missing(entry);
    for (const path of paths) files.push({ path, sizeBytes: await sizeOf(path) });
  }
  if (files.length === 0) throw missing("");
  if (files.every((file) => file.sizeBytes === 0)) {
    const named = files.length === 1 ? files[0]?.path : `${files.length} files of ${JSON.stringify(source)}`;
    throw new TroupeError("DATA_EMPTY", {
      where: "data",
      expected: `text in ${named}`,
      got: "0 bytes",
      hint: "give a file with text",
      fields: { source },
    });
  }
  return files;
}

/**
 * Returns the SHA-256 of files, for the fingerprint of a dataset made of them. Reads them piece by piece; their names
 * do not count.
 * @throws {TroupeError} as for a text that cannot be found or read
 */
export async function hashFiles(source: TextSource): Promise<string> {
  return hashText(await resolveText(source));
}

/** Yields the bytes of `files` in order, at most 1 MiB at a time, in new memory. */
export async function* readBytes(files: readonly TextFile[]): AsyncGenerator<Uint8Array> {
  for (const file of files) {
    const handle = await openRegular(file.path).catch((cause: unknown) => {
      throw unreadable(file.path, cause);
    });
    try {
      while (true) {
        const bytes = new Uint8Array(Math.min(file.sizeBytes + 1, chunkBytes));
        const { bytesRead } = await handle.read(bytes).catch((cause: unknown) => {
          throw unreadable(file.path, cause);
        });
        if (bytesRead === 0) break;
        yield bytes.subarray(0, bytesRead);
      }
    } finally {
      await handle.close();
    }
  }
}

/**
 * Yields the characters of `files` in order, in parts of about 1 MiB that never cut a character in two.
 * @throws {TroupeError} `DATA_UNREADABLE` naming the file that is not UTF-8
 */
export async function* readText(files: readonly TextFile[]): AsyncGenerator<string> {
  for (const file of files) {
    // A byte order mark is kept as part of the text.
    const decoder = new TextDecoder("utf-8", { fatal: true, ignoreBOM: true });
    for await (const bytes of readBytes([file])) yield decode(decoder, file.path, bytes);
    yield decode(decoder, file.path);
  }
}

/**
 * Refuses binary files, such as pictures and archives: those with a zero byte near their beginning, which is git's rule.
 * @param source - the files' source, in words
 * @throws {TroupeError} `DATA_UNREADABLE` naming the first and how many there are
 */
export async function refuseBinary(files: readonly TextFile[], source: string): Promise<void> {
  const binary: TextFile[] = [];
  for (const file of files) if (await isBinary(file)) binary.push(file);
  const [first] = binary;
  if (first === undefined) return;
  const others = binary.length === 1 ? "" : ` and ${binary.length - 1} more`;
  throw new TroupeError("DATA_UNREADABLE", {
    where: "data",
    expected: `text in ${source}`,
    got: `a binary file, ${first.path}${others}`,
    hint:
      files.length === 1
        ? "give a file of text, in UTF-8"
        : 'leave what is no text out by a pattern such as "texts/**/*.txt"',
    fields: { paths: binary.map(({ path }) => path) },
  });
}

async function isBinary({ path, sizeBytes }: TextFile): Promise<boolean> {
  if (sizeBytes === 0) return false;
  try {
    await using file = await openRegular(path);
    const { buffer, bytesRead } = await file.read(Buffer.alloc(Math.min(sizeBytes, headBytes)));
    return buffer.subarray(0, bytesRead).includes(0);
  } catch (cause) {
    throw unreadable(path, cause);
  }
}

/** SHA-256 of the bytes of `files`, in hex. */
export async function hashText(files: readonly TextFile[]): Promise<string> {
  for (const { path } of files) noteFile(path, { isHashed: true });
  const hash = createHash("sha256");
  for await (const bytes of readBytes(files)) hash.update(bytes);
  return hash.digest("hex");
}

function decode(decoder: TextDecoder, path: string, bytes?: Uint8Array): string {
  try {
    return bytes === undefined ? decoder.decode() : decoder.decode(bytes, { stream: true });
  } catch (cause) {
    const refuse = fileErrors("DATA_UNREADABLE", "data", "convert the file, or use the byte tokenizer");
    throw refuse(path, "UTF-8 text", "other bytes", { cause });
  }
}

/** The files of one entry of a source, sorted; none where there is none. @throws {TroupeError} `DATA_UNREADABLE` */
export async function pathsOf(entry: string): Promise<string[]> {
  if (entry === "") return [];
  // A path that exists is used literally, even if it looks like a pattern.
  const found = await stat(entry).catch((cause: NodeJS.ErrnoException) => cause);
  if (!(found instanceof Error)) return found.isDirectory() ? filesBelow(entry) : [entry];
  if (found.code !== "ENOENT") throw unreadable(entry, found);
  if (!/[*?[{]/.test(entry)) return [];
  const paths: string[] = [];
  for await (const match of fs.glob(entry, { withFileTypes: true })) {
    if (match.isFile()) paths.push(join(match.parentPath, match.name));
  }
  return paths.sort();
}

async function filesBelow(directory: string): Promise<string[]> {
  const entries = await readdir(directory, { recursive: true, withFileTypes: true }).catch(
    (cause: unknown) => {
      throw unreadable(directory, cause);
    },
  );
  const paths = entries.filter((entry) => entry.isFile()).map((file) => join(file.parentPath, file.name));
  return paths.filter((path) => !/(^|[\\/])\./.test(relative(directory, path))).sort();
}

async function sizeOf(path: string): Promise<number> {
  const found = await stat(path).catch((cause: unknown) => {
    throw unreadable(path, cause);
  });
  if (found.isFile()) return found.size;
  throw unreadable(path, new Error("neither a file nor a directory"));
}

const missing = (entry: string) =>
  missingData("text", entry, 'give a file, a directory or a pattern like "texts/*.txt"');

/** @returns `DATA_MISSING` @param kind - of data that was looked for @param forms - of entries, unless another path was meant */
export function missingData(kind: string, entry: string, forms: string): TroupeError {
  return new TroupeError("DATA_MISSING", {
    where: "data",
    expected: `${kind} at ${JSON.stringify(entry)}`,
    got: "no such file",
    hint: whichPathWasMeant(entry) ?? forms,
    fields: { source: entry },
  });
}

function unreadable(path: string, cause: unknown): TroupeError {
  const { code, message } = cause as NodeJS.ErrnoException;
  const refuse = fileErrors("DATA_UNREADABLE", "data", "check that it is a file and may be read", "at");
  return refuse(path, "a readable text", code ?? message, { cause });
}
