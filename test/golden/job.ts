// Reference models on their one batch, as a job: every replica reads the complete batch, so the mean over the replicas is the
// reference's own gradient. In evaluation the outputs are compared with the reference's.
import { AdamW, type Dataset, defineJob, ops, type Tensor, tensor } from "troupe";
import { relativeError } from "./golden.ts";
import {
  batchesOf,
  expectedOutputs,
  flatOutputs,
  type GoldenModel,
  keyOf,
  readNumbers,
  Together,
} from "./together.ts";

type Named = { readonly [name: string]: Tensor };
type Batches = { readonly asked: Named; readonly open: Named; readonly outputs: Named };
type GoldenBatch = { readonly samples: Tensor; readonly models: { readonly [key: string]: Batches } };

const batchesIn = (models: unknown) => Object.values(models as Readonly<Record<string, Batches>>);

const modelsOf = (json: string) => JSON.parse(json) as GoldenModel[];

export default defineJob({
  // `models`: those of `keys`, as JSON; `folder`: their joined weights.
  config: { models: "[]", folder: "", steps: 10, lr: 1e-3, replicas: 1, clipNorm: 0, evaluate: 0 },
  training: ({ steps, replicas, folder, clipNorm, evaluate }) => ({
    steps,
    batchSize: replicas,
    pretrained: folder,
    ...(clipNorm > 0 && { clipNorm }),
    ...(evaluate > 0 && { evaluateEverySteps: evaluate }),
  }),
  data: (config) => goldenData(modelsOf(config.models), config.replicas),
  model: (config) => new Together(modelsOf(config.models)),
  loss: (model, { models }) => {
    model.eval(); // as the reference states are: one family's codes are drawn while training
    const answers = model.forward(batchesIn(models).map(({ asked }) => asked));
    return Object.fromEntries(answers.map(({ loss }, index) => [keyOf(index), loss as Tensor]));
  },
  predict: (model, { models, samples }) => {
    const batches = batchesIn(models);
    const answers = model.forward(batches.map(({ open }) => open));
    const flat = answers.flatMap((answer, index) =>
      flatOutputs(answer, Object.keys(batches[index]?.outputs ?? {})),
    );
    const row = ops.cat(flat, 0);
    return {
      outputs: row
        .unsqueeze(0)
        .expand([samples.shape[0] ?? 0, row.numel])
        .contiguous(),
    };
  },
  optimizer: (parameters, { lr }) =>
    new AdamW(parameters, { lr, betas: [0.9, 0.95], weightDecay: 0.1, decay: "every parameter" }),
});

async function goldenData(models: readonly GoldenModel[], replicas: number): Promise<Dataset<GoldenBatch>> {
  const numbers = await Promise.all(models.map(readNumbers));
  const batch = (_: string, __: number, numSamples: number): GoldenBatch => ({
    samples: tensor(Array.from({ length: numSamples }, () => 0)),
    models: Object.fromEntries(
      numbers.map((of, index) => [keyOf(index), { ...batchesOf(of), outputs: expectedOutputs(of) }]),
    ),
  });
  return {
    facts: { source: "golden" },
    splits: { train: { numSamples: Number.POSITIVE_INFINITY }, validation: { numSamples: replicas } },
    batch,
    /** By model, the largest error of an output on any replica. */
    score: (_, { outputs }) => {
      const rows = (outputs as Tensor).to("float32").unbind(0);
      const scores: Record<string, number> = {};
      let begin = 0;
      for (const [index, of] of numbers.entries()) {
        for (const expected of Object.values(expectedOutputs(of))) {
          const end = begin + expected.numel;
          for (const row of rows) {
            const got = (row.toTypedArray() as Float32Array).subarray(begin, end);
            const error = relativeError(got, expected.toTypedArray() as Float32Array);
            scores[keyOf(index)] = Math.max(scores[keyOf(index)] ?? 0, Math.min(error, 1e30));
          }
          begin = end;
        }
      }
      return scores;
    },
  };
}
