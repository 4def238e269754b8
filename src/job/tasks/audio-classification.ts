import { type Tensor, tensor } from "../../compute/tensor/index.ts";
import { sampleDataset } from "../../library/data/index.ts";
import { accuracy } from "../../library/metrics/index.ts";
import type { ModelBatch } from "../../library/models/index.ts";
import { textIn } from "./examples/example.ts";
import { Labels } from "./examples/labels.ts";
import { type RecordingTensors, readRecordings, stackRecordings } from "./examples/recordings.ts";
import { indexOfMax, numbersOf } from "./rows.ts";
import type { TaskDefinition } from "./task.ts";

/** A recording, and what it is of. */
export interface LabelledRecording {
  readonly samples: Float32Array;
  readonly label: string;
}

/** Recordings with a label each. */
export type LabelledRecordings = RecordingTensors & {
  /** int64 [rows]. */
  readonly labels: Tensor;
};

/**
 * What a recording is of: a word, a speaker, a sound. Score: accuracy.
 *
 * Files: the Free Spoken Digit Dataset's `digit_speaker_index.wav`; `.jsonl` with `path`, beside it, and `label`.
 */
export const audioClassification: TaskDefinition<LabelledRecording, LabelledRecordings> = {
  task: "audio_classification",

  read: (path) =>
    readRecordings(path, (samples, record, place) => ({ samples, label: textIn(record, ["label"], place) })),

  dataset(examples, { config, length, seed, source }) {
    const all = Object.values(examples).flat();
    const labels = new Labels(
      examples.train.map(({ label }) => label),
      { task: "audio_classification", config },
    );
    const most = length ?? Math.max(...all.map(({ samples }) => samples.length));
    const idsOf = (recordings: readonly LabelledRecording[]) =>
      recordings.map(({ label }) => labels.idOf(label));
    return sampleDataset({
      facts: { source, fields: labels.fields, numTrain: examples.train.length },
      splits: examples,
      seed,
      collate: (batch): LabelledRecordings => ({
        ...stackRecordings(batch, most),
        labels: tensor(idsOf(batch), { dtype: "int64" }),
      }),
      score: (split, predicted) => {
        const logits = numbersOf(predicted, "logits");
        return {
          accuracy: accuracy(logits.map(indexOfMax), idsOf((examples[split] ?? []).slice(0, logits.length))),
        };
      },
    });
  },

  loss: (model, batch) => model.forward(batch as ModelBatch).loss as Tensor,

  predict: (model, { inputValues, attentionMask }) => ({
    logits: model.forward({ inputValues, attentionMask }).logits as Tensor,
  }),
};
