import { scopeUnlessAsync } from "../../../compute/tensor/index.ts";
import { TroupeError } from "../../../errors/index.ts";
import type { JsonRecord } from "../formats/index.ts";
import { type Block, type BlockFile, type FileBlocks, MOST_NAMED } from "./block.ts";
import { keepBlocks, keptBlocks, keptPath } from "./file-blocks.ts";

/** Options of {@link withoutRefused}. */
export interface MapOptions {
  /** Makes a sample of a record, which is not kept. @throws {TroupeError} `DATA_EXAMPLE`, `DATA_UNREADABLE` for a bad one */
  readonly map: (record: JsonRecord, place: string) => unknown;
  /** Lists of blocks are kept here. */
  readonly indexFolder: string;
  /** Decides with the file whether what was found may be used again. */
  readonly key: string;
  /** Called after each block. */
  readonly advance: () => void;
}

/** A file without the records that a job's `map` refuses: each is mapped once, unless an earlier run did so. */
export async function withoutRefused(blockFile: BlockFile, options: MapOptions): Promise<BlockFile> {
  const { file, found } = blockFile;
  const counts = found.blocks.map(({ numRecords }) => numRecords);
  const kept = keptPath(options.indexFolder, [
    "mapped",
    file.place,
    file.mark,
    found.sum,
    counts,
    options.key,
  ]);
  const known = await keptBlocks(kept);
  if (known !== undefined) return { ...blockFile, found: known };
  const blocks: Block[] = [];
  const refusals: string[] = [];
  let before = 0;
  for (const block of found.blocks) {
    const refused = await refusedIn(blockFile, block, before, options);
    before += block.numRecords + block.leftOut.length;
    refusals.push(...refused.map(({ message }) => message));
    const leftOut = [...block.leftOut, ...refused.map(({ at }) => at)].toSorted((one, other) => one - other);
    const numRecords = block.numRecords - refused.length;
    if (numRecords > 0) blocks.push({ ...block, numRecords, leftOut });
    options.advance();
  }
  const bad = [...found.bad, ...refusals].slice(0, MOST_NAMED);
  const without: FileBlocks = { ...found, blocks, bad, numBad: found.numBad + refusals.length };
  await keepBlocks(kept, without);
  return { ...blockFile, found: without };
}

/** Records of a block that are mapped at once. */
const AT_ONCE = 64;

async function refusedIn(
  { file, format }: BlockFile,
  block: Block,
  before: number,
  { map }: MapOptions,
): Promise<{ readonly at: number; readonly message: string }[]> {
  const records = await format.read(file, block);
  const leftOut = new Set(block.leftOut);
  const places = Array.from({ length: records.length }, (_, at) => at).filter((at) => !leftOut.has(at));
  const refusalAt = async (at: number) => {
    try {
      await scopeUnlessAsync(() => map(records.at(at), placeOf(file.place, before + at)));
      return [];
    } catch (error) {
      if (!(error instanceof TroupeError && /^DATA_(EXAMPLE|UNREADABLE)$/.test(error.code))) throw error;
      return [{ at, message: error.message }];
    }
  };
  const refused: { readonly at: number; readonly message: string }[] = [];
  for (let first = 0; first < places.length; first += AT_ONCE)
    refused.push(...(await Promise.all(places.slice(first, first + AT_ONCE).map(refusalAt))).flat());
  return refused;
}

/** Names a record in errors. @param index - among all records of the file */
export function placeOf(place: string, index: number): string {
  return `${place}, record ${index + 1}`;
}
