import { describe, expect, test } from "vitest";
import { crossEntropy, type LossOptions, linearCrossEntropy } from "../../src/compute/nn/index.ts";
import { empty, grad, ops, scope, type Tensor, tensor } from "../../src/compute/tensor/index.ts";

const values = (x: Tensor) => Array.from(x.to("float64").toTypedArray() as Float64Array);
const random = (shape: number[], stream: number) =>
  ops.troupe.philoxNormal_(empty(shape), 0, 1, 8, stream, 0);
const largestDifference = (a: Tensor, b: Tensor) => a.to("float64").sub(b.to("float64")).abs().max().item();

const logits = [
  [1, 2, 3, 4],
  [0, 0, 0, 0],
  [5, -5, 1, 2],
];
const weights = () => ({ classWeights: tensor([1, 2, 3, 4]) });
type Options = LossOptions & { readonly reduction?: "mean" | "sum" };

/** By torch's `cross_entropy`, float32; its first four losses are BMTrain's golden values too. */
const golden: [title: string, options: () => LossOptions, loss: number[], gradient: number[]][] = [
  [
    "the mean",
    () => ({}),
    [5.253058],
    [0.0160293, 0.0435722, 0.1184414, -0.1780429, 0, 0, 0, 0, 0.4680999, -0.4999788, 0.0085735, 0.0233053],
  ],
  [
    "each row",
    () => ({ reduction: "none" }),
    [0.4401897, 0, 10.0659266],
    [0.0320586, 0.0871443, 0.2368828, -0.3560857, 0, 0, 0, 0, 0.9361997, -0.9999575, 0.0171471, 0.0466106],
  ],
  [
    "the sum",
    () => ({ reduction: "sum" }),
    [10.5061159],
    [0.0320586, 0.0871443, 0.2368828, -0.3560857, 0, 0, 0, 0, 0.9361997, -0.9999575, 0.0171471, 0.0466106],
  ],
  [
    "class weights",
    () => weights(),
    [3.6487687],
    [0.0213724, 0.0580962, 0.1579219, -0.2373905, 0, 0, 0, 0, 0.3120666, -0.3333192, 0.0057157, 0.0155369],
  ],
  [
    "label smoothing",
    () => ({ labelSmoothing: 0.1 }),
    [5.0405579],
    [0.0035293, 0.0310722, 0.1059414, -0.1405428, 0, 0, 0, 0, 0.4555998, -0.4624787, -0.0039265, 0.0108053],
  ],
  [
    "class weights and label smoothing",
    () => ({ ...weights(), labelSmoothing: 0.1 }),
    [3.5299799],
    [0.0164043, 0.0475843, 0.1394998, -0.2034883, 0, 0, 0, 0, 0.3157015, -0.3083188, -0.0066414, -0.0007414],
  ],
  [
    "both, each row",
    () => ({ ...weights(), labelSmoothing: 0.1, reduction: "none" }),
    [1.9447303, 0, 19.2351494],
    [0.0984256, 0.2855057, 0.8369988, -1.2209299, 0, 0, 0, 0, 1.8942094, -1.8499128, -0.0398485, -0.0044482],
  ],
];

describe("cross entropy equals torch's and BMTrain's", () => {
  test.each(golden)("in %s", (_, options, loss, gradient) => {
    scope(() => {
      const x = tensor(logits).requiresGrad_();
      const got = crossEntropy(x, tensor([3, -100, 1], { dtype: "int64" }), options());
      expect(got.dtype).toBe("float32");
      values(got).forEach((value, row) => void expect(value).toBeCloseTo(loss[row] ?? Number.NaN, 5));
      const [dx] = grad(got.sum(), x) as [Tensor];
      values(dx).forEach((value, index) => void expect(value).toBeCloseTo(gradient[index] ?? Number.NaN, 5));
    });
  });

  test("with the incoming gradient of each row", () => {
    scope(() => {
      const x = tensor(logits).requiresGrad_();
      const targets = tensor([3, -100, 1], { dtype: "int64" });
      const [single] = grad(crossEntropy(x, targets, { reduction: "none" }), x, tensor([2, 5, -1])) as [
        Tensor,
      ];
      const [rows] = grad(crossEntropy(x, targets, { reduction: "sum" }), x) as [Tensor];
      expect(largestDifference(single, rows.mul(tensor([[2], [5], [-1]])))).toBeLessThan(1e-6);
    });
  });
});

/** By its definition, in float64. */
function reference(logits: Tensor, targets: Tensor, { classWeights, reduction }: LossOptions): Tensor {
  const counted = targets.ne(-100);
  const ids = targets.clamp(0);
  const weight = (classWeights?.to("float64").indexSelect(0, ids) ?? counted.to("float64")).mul(counted);
  const sum = logits.logSoftmax(1).gather(1, ids.unsqueeze(1)).squeeze(1).mul(weight).sum().neg();
  return reduction === "sum" ? sum : sum.div(weight.sum());
}

