// A complete model of one's own: three layers tell two spirals of points apart.
import {
  AdamW,
  crossEntropy,
  defineJob,
  Linear,
  Module,
  Sequential,
  sampleDataset,
  stack,
  type Tensor,
  tensor,
} from "troupe";

const point = (index: number) => {
  const [label, angle] = [index % 2, (index / 400) * 2 * Math.PI];
  const radius = angle * (label === 0 ? 1 : -1);
  return { x: tensor([radius * Math.cos(angle), radius * Math.sin(angle)]), label };
};

class Spirals extends Module {
  readonly layers: Sequential = new Sequential(
    new Linear(2, 64, { activation: "silu" }),
    new Linear(64, 64, { activation: "silu" }),
    new Linear(64, 2),
  );

  override forward(x: Tensor): Tensor {
    return this.layers.forward(x) as Tensor; // [B, 2]
  }
}

export default defineJob({
  config: { epochs: 60, lr: 1e-2 },
  data: (_, { seed }) =>
    sampleDataset({
      facts: { source: "spirals" },
      splits: { train: Array.from({ length: 400 }, (_, index) => point(index)) },
      collate: stack<ReturnType<typeof point>>({ label: "int64" }),
      seed,
    }),
  training: ({ epochs }) => ({ epochs, batchSize: 40 }),
  model: () => new Spirals(),
  loss: (model, { x, label }) => crossEntropy(model.forward(x), label),
  optimizer: (parameters, { lr }) => new AdamW(parameters, { lr }),
});
