// Two models, two optimizers, one loop: a generator learns to make points on a ring, a discriminator to tell them from real
// ones. Every rank runs the loop on its own share of the samples; nothing here knows how many there are.
import { AdamW, defineLoop, empty, Linear, Module, ModuleList, noGrad, ops, type Tensor } from "troupe";

class MLP extends Module {
  readonly layers: ModuleList<Linear>;

  constructor(numInputs: number, width: number, numOutputs: number) {
    super();
    this.layers = new ModuleList([
      new Linear(numInputs, width, { activation: "relu" }),
      new Linear(width, width, { activation: "relu" }),
      new Linear(width, numOutputs),
    ]);
  }

  override forward(x: Tensor): Tensor {
    for (const layer of this.layers) x = layer.forward(x);
    return x;
  }
}

class GAN extends Module {
  readonly generator: MLP;
  readonly discriminator: MLP;

  constructor(width: number) {
    super();
    this.generator = new MLP(2, width, 2);
    this.discriminator = new MLP(2, width, 1);
  }

  override forward(noise: Tensor): Tensor {
    return this.generator.forward(noise);
  }
}

/** Points around a ring of radius 2 and the noise to forge them from: pure functions of the samples' numbers. */
function samples(seed: number, position: number, count: number) {
  const normal = (stream: number) =>
    ops.troupe.philoxNormal_(empty([count, 2]), 0, 1, seed, stream, 2 * position);
  const angles = ops.troupe.philoxUniform_(empty([count, 1]), 0, 2 * Math.PI, seed, 0, position);
  const ring = ops.cat([angles.cos(), angles.sin()], 1).mul(2);
  return { points: ring.add(normal(1).mul(0.1)), noise: normal(2) };
}

/** ln(1 + eˣ) in the mean: what a logit of the wrong sign costs. */
const cost = (logits: Tensor) => ops.softplus(logits).mean();

export default defineLoop(
  {
    config: { steps: 400, width: 32 },
    training: ({ steps }) => ({ steps, batchSize: 64 }),
    data: (_, { seed }) => ({
      facts: { source: "a ring" },
      splits: { train: { numSamples: Number.POSITIVE_INFINITY } },
      batch: (_split, position, count) => samples(seed, position, count),
    }),
    model: ({ width }) => new GAN(width),
    optimizer: (parameters) => [
      new AdamW(parameters, { lr: 2e-3, betas: [0.5, 0.999], weightDecay: 0, only: /^generator/ }),
      new AdamW(parameters, { lr: 2e-3, betas: [0.5, 0.999], weightDecay: 0, only: /^discriminator/ }),
    ],
  },
  (rank) => {
    const { generator, discriminator } = rank.model;
    for (const { points, noise } of rank.batches()) {
      const discriminatorLoss = rank.forward(() => {
        const forged = noGrad(() => generator.forward(noise));
        const real = cost(discriminator.forward(points).neg());
        return real.add(cost(discriminator.forward(forged)));
      });
      rank.backward(discriminatorLoss, { only: /^discriminator/ });
      const { loss, forged } = rank.forward(() => {
        const forged = generator.forward(noise);
        return { loss: cost(discriminator.forward(forged).neg()), forged };
      });
      rank.backward(loss, { only: /^generator/ });
      const radius = noGrad(() => forged.pow(2).sum([1]).sqrt().mean().item());
      rank.log({ discriminator: discriminatorLoss.item(), generator: loss.item(), radius });
      rank.step();
    }
  },
);
