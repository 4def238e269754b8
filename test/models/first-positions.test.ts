import { describe, expect, it } from "vitest";
import {
  dematerialize,
  type Module,
  type ModuleList,
  materialize,
  paddingMask,
  wrapForward,
} from "../../src/compute/nn/index.ts";
import { backward, empty, noGrad, ops, scope, type Tensor, tensor } from "../../src/compute/tensor/index.ts";
import { EncoderSelfAttention } from "../../src/library/models/encoder-parts.ts";
import { FirstPositions } from "../../src/library/models/heads/index.ts";
import { autoModel, type ModelBatch, type Task } from "../../src/library/models/index.ts";
import { expectGradients } from "../nn/finite-differences.ts";

const sizes = { hidden_size: 24, num_hidden_layers: 2, num_attention_heads: 3, intermediate_size: 40 };
const text = { ...sizes, vocab_size: 50, max_position_embeddings: 40, initializer_range: 0.3 };
const picture = { ...sizes, image_size: 12, patch_size: 4, num_channels: 2, initializer_range: 0.3 };
const length = 11;

const ids = (rows: number) =>
  tensor(
    Array.from({ length: rows }, (_, row) =>
      Array.from({ length }, (__, place) => (7 * row + place * place) % 50),
    ),
    { dtype: "int64" },
  );
const labels = (count: number) =>
  tensor(
    Array.from({ length: count }, (_, row) => row % 2),
    { dtype: "int64" },
  );
const uniform = (shape: number[], stream: number) =>
  ops.troupe.philoxUniform_(empty(shape), -1, 1, 3, stream, 0);
const values = (x: Tensor | null) => Array.from(x?.to("float64").toTypedArray() as Float64Array);
const largest = (x: readonly number[]) => Math.max(...x.map(Math.abs));
const apart = (a: readonly number[], b: readonly number[]) =>
  largest(a.map((each, index) => each - (b[index] ?? Number.NaN)));

interface Trial {
  readonly title: string;
  readonly task: Task;
  readonly config: Readonly<Record<string, unknown>>;
  readonly batch: () => ModelBatch;
}

const ofTexts = ["bert", "megatron-bert", "roberta", "data2vec-text"].flatMap((model_type): Trial[] => {
  const common = { task: "sequence_classification", config: { ...text, model_type } } as const;
  const present = () =>
    tensor(
      [0, 3, 6].map((missing) => [...Array(length)].map((_, at) => (at < length - missing ? 1 : 0))),
      { dtype: "int64" },
    ); // prettier-ignore
  return [
    {
      title: `${model_type}, rows padded`,
      ...common,
      batch: () => ({ inputIds: ids(3), attentionMask: present(), labels: labels(3) }),
    },
    {
      title: `${model_type}, samples and padding in one row`,
      ...common,
      batch: () => ({
        inputIds: ids(1),
        segments: tensor([0, 4, 5, 9], { dtype: "int64" }),
        labels: labels(3),
      }),
    },
  ];
});
const trials: Trial[] = [
  ...ofTexts,
  {
    title: "vit",
    task: "image_classification",
    config: { ...picture, model_type: "vit" },
    batch: () => ({ pixelValues: uniform([3, 2, 12, 12], 9), labels: labels(3) }),
  },
];

const declared = ({ task, config }: Trial) => {
  const model = autoModel(task, config);
  model.eval();
  materialize(model, { seed: 5 });
  return model;
};

/** Lets the last layer make all positions, and takes the first of each sample behind it. */
function unshortened(model: Module): Module {
  const modules = [...model.namedModules()];
  const [name, first] = modules.find(([, module]) => module instanceof FirstPositions) ?? [];
  const [, list] = modules.find(([each]) => name?.startsWith(each) && each.endsWith("layer")) ?? [];
  const last = (list as ModuleList<Module>).at(-1) as Module;
  const take = new FirstPositions();
  wrapForward(first as FirstPositions, (_, [x]) => x);
  wrapForward(last, (forward, inputs) => {
    const [, seen] = inputs as unknown as Parameters<FirstPositions["forward"]>;
    return take.forward((forward as (...given: unknown[]) => Tensor)(...inputs), seen) as never;
  });
  return model;
}

describe("a last layer of which the first position alone is read", () => {
  // float32: the same sums by products of other widths, which are blocked otherwise.
  const TOLERANCE = 1e-5;

  it.each(trials)("answers as one that makes all, and has its gradients: $title", (trial) => {
    const [short, whole] = [declared(trial), unshortened(declared(trial))].map((model) =>
      scope(() => {
        const { labels: _, ...question } = trial.batch();
        const { logits } = noGrad(() => model.forward(question as never)) as unknown as { logits: Tensor };
        const { loss } = model.forward(trial.batch() as never) as unknown as { loss: Tensor };
        backward(loss);
        const gradients = [...model.namedParameters()].map(
          ([name, { tensor: memory }]) => [name, values(memory.grad ?? null)] as const,
        );
        return { logits: values(logits), loss: loss.item(), gradients };
      }),
    );
    if (short === undefined || whole === undefined) throw new Error("no answer");
    expect(apart(short.logits, whole.logits) / largest(whole.logits)).toBeLessThan(TOLERANCE);
    expect(Math.abs(short.loss - whole.loss)).toBeLessThan(TOLERANCE);
    // A key's bias has no gradient but rounding, since softmax does not see what is added to all scores: terms as large as other
    // gradients cancel, and what is left was 1.1e-7 of the largest with AVX2 alone.
    const floor = 1e-1 * Math.max(...whole.gradients.map(([, gradient]) => largest(gradient)));
    for (const [index, [name, gradient]] of whole.gradients.entries()) {
      const own = short.gradients[index]?.[1] ?? [];
      expect(apart(gradient, own) / Math.max(floor, largest(gradient)), name).toBeLessThan(TOLERANCE);
    }
  });

  it("has the gradients of finite differences", () => {
    scope(() => {
      const attending = new EncoderSelfAttention(
        { ...text, hidden_size: 6, attention_probs_dropout_prob: 0 },
        "first",
      );
      materialize(attending, { seed: 5, dtype: "float64" });
      const x = uniform([2, 4, 6], 1).to("float64").requiresGrad_();
      const weights = uniform([2, 1, 6], 2).to("float64");
      const mask = paddingMask(
        tensor(
          [
            [1, 1, 1, 1],
            [1, 1, 0, 0],
          ],
          { dtype: "int64" },
        ),
      );
      const loss = () => attending.forward(x, mask).add(attending.answered(x)).mul(weights).sum();
      const parameters = [...attending.namedParameters()].map(([name, parameter]) => [
        name,
        parameter.tensor,
      ]);
      // A key's bias has no gradient: softmax does not see what is added to all scores.
      const { "key.bias": _, ...inputs } = Object.fromEntries(parameters) as Record<string, Tensor>;
      expectGradients(loss, { ...inputs, x }, { step: 1e-5, tolerance: 1e-7 });
      dematerialize(attending);
    });
  });
});
