const MAGIC = 0x184d2204;
/** Unpacked bytes of a frame's largest block, by its number in the head. */
const blockBytes: Readonly<Record<number, number>> = { 4: 1 << 16, 5: 1 << 18, 6: 1 << 20, 7: 1 << 22 };
/** LZ4 makes nothing smaller than by this. */
const MOST_GROWTH = 255;
/** Each match is longer by so many than the number in its token. */
const SHORTEST_MATCH = 4;

/**
 * Unpacks a block of LZ4, as in Parquet's pages.
 * @param size - of the unpacked bytes
 * @throws {Error} in words
 * @see https://github.com/lz4/lz4/blob/dev/doc/lz4_Block_format.md
 */
export function unpackLz4Block(packed: Uint8Array, size: number): Uint8Array {
  const unpacked = new Uint8Array(size);
  if (unpackInto(unpacked, 0, packed) !== size) throw new Error("LZ4 of another size");
  return unpacked;
}

/**
 * Unpacks a frame of LZ4, as in Arrow's buffers. Its sums are not compared.
 * @param mostBytes - more are refused
 * @throws {Error} in words
 * @see https://github.com/lz4/lz4/blob/dev/doc/lz4_Frame_format.md
 */
export function unpackLz4Frame(packed: Uint8Array, mostBytes: number): Uint8Array {
  const view = new DataView(packed.buffer, packed.byteOffset, packed.length);
  const flags = packed[4] ?? 0;
  const [hasBlockSums, hasSize, hasDictionary] = [flags & 16, flags & 8, flags & 1];
  const largest = blockBytes[((packed[5] ?? 0) >> 4) & 7];
  const isFrame = packed.length >= 7 && view.getUint32(0, true) === MAGIC && flags >> 6 === 1;
  if (!isFrame || largest === undefined || hasDictionary !== 0) throw new Error("no frame of LZ4");
  const blocks: { readonly bytes: Uint8Array; readonly isPacked: boolean }[] = [];
  for (let at = hasSize === 0 ? 7 : 15; ; ) {
    if (at + 4 > packed.length) throw new Error("LZ4 without an end");
    const word = view.getUint32(at, true);
    if (word === 0) break;
    const size = word & 0x7fffffff;
    if (at + 4 + size > packed.length) throw new Error("LZ4 without an end");
    blocks.push({ bytes: packed.subarray(at + 4, at + 4 + size), isPacked: word >>> 31 === 0 });
    at += 4 + size + (hasBlockSums === 0 ? 0 : 4);
  }
  const unpacked = new Uint8Array(Math.min(mostBytes, blocks.length * largest, MOST_GROWTH * packed.length));
  let end = 0;
  for (const { bytes, isPacked } of blocks) {
    if (isPacked) end = unpackInto(unpacked, end, bytes);
    else if (end + bytes.length > unpacked.length)
      throw new Error(`LZ4 of more than ${unpacked.length} bytes`);
    else {
      unpacked.set(bytes, end);
      end += bytes.length;
    }
  }
  return unpacked.subarray(0, end);
}

/** Unpacks a block behind those that it may repeat. @returns the end of its bytes */
function unpackInto(into: Uint8Array, begin: number, packed: Uint8Array): number {
  let [from, to] = [0, begin];
  const more = (nibble: number): number => {
    let length = nibble;
    for (let byte = nibble === 15 ? 255 : 0; byte === 255; length += byte) {
      byte = packed[from++] ?? -1;
      if (byte < 0) throw new Error("LZ4 without an end");
    }
    return length;
  };
  while (from < packed.length) {
    const token = packed[from++] as number;
    const numLiterals = more(token >> 4);
    if (from + numLiterals > packed.length) throw new Error("LZ4 without an end");
    if (to + numLiterals > into.length) throw new Error(`LZ4 of more than ${into.length} bytes`);
    into.set(packed.subarray(from, from + numLiterals), to);
    from += numLiterals;
    to += numLiterals;
    // The last sequence has no match.
    if (from === packed.length) return to;
    const distance = (packed[from] as number) | ((packed[from + 1] ?? 0) << 8);
    from += 2;
    const length = more(token & 15) + SHORTEST_MATCH;
    if (distance === 0 || distance > to) throw new Error("LZ4 that repeats what is not there");
    if (to + length > into.length) throw new Error(`LZ4 of more than ${into.length} bytes`);
    // A match may repeat its own bytes.
    for (let done = 0; done < length; ) {
      const part = Math.min(length - done, done + distance);
      into.copyWithin(to + done, to - distance, to - distance + part);
      done += part;
    }
    to += length;
  }
  return to;
}
