import { maxFileBytes, readBounded } from "../../../errors/untrusted/index.ts";
import { exampleError, unreadable } from "./refusal.ts";

/** A mono recording. */
export interface Recording {
  /** From −1 to 1; the mean of several channels. */
  readonly samples: Float32Array;
  readonly samplesPerSecond: number;
}

const PCM = 1;
const FLOATS = 3;
const EXTENSIBLE = 0xfffe;

/**
 * Reads a WAV file: integers of 8, 16, 24 or 32 bits, or floats of 32.
 * @throws {TroupeError} `DATA_UNREADABLE`, `DATA_EXAMPLE` for another encoding or a truncated file
 */
export async function readWav(path: string): Promise<Recording> {
  const bytes = await readBounded(path, maxFileBytes.sound).catch((cause: unknown) => {
    throw unreadable(path, cause);
  });
  return decodeWav(bytes, path);
}

/** Decodes the bytes of a WAV file, as {@link readWav} reads it. @param path - names it in errors */
export function decodeWav(bytes: Buffer, path: string): Recording {
  const chunks = chunksOf(path, bytes);
  const format = chunks.get("fmt ");
  const data = chunks.get("data");
  if (format === undefined || data === undefined || format.length < 16)
    throw exampleError(path, "a WAV file's format and data", [...chunks.keys()].join(", ") || "neither");
  const code = format.readUInt16LE(0);
  const encoding = code === EXTENSIBLE && format.length >= 26 ? format.readUInt16LE(24) : code;
  const numChannels = format.readUInt16LE(2);
  const numBits = format.readUInt16LE(14);
  const read = readerOf(encoding, numBits);
  if (read === undefined || numChannels === 0)
    throw exampleError(path, "integers of 8 to 32 bits or floats of 32", `${encoding} of ${numBits} bits`);
  const frameBytes = (numChannels * numBits) / 8;
  const samples = new Float32Array(Math.floor(data.length / frameBytes));
  for (let place = 0; place < samples.length; place++) {
    let sum = 0;
    for (let channel = 0; channel < numChannels; channel++)
      sum += read(data, place * frameBytes + (channel * numBits) / 8);
    samples[place] = sum / numChannels;
  }
  return { samples, samplesPerSecond: format.readUInt32LE(4) };
}

function chunksOf(path: string, bytes: Buffer): Map<string, Buffer> {
  const chunks = new Map<string, Buffer>();
  if (
    bytes.length < 12 ||
    bytes.toString("latin1", 0, 4) !== "RIFF" ||
    bytes.toString("latin1", 8, 12) !== "WAVE"
  )
    throw exampleError(path, "a WAV file", "another format");
  let offset = 12;
  while (offset + 8 <= bytes.length) {
    const size = bytes.readUInt32LE(offset + 4);
    const name = bytes.toString("latin1", offset, offset + 4);
    if (offset + 8 + size > bytes.length)
      throw exampleError(path, `${size} bytes of ${name.trim()}`, "fewer");
    chunks.set(name, bytes.subarray(offset + 8, offset + 8 + size));
    offset += 8 + size + (size % 2); // chunks begin at even places
  }
  return chunks;
}

function readerOf(encoding: number, numBits: number): ((data: Buffer, offset: number) => number) | undefined {
  if (encoding === FLOATS) return numBits === 32 ? (data, offset) => data.readFloatLE(offset) : undefined;
  if (encoding !== PCM) return undefined;
  if (numBits === 8) return (data, offset) => ((data[offset] ?? 0) - 128) / 128; // the only unsigned one
  if (numBits !== 16 && numBits !== 24 && numBits !== 32) return undefined;
  return (data, offset) => data.readIntLE(offset, numBits / 8) / 2 ** (numBits - 1);
}
