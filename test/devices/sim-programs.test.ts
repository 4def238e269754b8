import { describe, expect, it } from "vitest";
import {
  beginRecording,
  dropProgram,
  dropRecording,
  empty,
  endForward,
  grad,
  improveProgram,
  onDevice,
  ops,
  playBackward,
  playForward,
  recordBackward,
  scope,
  type Tensor,
} from "../../src/compute/tensor/index.ts";
import { pretend } from "../fixtures/devices/pretend.ts";
import { numbers } from "../tensor/numbers.ts";

const SIM = "sim:0";
const { troupe } = ops;
const [rows, width] = [64, 32];

function drawn(shape: readonly number[], stream: number): Tensor {
  return troupe.philoxNormal_(empty(shape), 0, 1, 7, stream, 0);
}

/** A block of Troupe's operators and of libtorch's, some joined, with a stream of random numbers. */
function block(x: Tensor, weight: Tensor, bias: Tensor, stream: number): Tensor {
  const [sum, normed] = troupe.addLayerNorm(x, x.mul(0.5), weight, bias, 1e-5);
  const heads = normed.view([1, 2, rows, width / 2]);
  const attended = troupe.attention(heads, heads, heads, true, 0.3).reshape([rows, width]);
  const bent = troupe.biasGelu(attended.matmul(attended.t()).matmul(normed), bias);
  const kept = troupe.dropout(bent, 0.25, 5, stream, 0, rows * width, 0);
  return kept.mul(weight).add(sum).sub(0.1).div(3).neg();
}

function inputs(step: number): Tensor[] {
  return [
    drawn([rows, width], step).requiresGrad_(),
    drawn([width], 100).requiresGrad_(),
    drawn([width], 101).requiresGrad_(),
  ];
}

const upstream = () => drawn([rows, width], 200);

describe("a program on the pretend device", () => {
  it("is replayed late, whatever the schedule, to the CPU's bits, and waits for nothing", () => {
    scope(() => {
      const expected = [1, 2, 3].map((step) => {
        const given = inputs(step);
        const result = block(...(given as [Tensor, Tensor, Tensor]), step);
        return [result, ...(grad([result], given, [upstream()]) as Tensor[])].map(numbers);
      });
      onDevice(SIM, () => {
        const [x, ...bound] = inputs(1) as [Tensor, Tensor, Tensor];
        const recording = beginRecording([x], bound);
        const recorded = block(x, ...(bound as [Tensor, Tensor]), 1);
        expect(endForward(recording, [recorded], [1])).toBe("");
        const given = [upstream()];
        const walk = () => grad([recorded], [x, ...bound], given);
        const { program } = recordBackward(recording, given, walk);
        if (typeof program !== "number") throw new Error(`${program}`);
        improveProgram(program);
        const from = upstream();
        for (const seed of [1, 2, 3, 4, 5]) {
          pretend().simSeed(seed);
          const steps = [1, 2, 3].map((step) => inputs(step)[0] as Tensor);
          const begun = pretend().simStatistics();
          // All forwards before the first backward, as a pipeline has them.
          const played = steps.map((x, index) => playForward(program, [x], [index + 1], [true], true));
          const made = played.map(({ results, call }) => [
            ...results,
            ...(playBackward(call, [from], 3) as Tensor[]),
          ]);
          const { lateOperators, readBacks, hostWaits } = pretend().simStatistics();
          expect([readBacks, hostWaits]).toEqual([begun.readBacks, begun.hostWaits]);
          expect(lateOperators).toBeGreaterThan(begun.lateOperators + 3 * 20);
          expect(
            made.map((tensors) => tensors.map(numbers)),
            `seed ${seed}`,
          ).toEqual(expected);
        }
        dropProgram(program);
      });
    });
  });

  it("is not recorded of arguments on two devices, nor of what lies elsewhere", () => {
    scope(() => {
      const host = drawn([width], 1);
      const [x, weight, bias] = onDevice(SIM, () => inputs(1)) as [Tensor, Tensor, Tensor];
      const refusalOf = (given: Tensor[], run: () => Tensor): string => {
        const recording = beginRecording(given, []);
        const refusal = endForward(recording, [run()], []);
        dropRecording(recording);
        return typeof refusal === "string" ? refusal : refusal.message;
      };
      expect(refusalOf([x, host], () => x.mul(2))).toBe("arguments on sim:0 and cpu");
      expect(refusalOf([x], () => x.mul(host.onto(SIM)))).toMatch(
        /of a tensor without plain memory of sim:0/,
      );
      expect(refusalOf([x, weight, bias], () => x.mul(weight).add(bias))).toBe("");
    });
  });
});
