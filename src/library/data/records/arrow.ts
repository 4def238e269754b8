import { crc32, zstdDecompressSync } from "node:zlib";
import type * as Arrow from "apache-arrow";
import { exampleError, type JsonRecord, optionalPackage, unpackLz4Frame } from "../formats/index.ts";
import type { RecordFormat } from "./block.ts";
import { ForwardReader, type RangedFile } from "./ranged-file.ts";

type Package = typeof Arrow;

const MAGIC = "ARROW1";
const CONTINUATION = 0xffffffff;
/** A longer description of a batch is refused. */
const MOST_DESCRIPTION_BYTES = 16 << 20;
/** More bytes of dictionaries are refused: all are in memory for each batch. */
const MOST_DICTIONARY_BYTES = 256 << 20;
/** The most values for each byte of a batch, and in addition. */
const [VALUES_PER_BYTE, FREE_VALUES] = [8, 100_000];

/** Arrow's files and streams, as Hugging Face's datasets keep them: a block is a record batch. */
export const arrow: RecordFormat = {
  async index(file, builder) {
    const { heads, batches } = await layout(file, (numBytes) => builder.advance(numBytes));
    builder.sum = crc32(heads);
    const blocks = batches.map((batch) => ({ ...batch, sizeBytes: batch.end - batch.begin, leftOut: [] }));
    await builder.addBlocks(file, blocks, ({ begin, end }) => readBatch(file, begin, end));
  },
  async read(file, { begin, end }) {
    const rows = await readBatch(file, begin, end);
    return { length: rows.length, at: (index) => rows[index] as JsonRecord };
  },
};

interface Layout {
  /** The schema and all dictionaries, as the stream has them. */
  readonly heads: Buffer;
  readonly batches: readonly { readonly begin: number; readonly end: number; readonly numRecords: number }[];
}

/** The schema and dictionaries of files. */
const known = new WeakMap<RangedFile, Promise<Buffer>>();

async function layout(file: RangedFile, advance: (numBytes: number) => void): Promise<Layout> {
  const { Message, MessageHeader } = await library();
  const reader = new ForwardReader(file);
  const heads: Buffer[] = [];
  const batches: Layout["batches"][number][] = [];
  const refuse = (expected: string, got: string): never => {
    throw exampleError(`${file.place}, byte ${at}`, expected, got);
  };
  const isFile = file.sizeBytes > 20 && (await reader.read(0, 6)).toString("latin1") === MAGIC;
  const limit = isFile ? await footerBegin(file) : file.sizeBytes;
  const dictionaries = new Set<number>();
  let [at, numHeadBytes, hasSchema] = [isFile ? 8 : 0, 0, false];
  while (at + 8 <= limit) {
    const prefix = await reader.read(at, at + 8);
    const size = prefix.readUInt32LE(4);
    if (prefix.readUInt32LE(0) !== CONTINUATION) refuse("a message of Arrow", "other bytes");
    if (size === 0) break;
    if (size > MOST_DESCRIPTION_BYTES || at + 8 + size > limit)
      refuse("a message of Arrow", `a description of ${size} bytes`);
    const description = await reader.read(at + 8, at + 8 + size);
    const message = refusing(file.place, () => Message.decode(description));
    const end = at + 8 + size + message.bodyLength;
    if (!(message.bodyLength >= 0 && end <= limit))
      refuse("a message of Arrow", `a body of ${message.bodyLength} bytes`);
    if (message.headerType === MessageHeader.RecordBatch) {
      const numRecords = Number((message.header() as unknown as { readonly length: number }).length);
      if (!(numRecords >= 0 && numRecords <= FREE_VALUES + VALUES_PER_BYTE * message.bodyLength))
        refuse("a batch of records", `${numRecords} rows in ${message.bodyLength} bytes`);
      batches.push({ begin: at, end, numRecords });
    } else {
      numHeadBytes += end - at;
      if (numHeadBytes > MOST_DICTIONARY_BYTES)
        refuse(`dictionaries of at most ${MOST_DICTIONARY_BYTES} bytes`, "more");
      hasSchema ||= message.headerType === MessageHeader.Schema;
      if (message.isDictionaryBatch()) {
        const { id, isDelta } = message.header();
        // Batches are read with all dictionaries, so none may depend on its place among them.
        if (!isDelta && dictionaries.has(id)) refuse("a dictionary that goes on", "another in its place");
        dictionaries.add(id);
      }
      heads.push(Buffer.from(await reader.read(at, end)));
    }
    advance(end - at);
    at = end;
  }
  if (!hasSchema && !isFile) refuse("a schema of Arrow", "none");
  if (!hasSchema) heads.unshift(await schemaOf(file, limit));
  advance(file.sizeBytes - at);
  const all = Buffer.concat(heads);
  known.set(file, Promise.resolve(all));
  return { heads: all, batches };
}

