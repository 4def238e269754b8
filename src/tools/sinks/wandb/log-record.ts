import { crc32 } from "node:zlib";

// The files of Weights & Biases are logs of LevelDB's form: https://github.com/google/leveldb/blob/main/doc/log_format.md

/** The beginning of a file: its mark and version. */
export const FILE_HEAD: Buffer = Buffer.from([...Buffer.from(":W&B"), 0xe1, 0xbe, 0]);

const BLOCK_BYTES = 32_768;
/** Checksum, length and kind of a piece. */
const HEAD_BYTES = 7;
const kinds = { full: 1, first: 2, middle: 3, last: 4 } as const;

/**
 * Lays out a record, in pieces that do not cross blocks of 32 KiB.
 * @param position - where in its file it begins
 */
export function logRecord(data: Uint8Array, position: number): Buffer {
  const parts: Buffer[] = [];
  let [at, done, hasBegun] = [position, 0, false];
  const put = (part: Buffer) => {
    parts.push(part);
    at += part.length;
  };
  for (;;) {
    const left = BLOCK_BYTES - (at % BLOCK_BYTES);
    if (left < HEAD_BYTES) {
      put(Buffer.alloc(left));
      continue;
    }
    const piece = data.subarray(done, done + left - HEAD_BYTES);
    done += piece.length;
    const isLast = done === data.length;
    const kind = hasBegun ? (isLast ? kinds.last : kinds.middle) : isLast ? kinds.full : kinds.first;
    const head = Buffer.alloc(HEAD_BYTES);
    head.writeUInt32LE(crc32(piece, crc32(Buffer.of(kind))), 0);
    head.writeUInt16LE(piece.length, 4);
    head.writeUInt8(kind, 6);
    put(head);
    put(Buffer.from(piece));
    if (isLast) return Buffer.concat(parts);
    hasBegun = true;
  }
}
