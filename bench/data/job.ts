import { appendFileSync } from "node:fs";
import { threadId } from "node:worker_threads";
import { openRecords } from "../../src/entries/data.ts";
import {
  AdamW,
  defineJob,
  Linear,
  Module,
  sampleDataset,
  type Tensor,
  tensor,
} from "../../src/entries/index.ts";

/** A model of two numbers: the data is all that takes time. */
class Point extends Module {
  readonly affine: Linear = new Linear(1, 1);
  readonly log: string;

  constructor(log: string) {
    super();
    this.log = log;
  }

  override forward(x: Tensor): Tensor {
    return this.affine.forward(x);
  }
}

/** Records with a number each; ranks append the positions and numbers that they train on to files in a folder. */
export default defineJob({
  config: { source: "", cache: "", log: "", batch: 1_500, epochSamples: 1_000_000 },
  training: ({ batch, epochSamples }) => ({ steps: Math.ceil(epochSamples / batch), batchSize: batch }),
  data: async ({ source, cache }, { seed }) => {
    const train = await openRecords(source, { cacheDir: cache, map: numberOf });
    return sampleDataset({
      facts: { source },
      splits: { train },
      collate: (numbers: readonly number[], { position }) => ({
        numbers: tensor([...numbers]),
        positions: tensor(numbers.map((_, index) => position + index)),
      }),
      seed,
      fingerprint: () => train.fingerprint(),
    });
  },
  model: ({ log }) => new Point(log),
  loss: (model, { numbers, positions }) => {
    const pairs = [positions, numbers].map((each) => Float32Array.from(each.toTypedArray() as Float32Array));
    const both = Float32Array.from({ length: 2 * numbers.numel }, (_, at) => pairs[at % 2]?.[at >> 1] ?? -1);
    appendFileSync(`${model.log}/${process.pid}-${threadId}`, Buffer.from(both.buffer));
    return model.forward(numbers.div(1e6).unsqueeze(1)).square().mean();
  },
  optimizer: (parameters) => new AdamW(parameters, { lr: 1e-3 }),
});

/** The number of a record that `makeTars` wrote. */
function numberOf(record: Readonly<Record<string, unknown>>): number {
  return (record.json as { readonly number: number }).number;
}
