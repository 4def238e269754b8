import type { Piscina } from "piscina";
import { optionalPackage } from "./optional-package.ts";
import { exampleError } from "./refusal.ts";
import type { DecodedSound, SoundKind } from "./sound-worker.ts";
import { decodeWav, type Recording } from "./wav.ts";

/** The packages that decode, which users install themselves. */
const packages = {
  flac: "@wasm-audio-decoders/flac",
  ogg: "@wasm-audio-decoders/ogg-vorbis",
  mp3: "mpg123-decoder",
} as const satisfies Readonly<Record<SoundKind, string>>;

const NUM_THREADS = 2;
/** Threads end after so long without work. */
const IDLE_MS = 5_000;

let pool: Promise<Piscina<{ kind: SoundKind; bytes: Uint8Array }, DecodedSound>> | undefined;

/**
 * Decodes WAV; or FLAC, Ogg Vorbis or MP3, in threads of its own, by a package that users install themselves.
 * @param place - names the recording in errors
 * @returns the mean of its channels
 * @throws {TroupeError} `DATA_PACKAGE` without the package, `DATA_EXAMPLE` for another format or a damaged file
 */
export async function decodeSound(bytes: unknown, place: string): Promise<Recording> {
  if (!(bytes instanceof Uint8Array)) throw exampleError(place, "the bytes of a recording", typeof bytes);
  const kind = kindOf(bytes);
  if (kind === undefined) throw exampleError(place, "WAV, FLAC, Ogg Vorbis or MP3", "another format");
  if (kind === "wav") return decodeWav(Buffer.from(bytes.buffer, bytes.byteOffset, bytes.length), place);
  pool ??= import("piscina").then(
    ({ Piscina }) =>
      new Piscina({
        filename: new URL("./sound-worker.ts", import.meta.url).href,
        // Threads that block in Atomics.wait hold up the teardown of an addon loaded in the process.
        ...{ atomics: "async", minThreads: 0, maxThreads: NUM_THREADS, idleTimeout: IDLE_MS },
      }),
  );
  const decoded = await (await pool).run({ kind, bytes });
  if ("missing" in decoded)
    return optionalPackage(packages[kind], () => Promise.reject(new Error(decoded.missing)));
  if ("refusal" in decoded) throw exampleError(place, `${kind} that can be decoded`, decoded.refusal);
  return decoded;
}

/** Size and rate of a recording. */
export interface SoundFacts {
  readonly length: number;
  readonly samplesPerSecond: number;
}

/** Finds a recording's size and rate, which FLAC says in front; others are decoded. @throws as {@link decodeSound} */
export async function soundFacts(bytes: unknown, place: string): Promise<SoundFacts> {
  if (bytes instanceof Uint8Array && kindOf(bytes) === "flac" && bytes.length >= FLAC_LENGTH_END) {
    const info = Buffer.from(bytes.buffer, bytes.byteOffset, FLAC_LENGTH_END);
    const length = info.readUInt32BE(FLAC_LENGTH_END - 4) + 2 ** 32 * ((info[FLAC_LENGTH_END - 5] ?? 0) & 15);
    // None where its writer did not know it.
    if (length > 0) return { length, samplesPerSecond: info.readUInt32BE(FLAC_RATE) >>> 12 };
  }
  const { samples, samplesPerSecond } = await decodeSound(bytes, place);
  return { length: samples.length, samplesPerSecond };
}

/** Places in FLAC's first block: 20 bits for the rate, and the end of 36 that count samples. @see https://www.rfc-editor.org/rfc/rfc9639#section-8.2 */
const [FLAC_RATE, FLAC_LENGTH_END] = [18, 26];

function kindOf(bytes: Uint8Array): SoundKind | "wav" | undefined {
  const begin = Buffer.from(bytes.subarray(0, 4)).toString("latin1");
  if (begin === "RIFF") return "wav";
  if (begin === "fLaC") return "flac";
  if (begin === "OggS") return "ogg";
  const isFrame = bytes[0] === 0xff && ((bytes[1] ?? 0) & 0xe0) === 0xe0;
  return isFrame || begin.startsWith("ID3") ? "mp3" : undefined;
}
