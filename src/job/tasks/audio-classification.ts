import { type Tensor, tensor } from "../../compute/tensor/index.ts";
import { accuracy } from "../../library/metrics/index.ts";
import { defineTask } from "./define-task.ts";
import { labelIn } from "./examples/example.ts";
import { Labels } from "./examples/labels.ts";
import { readRecordings } from "./examples/recordings.ts";
import { type BareRecording, type RecordingTensors, recordingDataset } from "./recording-dataset.ts";
import { indexOfMax, numbersOf } from "./rows.ts";
import type { TaskDefinition } from "./task.ts";

/** A recording with its label. */
export interface LabelledRecording extends BareRecording {
  readonly label: string | number;
}

/** Recordings with a label each. */
export type LabelledRecordings = RecordingTensors & {
  /** int64 [rows]. */
  readonly labels: Tensor;
};

/**
 * Classifies recordings: a word, a speaker, a sound. Score: accuracy.
 *
 * Files: the Free Spoken Digit Dataset's `digit_speaker_index.wav`; see `readRecordings`, with `label`, or a folder for each label.
 */
export const audioClassification: TaskDefinition<LabelledRecording, LabelledRecordings> = defineTask<
  LabelledRecording,
  LabelledRecordings
>({
  task: "audio_classification",

  read: (path) =>
    readRecordings(path, (samples, record, place) => ({ samples, label: labelIn(record, place) })),

  dataset(examples, options) {
    const known = examples.train.map(({ label }) => label);
    const labels = new Labels(known, { task: "audio_classification", config: options.config });
    const idOf = ({ label }: Pick<LabelledRecording, "label">) => labels.idOf(label);
    return recordingDataset(examples, options, {
      fields: labels.fields,
      targets: (batch) => ({ labels: tensor(batch.map(idOf), { dtype: "int64" }) }),
      score: (predicted, asked) => ({
        accuracy: accuracy(numbersOf(predicted, "logits").map(indexOfMax), asked.map(idOf)),
      }),
    });
  },
});