/** The place of a file's footer, which says again where its batches are. */
async function footerBegin(file: RangedFile): Promise<number> {
  const tail = await file.read(file.sizeBytes - 10, file.sizeBytes);
  const begin = file.sizeBytes - 10 - tail.readUInt32LE(0);
  if (tail.toString("latin1", 4) === MAGIC && begin >= 8) return begin;
  throw exampleError(file.place, "the end of an Arrow file", "other bytes");
}

/** The schema in a file's footer, as a stream begins with it: not every writer puts it before the batches too. */
async function schemaOf(file: RangedFile, footer: number): Promise<Buffer> {
  const { Table, tableToIPC } = await library();
  const { Footer } = await import("apache-arrow/ipc/metadata/file");
  const bytes = await file.read(footer, file.sizeBytes - 10);
  return refusing(file.place, () => {
    const stream = Buffer.from(tableToIPC(new Table(Footer.decode(bytes).schema), "stream"));
    return stream.subarray(0, 8 + stream.readUInt32LE(4));
  });
}

async function readBatch(file: RangedFile, begin: number, end: number): Promise<JsonRecord[]> {
  const { tableFromIPC } = await library();
  const heads = await (known.get(file) ?? layout(file, () => {}).then((found) => found.heads));
  const bytes = await file.read(begin, end);
  return refusing(file.place, () => {
    const table = tableFromIPC(Buffer.concat([heads, bytes]));
    const { schema, numRows } = table;
    const budget = { numValues: FREE_VALUES + VALUES_PER_BYTE * bytes.length };
    if (numRows > budget.numValues) throw new Error(`${numRows} rows`);
    // By column: the package's own rows look up each field by its name.
    const columns = schema.fields.map(({ name }, index) => [name, table.getChildAt(index)] as const);
    return Array.from({ length: numRows }, (_, row) =>
      Object.fromEntries(columns.map(([name, column]) => [name, plain(column?.get(row), budget)])),
    );
  });
}

/** Makes a value plain: rows, lists and maps of Arrow become records and arrays, 64-bit integers numbers. */
function plain(value: unknown, budget: { numValues: number }): unknown {
  if (--budget.numValues < 0) throw new Error("more values than a batch of its size can hold");
  if (typeof value === "bigint") return Number(value);
  if (typeof value !== "object" || value === null || ArrayBuffer.isView(value)) return value;
  const { length, toArray } = value as { readonly length?: number; toArray?: () => unknown };
  if (typeof length === "number" && typeof toArray === "function") {
    if (length > budget.numValues) throw new Error(`a list of ${length} values`);
    return Array.from(value as Iterable<unknown>, (each) => plain(each, budget));
  }
  if (value instanceof Date) return value;
  return Object.fromEntries(
    Array.from(value as Iterable<readonly [string, unknown]>, ([name, each]) => [name, plain(each, budget)]),
  );
}

let loaded: Promise<Package> | undefined;

/** @throws {TroupeError} `DATA_PACKAGE` */
function library(): Promise<Package> {
  loaded ??= optionalPackage("apache-arrow", async () => {
    const found = await import("apache-arrow");
    const { compressionRegistry, CompressionType } = found;
    if (compressionRegistry.get(CompressionType.LZ4_FRAME) === null)
      compressionRegistry.set(CompressionType.LZ4_FRAME, {
        decode: (bytes) => unpackLz4Frame(bytes, MOST_DICTIONARY_BYTES),
      });
    // Absent before Node 22.15.
    if (typeof zstdDecompressSync === "function" && compressionRegistry.get(CompressionType.ZSTD) === null)
      compressionRegistry.set(CompressionType.ZSTD, {
        decode: (bytes) => zstdDecompressSync(bytes, { maxOutputLength: MOST_DICTIONARY_BYTES }),
      });
    return found;
  });
  loaded.catch(() => {
    loaded = undefined;
  });
  return loaded;
}

function refusing<T>(place: string, read: () => T): T {
  try {
    return read();
  } catch (cause) {
    throw exampleError(place, "Arrow", (cause as Error).message);
  }
}
