import type { Recording } from "./wav.ts";

/** A format that the threads of `decodeSound` decode. */
export type SoundKind = "flac" | "ogg" | "mp3";

/** A recording; or why there is none, in words: an error would lose its fields between threads. */
export type DecodedSound = Recording | { readonly refusal: string } | { readonly missing: string };

// The decoders also print the errors that they return.
console.error = () => {};

interface Decoded {
  readonly channelData: readonly Float32Array[];
  readonly samplesDecoded: number;
  readonly sampleRate: number;
  readonly errors: readonly { readonly message: string }[];
}

interface Decoder {
  readonly ready: Promise<void>;
  decode(bytes: Uint8Array): Decoded | Promise<Decoded>;
  /** Decodes a complete file, where frames must be found first. */
  decodeFile?(bytes: Uint8Array): Promise<Decoded>;
  free(): void;
}

const decoders: Readonly<Record<SoundKind, () => Promise<Decoder>>> = {
  flac: async () => new (await import("@wasm-audio-decoders/flac")).FLACDecoder(),
  ogg: async () => new (await import("@wasm-audio-decoders/ogg-vorbis")).OggVorbisDecoder(),
  mp3: async () => new (await import("mpg123-decoder")).MPEGDecoder(),
};

/** Decodes one recording, in a thread of the pool of `decodeSound`. */
export default async function decode({
  kind,
  bytes,
}: {
  readonly kind: SoundKind;
  readonly bytes: Uint8Array;
}): Promise<DecodedSound> {
  let decoder: Decoder;
  try {
    decoder = await decoders[kind]();
  } catch (error) {
    return { missing: (error as Error).message };
  }
  try {
    await decoder.ready;
    const { channelData, samplesDecoded, sampleRate, errors } = await (decoder.decodeFile?.(bytes) ??
      decoder.decode(bytes));
    const [error] = errors;
    if (error !== undefined) return { refusal: error.message };
    if (samplesDecoded === 0 || channelData.length === 0) return { refusal: "no samples" };
    const samples = new Float32Array(samplesDecoded);
    for (const channel of channelData)
      for (let at = 0; at < samplesDecoded; at++)
        samples[at] = (samples[at] as number) + (channel[at] as number) / channelData.length;
    return { samples, samplesPerSecond: sampleRate };
  } catch (error) {
    return { refusal: (error as Error).message };
  } finally {
    decoder.free();
  }
}