// BMTrain's loss_func: classes up to 30,000, weights 2 ... C + 1, half the targets ignored, a loss scale of 32768. Its bar
// for the loss is 1e-5; here it is relative.
describe("BMTrain's loss_func", () => {
  const sizes = [10, 50, 90, 100, 900, 5000, 30000];
  const cases = sizes.flatMap((numClasses) =>
    (["float16", "bfloat16"] as const).map((dtype) => [numClasses, dtype] as const),
  );

  test.each(cases)("holds for %i classes in %s, with weights and without", (numClasses, dtype) => {
    scope(() => {
      const x = random([64, numClasses], 1).to(dtype).requiresGrad_();
      const wide = x.detach().to("float64").requiresGrad_();
      const ids = Array.from({ length: 64 }, (_, row) => (row % 2 === 1 ? -100 : (row * 7919) % numClasses));
      const targets = tensor(ids, { dtype: "int64" });
      const classWeights = ops.arange(0, numClasses, 1, "float32").flip([0]).add(2);
      for (const options of [{}, { classWeights }]) {
        const loss = crossEntropy(x, targets, options);
        const expected = reference(wide, targets, options);
        expect(Math.abs(loss.item() / expected.item() - 1)).toBeLessThan(1e-5);
        const [got] = grad(loss.mul(32768), x) as [Tensor];
        const [wanted] = grad(expected.mul(32768), wide) as [Tensor];
        // Rounded twice, by the kernel and by the loss scale.
        const bar = wanted.abs().max().item() * (dtype === "float16" ? 2 ** -10 : 2 ** -8);
        expect(largestDifference(got, wanted)).toBeLessThan(bar);
      }
    });
  });
});

describe("the cross entropy of a projection", () => {
  const options: [string, () => Options][] = [
    ["class weights", () => ({ classWeights: ops.arange(0, 11, 1, "float32").add(1) })],
    ["label smoothing", () => ({ labelSmoothing: 0.2 })],
    ["a sum", () => ({ reduction: "sum" })],
    ["another ignored target", () => ({ ignoreIndex: 3, reduction: "sum" })],
  ];

  test.each(options)("equals that of the logits, and so do its gradients, with %s", (_, make) => {
    scope(() => {
      const [hidden, weight] = [random([5, 4], 2).requiresGrad_(), random([11, 4], 3).requiresGrad_()];
      const targets = tensor([0, 10, 3, 3, 7], { dtype: "int64" });
      const given = make();
      const whole = crossEntropy(hidden.matmul(weight.transpose(0, 1)), targets, given);
      const fused = linearCrossEntropy(hidden, weight, targets, given);
      expect(fused.item()).toBeCloseTo(whole.item(), 5);
      const wanted = grad(whole.mul(3), [hidden, weight]) as Tensor[];
      const got = grad(fused.mul(3), [hidden, weight]) as Tensor[];
      got.forEach(
        (x, index) => void expect(largestDifference(x, wanted[index] as Tensor)).toBeLessThan(1e-5),
      );
    });
  });

  test("is NaN with gradients of 0 where every target is ignored", () => {
    scope(() => {
      const [hidden, weight] = [random([2, 4], 2).requiresGrad_(), random([11, 4], 3).requiresGrad_()];
      const loss = linearCrossEntropy(hidden, weight, tensor([-100, -100], { dtype: "int64" }), {
        labelSmoothing: 0.1,
      });
      expect(loss.item()).toBeNaN();
      for (const gradient of grad(loss, [hidden, weight])) expect(gradient?.abs().max().item()).toBe(0);
    });
  });

  test.each([
    [
      "crossEntropy",
      { label_smoothing: 0.1 },
      "an option, got label_smoothing (did you mean labelSmoothing?)",
    ],
    ["crossEntropy", { bias: 1 }, "an option, got bias"],
    ["crossEntropy", { reduction: "avg" }, "the reduction mean, sum or none, got avg"],
    ["linearCrossEntropy", { ignore_index: 0 }, "an option, got ignore_index (did you mean ignoreIndex?)"],
    ["linearCrossEntropy", { reduction: "none" }, "the reduction mean or sum, got none"],
  ])("refuses what would be another loss: %s of %o", (name, options, message) => {
    scope(() => {
      const [x, targets] = [random([2, 5], 1), tensor([1, 4], { dtype: "int64" })];
      const loss = { crossEntropy: () => crossEntropy(x, targets, options as never) }[name];
      const linear = () => linearCrossEntropy(x, random([5, 5], 2), targets, options as never);
      expect(loss ?? linear).toThrow(`[${name}] expected ${message}`);
    });
  });

  test("refuses targets, weights and smoothing out of range", () => {
    scope(() => {
      const [x, targets] = [random([2, 5], 1), tensor([1, 5], { dtype: "int64" })];
      const failing = [
        () => crossEntropy(x, targets, { labelSmoothing: 0.1 }),
        () => crossEntropy(x, targets.sub(1), { labelSmoothing: 1 }),
        () => crossEntropy(x, targets.sub(1), { classWeights: tensor([1, 2]) }),
      ];
      const [target, smoothing, weights] = failing.map((body) => expect(body));
      target?.toThrow("targets to be -100 (ignored) or within 0 and 4, got 5 in row 1");
      smoothing?.toThrow("expected label smoothing in [0, 1), got 1");
      weights?.toThrow("expected class weights of shape [5]");
    });
  });
});
