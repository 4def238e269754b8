import { ops, type Tensor, tensor } from "../../compute/tensor/index.ts";
import { type FrameMaskOptions, type MaskedFrames, maskFrames } from "../../library/data/index.ts";
import { autoModel, numFrames, type SpeechForPreTraining } from "../../library/models/index.ts";
import { defineTask, outputsOf } from "./define-task.ts";
import { readRecordings } from "./examples/recordings.ts";
import { type BareRecording, type RecordingTensors, recordingDataset } from "./recording-dataset.ts";
import { sumsOf } from "./rows.ts";
import type { Fields, WeighedTask } from "./task.ts";

// B recordings, T frames, K distractors of each, G codebooks of V codes each.

/** Recordings with masked frames. */
export type MaskedRecordings = RecordingTensors & MaskedFrames;

/** Schedule of the temperature of drawing codes, wav2vec 2's: the lower, the likelier codes are drawn. @see Baevski et al. 2020 §4.2 */
const TEMPERATURE = { first: 2, last: 0.5, decay: 0.999995 } as const;

/**
 * Pre-trains wav2vec 2 on recordings alone: tells the masked frame from distractors. Masks and distractors are functions of the seed
 * and of the number of samples read before, with the options of config.json (`mask_time_prob`, `mask_time_length`,
 * `mask_time_min_masks`, `num_negatives`; defaults as in the paper). Losses are means over the masked frames: `contrastive`, and
 * `diversity`, weighted by `diversity_loss_weight`, which depends on the codes of the complete micro-batch. Scores: the share of
 * masked frames that are the likeliest, and the perplexity of their codes, summed over the codebooks.
 *
 * Files: `.wav`, held out if the name contains `dev`, `valid` or `test`; others, see `readRecordings`.
 */
export const speechPretraining: WeighedTask<BareRecording, MaskedRecordings> = defineTask<
  BareRecording,
  MaskedRecordings
>({
  task: "speech_pretraining",

  read: (path) => readRecordings(path, (samples) => ({ samples })),

  dataset(examples, options) {
    const { config, seed } = options;
    const { config: read } = autoModel("speech_pretraining", config) as SpeechForPreTraining;
    const framesOf = (lengths: readonly number[]) => {
      const frames = numFrames(tensor(lengths, { dtype: "int64" }), read).toTypedArray() as BigInt64Array;
      return [...frames].map(Number);
    };
    return recordingDataset(examples, options, {
      targets: (batch, { position }, length) => {
        const lengths = batch.map(({ samples }) => Math.min(samples.length, length));
        const [numMost = 0, ...frames] = framesOf([length, ...lengths]);
        const draws = batch.map((_, index) => position + index);
        return maskFrames(frames, numMost, { ...spansOf(config), seed, draws });
      },
      score: (predicted) => {
        const [numMasked = 0, numRight = 0] = sumsOf(predicted, "told");
        return {
          accuracy: numRight / Math.max(1, numMasked),
          codePerplexity: codePerplexity(sumsOf(predicted, "codes"), read.num_codevector_groups),
        };
      },
    });
  },

  loss: (model, batch, { numSteps }) => {
    const { first, last, decay } = TEMPERATURE;
    (model as SpeechForPreTraining).quantizer.temperature = Math.max(first * decay ** numSteps, last);
    const { contrastiveLoss, diversityLoss } = outputsOf<"contrastiveLoss" | "diversityLoss">(model, batch);
    const count = batch.maskTimeIndices.sum().clamp(1).to("float32");
    const { diversity_loss_weight: weight } = (model as SpeechForPreTraining).config;
    return { contrastive: contrastiveLoss.div(count), diversity: diversityLoss.div(count).mul(weight) };
  },

  weigh: ({ maskTimeIndices }) => maskTimeIndices.sum().item(),

  predict: (model, batch) => {
    const { contrastiveLogits, codes } = outputsOf<"contrastiveLogits" | "codes">(model, batch);
    const masked = batch.maskTimeIndices;
    const likeliest = contrastiveLogits.argmax(2); // [B, T], 0 the right one
    const right = likeliest.eq(0).to("int64").mul(masked);
    return {
      told: ops.stack([masked.sum([1]), right.sum([1])], 1).to("float32"),
      codes: useOf(codes, masked, (model as SpeechForPreTraining).config),
    };
  },
});

/** Options of masks in config.json. */
function spansOf(config: Fields): Partial<FrameMaskOptions> {
  const names = ["mask_time_prob", "mask_time_length", "mask_time_min_masks", "num_negatives"] as const;
  return Object.fromEntries(
    names.flatMap((name) => (config[name] === undefined ? [] : [[name, config[name]]])),
  );
}

/** Counts each recording's masked frames by code: int64 [B, T], a digit per codebook → float32 [B, G · V]. */
function useOf(
  codes: Tensor,
  masked: Tensor,
  { num_codevector_groups: groups, num_codevectors_per_group: numCodes }: SpeechForPreTraining["config"],
): Tensor {
  const digits = Array.from({ length: groups }, (_, group) =>
    codes.floorDivide(numCodes ** (groups - 1 - group)).remainder(numCodes),
  );
  const used = ops.oneHot(ops.stack(digits, 2), numCodes).mul(masked.unsqueeze(-1).unsqueeze(-1)).sum([1]); // [B, G, V]
  return used.to("float32").reshape([used.shape[0] ?? 0, -1]);
}

/** @param use - counts of all codebooks' codes, one codebook after the other @returns at most the number of codes */
function codePerplexity(use: readonly number[], groups: number): number {
  const numCodes = use.length / groups;
  const books = Array.from({ length: groups }, (_, group) =>
    use.slice(group * numCodes, (group + 1) * numCodes),
  );
  return books.reduce((sum, counts) => sum + Math.exp(entropyOf(counts)), 0);
}

/** Entropy in nats. */
function entropyOf(counts: readonly number[]): number {
  const total = counts.reduce((sum, count) => sum + count, 0);
  const shares = counts.filter((count) => count > 0).map((count) => count / total);
  return -shares.reduce((sum, share) => sum + share * Math.log(share), 0);
}
