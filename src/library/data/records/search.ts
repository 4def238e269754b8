import { availableParallelism } from "node:os";
import { pooled } from "./beside.ts";
import type { FileBlocks, RecordFormat } from "./block.ts";
import type { RangedFile } from "./ranged-file.ts";
import { type SearchOptions, type SearchRequest, searched } from "./search-worker.ts";
import type { UnpackOptions } from "./unpacked-file.ts";

/** A larger file is searched by another thread: one starts in a fifth of a second, which reads so many bytes. */
const MOST_HERE_BYTES = 32 << 20;
/** How often the bytes of another thread are counted. */
const COUNT_MS = 500;

const search = pooled<SearchRequest, FileBlocks>(
  new URL("./search-worker.ts", import.meta.url),
  Math.min(4, availableParallelism()),
);

/** Goes through a file once, beside the calling thread if it is large. @param place - as the user gave it */
export async function searchBeside(
  place: string,
  file: RangedFile,
  format: RecordFormat,
  { advance, unpacked, ...options }: SearchOptions & { readonly unpacked: Omit<UnpackOptions, "advance"> },
): Promise<FileBlocks> {
  if (file.sizeBytes <= MOST_HERE_BYTES) return searched(file, format, { ...options, advance });
  const counter = new SharedArrayBuffer(4);
  const count = new Int32Array(counter);
  const timer = setInterval(() => advance(Atomics.exchange(count, 0, 0)), COUNT_MS);
  try {
    const { blockBytes, leavesOut, columns } = options;
    return await search({
      ...{ place, mark: file.mark, unpacked, counter, blockBytes, leavesOut, columns },
    });
  } finally {
    clearInterval(timer);
    advance(Atomics.exchange(count, 0, 0));
  }
}
