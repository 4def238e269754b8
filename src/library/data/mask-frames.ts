import { type Tensor, tensor } from "../../compute/tensor/index.ts";
import { philox4x32, wordsOf } from "./philox.ts";

/** Options of {@link maskFrames}, with the names of wav2vec 2's configuration. */
export interface FrameMaskOptions {
  /** Share of the frames to mask; overlapping spans make it at most that. Default: 0.65. */
  readonly mask_time_prob?: number;
  /** Frames per span. Default: 10. */
  readonly mask_time_length?: number;
  /** The fewest spans in a recording, where they fit. Default: 2. */
  readonly mask_time_min_masks?: number;
  /** Distractors for each masked frame. Default: 100. */
  readonly num_negatives?: number;
  readonly seed: number;
  /**
   * For each recording, the number of the seed's draw, such as its position among the samples; the same draw masks the
   * same frames.
   */
  readonly draws: readonly number[];
}

/** The masked frames of a batch, and the distractors of each. */
export type MaskedFrames = {
  /** int64 [B, T], 1 where a frame is masked. */
  readonly maskTimeIndices: Tensor;
  /**
   * int64 [B, T, K], indices among all B · T frames: other masked frames of the same recording; 0 for frames that are not masked.
   */
  readonly sampledNegativeIndices: Tensor;
};

/**
 * Masks spans of frames for wav2vec 2's pre-training, and draws uniform distractors for each masked frame from the same
 * recording.
 * @param lengths - number of frames of each recording (`numFrames`)
 * @param length - frames per row, T
 * @see Baevski et al. 2020 §3.1, https://arxiv.org/abs/2006.11477
 */
export function maskFrames(
  lengths: readonly number[],
  length: number,
  { mask_time_prob: share = 0.65, num_negatives: numOthers = 100, seed, draws, ...spans }: FrameMaskOptions,
): MaskedFrames {
  const { mask_time_length: spanLength = 10, mask_time_min_masks: atLeast = 2 } = spans;
  const isMasked = new BigInt64Array(lengths.length * length);
  const others = new BigInt64Array(lengths.length * length * numOthers);
  for (const [row, numFrames] of lengths.entries()) {
    const uniform = drawing(seed, draws[row] ?? row);
    const wished = Math.floor((share * numFrames) / spanLength + uniform(0, 0));
    const numStarts = Math.max(0, numFrames - spanLength + 1);
    const count = Math.min(Math.max(wished, atLeast), Math.floor(length / spanLength), numStarts);
    const lots = Array.from({ length: numStarts }, (_, start) => ({ start, lot: uniform(1, start) }));
    const starts = lots.toSorted((one, other) => one.lot - other.lot).slice(0, count);
    const masked = new Set(
      starts.flatMap(({ start }) => Array.from({ length: spanLength }, (_, step) => start + step)),
    );
    const places = [...masked].toSorted((one, other) => one - other);
    for (const [own, place] of places.entries()) {
      isMasked[row * length + place] = 1n;
      for (let other = 0; other < numOthers; other++) {
        // Drawn from one frame fewer, so that it is never the frame itself unless that is alone.
        const drawn = Math.floor(uniform(2 + place, other) * Math.max(1, places.length - 1));
        const chosen = places[drawn < own || places.length === 1 ? drawn : drawn + 1] as number;
        others[(row * length + place) * numOthers + other] = BigInt(row * length + chosen);
      }
    }
  }
  return {
    maskTimeIndices: tensor(isMasked, { shape: [lengths.length, length] }),
    sampledNegativeIndices: tensor(others, { shape: [lengths.length, length, numOthers] }),
  };
}

/** Numbers in [0, 1) by two counters. */
function drawing(seed: number, draw: number): (major: number, minor: number) => number {
  const key = wordsOf(seed);
  const [low, high] = wordsOf(draw);
  return (major, minor) => (philox4x32([minor, 0x66726d00 + major, low, high], key)[0] ?? 0) / 2 ** 32;
}
