import { type Tensor, tensor } from "../../compute/tensor/index.ts";
import { type BatchPlace, type Dataset, exampleError } from "../../library/data/index.ts";
import { type TaskSamples, taskDataset } from "./define-task.ts";
import type { StoredSamples } from "./examples/recordings.ts";
import type { Examples, TaskData, TaskFacts } from "./task.ts";

/** A recording. */
export interface BareRecording {
  /** In memory, or read when a batch needs them. */
  readonly samples: Float32Array | StoredSamples;
}

/** A recording whose samples are in memory. */
type Heard<S> = Omit<S, "samples"> & { readonly samples: Float32Array };

/** Parts of a dataset of recordings besides the recordings. */
interface RecordingParts<S, B extends RecordingTensors>
  extends Pick<TaskSamples<S, B>, "fields" | "facts" | "score"> {
  /** The rest of a batch. @param length - of its rows, in samples */
  targets(batch: readonly Heard<S>[], place: BatchPlace, length: number): Omit<B, keyof RecordingTensors>;
}

/**
 * Makes the dataset of a task with recordings, in rows as long as the options say, else as the longest one.
 * @throws {TroupeError} `DATA_EXAMPLE` for a recording of another rate than the model's or, if that is not known, than the first's
 */
export function recordingDataset<S extends BareRecording, B extends RecordingTensors>(
  examples: Examples<S>,
  options: TaskData,
  { targets, ...parts }: RecordingParts<S, B>,
): Dataset<B, TaskFacts> {
  const all = Object.values(examples).flat();
  checkRates(all, options.samplingRate);
  const length = options.length ?? all.reduce((most, { samples }) => Math.max(most, samples.length), 0);
  return taskDataset<S, B, Heard<S>>(options, {
    ...parts,
    splits: examples,
    load: async (recording) => {
      const { samples } = recording;
      return { ...recording, samples: samples instanceof Float32Array ? samples : await samples.read() };
    },
    collate: (batch, place) => ({ ...stackRecordings(batch, length), ...targets(batch, place, length) }) as B,
  });
}

function checkRates(recordings: readonly BareRecording[], ofModel: number | undefined): void {
  let rate = ofModel;
  for (const { samples } of recordings) {
    if (samples instanceof Float32Array) continue;
    rate ??= samples.samplesPerSecond;
    if (samples.samplesPerSecond === rate) continue;
    const source = ofModel === undefined ? "the first recording" : "the model's preprocessor_config.json";
    throw exampleError(
      samples.place,
      `${rate} samples per second, as in ${source},`,
      samples.samplesPerSecond,
      `resample the recordings, such as by ffmpeg -ar ${rate}`,
    );
  }
}

/** Recordings as input of a model. */
export type RecordingTensors = {
  /** float32 [rows, length], each with mean 0 and deviation 1; 0 after the end. */
  readonly inputValues: Tensor;
  /** int64 [rows, length]: 1 in the recording, 0 after its end. */
  readonly attentionMask: Tensor;
};

/** Stacks recordings, cut to `length` samples. The caller disposes of them. */
function stackRecordings(
  recordings: readonly { readonly samples: Float32Array }[],
  length: number,
): RecordingTensors {
  const values = new Float32Array(recordings.length * length);
  const present = new BigInt64Array(recordings.length * length);
  for (const [row, { samples }] of recordings.entries()) {
    const heard = samples.subarray(0, length);
    values.set(normalised(heard), row * length);
    present.fill(1n, row * length, row * length + heard.length);
  }
  const shape = [recordings.length, length];
  return { inputValues: tensor(values, { shape }), attentionMask: tensor(present, { shape }) };
}

/** Normalizes to mean 0 and deviation 1, as transformers' feature extractor; 1e-7 keeps silence finite. */
function normalised(samples: Float32Array): Float32Array {
  const count = Math.max(1, samples.length);
  let sum = 0;
  for (const value of samples) sum += value;
  const mean = sum / count;
  let squares = 0;
  for (const value of samples) squares += (value - mean) ** 2;
  const deviation = Math.sqrt(squares / count + 1e-7);
  return samples.map((value) => (value - mean) / deviation);
}
