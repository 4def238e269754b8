import { dataChanged } from "../noted-files.ts";
import { type Relayed, relayed } from "./beside.ts";
import { BlockBuilder, type FileBlocks, type RecordFormat } from "./block.ts";
import { type Columns, columnPicker } from "./columns.ts";
import { formatOf, openPlace } from "./places.ts";
import type { RangedFile } from "./ranged-file.ts";
import { packingOf, UnpackedFile, type UnpackOptions } from "./unpacked-file.ts";

/** How a file is searched for its blocks. */
export interface SearchOptions {
  readonly blockBytes: number;
  readonly leavesOut: boolean;
  readonly columns: Columns | undefined;
  /** Called with the number of bytes gone through. */
  readonly advance: (numBytes: number) => void;
}

/** A file that another thread searches. Plain data. */
export interface SearchRequest extends Omit<SearchOptions, "advance"> {
  readonly place: string;
  /** That of the file which the asking thread has opened. */
  readonly mark: string;
  readonly unpacked: Omit<UnpackOptions, "advance">;
  /** Counts the bytes gone through; int32 [1]. */
  readonly counter: SharedArrayBuffer;
}

/** Goes through a file once. @throws {TroupeError} `DATA_EXAMPLE` for a bad record unless those are left out */
export async function searched(
  file: RangedFile,
  format: RecordFormat,
  { columns, ...options }: SearchOptions,
): Promise<FileBlocks> {
  const pick = columnPicker(columns);
  const builder = new BlockBuilder({ ...options, check: (record, at) => void pick?.(record, at) });
  await format.index(file, builder);
  return builder.built();
}

/** Searches a file, in a thread of the pool of `searchBeside`. */
export default function search(request: SearchRequest): Promise<FileBlocks | Relayed> {
  const { place, mark, unpacked, counter } = request;
  const count = new Int32Array(counter);
  return relayed(async () => {
    const packed = await openPlace(place);
    const isPacked = packingOf(packed.place) !== undefined;
    const file = isPacked ? await UnpackedFile.open(packed, { ...unpacked, advance: () => {} }) : packed;
    if (file.mark !== mark) throw dataChanged(file.place, "another file, or other bytes");
    const advance = (numBytes: number) => void Atomics.add(count, 0, numBytes);
    return searched(file, formatOf(place) as RecordFormat, { ...request, advance });
  });
}
