import { crc32 } from "node:zlib";
import { TroupeError } from "../../../errors/index.ts";
import { exampleError, recordOf } from "../formats/index.ts";
import type { BlockBuilder, RecordFormat } from "./block.ts";
import { ForwardReader } from "./ranged-file.ts";

const NEWLINE = 10;
/** A longer line is bad. */
const MOST_LINE_BYTES = 32 << 20;
/** After a line of so many bytes the rest of a file is given up. */
const MOST_DAMAGED_BYTES = 64 << 20;

/** One JSON object per line; empty lines are skipped. */
export const jsonLines: RecordFormat = {
  async index(file, builder) {
    const reader = new ForwardReader(file);
    let [line, begin, isTooLong] = [1, 0, false];
    /** The beginning of a line whose end is in a later chunk; put together once, since a line may have many. */
    let parts: Buffer[] = [];
    const end = (bytes: Buffer, place: string) => {
      if (isTooLong) builder.skip(tooLong(place));
      else addLine(builder, bytes, begin, place);
      isTooLong = false;
      line++;
    };
    for (let at = 0; at < file.sizeBytes; ) {
      const chunk = await reader.chunkAt(at);
      builder.sum = crc32(chunk, builder.sum);
      builder.advance(chunk.length);
      at += chunk.length;
      let from = 0;
      for (let to = chunk.indexOf(NEWLINE); to >= 0; to = chunk.indexOf(NEWLINE, from)) {
        const bytes = chunk.subarray(from, to);
        end(parts.length === 0 ? bytes : Buffer.concat([...parts, bytes]), `${file.place}:${line}`);
        parts = [];
        begin = at - chunk.length + to + 1;
        from = to + 1;
      }
      if (isTooLong && at - begin > MOST_DAMAGED_BYTES) break;
      if (isTooLong || from === chunk.length) continue;
      parts.push(Buffer.from(chunk.subarray(from)));
      if (at - begin <= MOST_LINE_BYTES) continue;
      if (!builder.leavesOut) throw tooLong(`${file.place}:${line}`);
      isTooLong = true;
      parts = [];
    }
    if (parts.length > 0 || isTooLong) end(Buffer.concat(parts), `${file.place}:${line}`);
  },
  async read(file, block) {
    const bytes = await file.read(block.begin, block.end);
    const ends: number[] = [];
    const begins: number[] = [];
    for (let from = 0; from < bytes.length; ) {
      const found = bytes.indexOf(NEWLINE, from);
      const to = found < 0 ? bytes.length : found;
      if (!isBlank(bytes, from, to)) {
        begins.push(from);
        ends.push(to);
      }
      from = to + 1;
    }
    return {
      length: begins.length,
      at: (index) => recordOf(bytes.toString("utf8", begins[index], ends[index]), file.place),
    };
  },
};

function addLine(builder: BlockBuilder, bytes: Buffer, begin: number, place: string): void {
  if (isBlank(bytes, 0, bytes.length)) return;
  let refusal: TroupeError | undefined;
  try {
    builder.check(recordOf(bytes.toString("utf8"), place), place);
  } catch (error) {
    if (!(error instanceof TroupeError)) throw error;
    refusal = error;
  }
  builder.add(begin, begin + bytes.length, refusal);
}

/** Whether bytes are white space alone. */
function isBlank(bytes: Buffer, begin: number, end: number): boolean {
  for (let at = begin; at < end; at++) {
    const byte = bytes[at] as number;
    if (byte !== 32 && (byte < 9 || byte > 13)) return false;
  }
  return true;
}

function tooLong(place: string): TroupeError {
  return exampleError(place, `a line of at most ${MOST_LINE_BYTES} bytes`, "more");
}
