import { describe, expect, test } from "vitest";
import { ctcLoss } from "../../src/compute/nn/index.ts";
import { empty, ops, scope, type Tensor, tensor } from "../../src/compute/tensor/index.ts";
import { refusal } from "../tensor/numbers.ts";

/** −ln of the summed probability of every path of classes that says `labels`: each path written out. */
function byPaths(logits: Tensor, labels: readonly number[], numFrames: number, blank: number): number {
  const [, numClasses = 0] = logits.shape;
  const probabilities = logits.to("float64").softmax(1).toTypedArray() as Float64Array;
  let total = 0;
  for (let path = 0; path < numClasses ** numFrames; path++) {
    const classes = Array.from(
      { length: numFrames },
      (_, t) => Math.floor(path / numClasses ** t) % numClasses,
    );
    const said = classes.filter((value, t) => value !== blank && value !== classes[t - 1]);
    if (said.join() !== labels.join()) continue;
    total += classes.reduce((product, value, t) => product * (probabilities[t * numClasses + value] ?? 0), 1);
  }
  return -Math.log(total);
}

describe("connectionist temporal classification", () => {
  test("is the probability of all paths that say the labels, mean by labels and by rows", () => {
    scope(() => {
      const logits = ops.troupe.philoxNormal_(empty([3, 5, 3]), 0, 1, 7, 0, 0);
      const rows = [[1, 2], [2, 2, 1], [1]];
      const labels = tensor(
        [
          [1, 2, -100],
          [2, 2, 1],
          [1, -100, -100],
        ],
        { dtype: "int64" },
      );
      const numFrames = [5, 5, 3];
      const each = rows.map((row, b) => byPaths(logits.select(0, b), row, numFrames[b] ?? 0, 0));
      const inputLengths = tensor(numFrames, { dtype: "int64" });
      const sum = each.reduce((a, b) => a + b, 0);
      expect(ctcLoss(logits, labels, { inputLengths, reduction: "sum" }).item()).toBeCloseTo(sum, 4);
      const mean = each.reduce((a, b, row) => a + b / (rows[row]?.length ?? 1), 0) / 3;
      expect(ctcLoss(logits, labels, { inputLengths }).item()).toBeCloseTo(mean, 5);
      const narrow = logits.to("bfloat16");
      expect(ctcLoss(narrow, labels, { inputLengths }).dtype).toBe("float32");
      expect(ctcLoss(narrow, labels, { inputLengths }).item()).toBeCloseTo(mean, 1);
    });
  });

  test("is infinite for more labels than frames can say, and 0 where that is asked for", () => {
    scope(() => {
      const logits = ops.troupe.philoxNormal_(empty([1, 2, 3]), 0, 1, 7, 0, 0);
      const labels = tensor([[1, 1]], { dtype: "int64" });
      expect(ctcLoss(logits, labels).item()).toBe(Number.POSITIVE_INFINITY);
      expect(ctcLoss(logits, labels, { zeroInfinity: true }).item()).toBe(0);
    });
  });

  test("has a shape where logits have no memory, and refuses what is no class and no option", () => {
    scope(() => {
      const labels = tensor([[1, 3]], { dtype: "int64" });
      const loss = ctcLoss(ops.troupe.placeholder([1, 5, 3], "float32"), labels);
      expect([loss.device, loss.shape]).toEqual(["meta", []]);
      expect(refusal(() => ctcLoss(empty([1, 5, 3]), labels))?.message).toContain("labels below 3");
      const torchs = { zero_infinity: true } as object;
      expect(refusal(() => ctcLoss(empty([1, 5, 3]), labels, torchs))?.message).toContain("zeroInfinity?");
      const mean = { reduction: "avg" as never };
      expect(refusal(() => ctcLoss(empty([1, 5, 3]), labels, mean))?.message).toContain(
        "mean or sum, got avg",
      );
      expect(refusal(() => ctcLoss(empty([2, 5, 3]), labels))?.message).toContain("labels of int64 [B, L]");
    });
  });
});
