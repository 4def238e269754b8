// Programs that a device takes as graphs: the pretend device captures lists of tasks, and poisons all their memory before they run again.
import { describe, expect, it } from "vitest";
import {
  beginRecording,
  captureProgram,
  dropCall,
  dropProgram,
  empty,
  endForward,
  endProgram,
  grad,
  improveProgram,
  noGrad,
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

const { troupe } = ops;
const [rows, width] = [64, 32];

const drawn = (shape: readonly number[], stream: number) =>
  troupe.philoxNormal_(empty(shape), 0, 1, 7, stream, 0);

/** Troupe's operators and libtorch's, some joined; `residual` stands for what a caller keeps. */
function block(x: Tensor, weight: Tensor, bias: Tensor): Tensor {
  const [sum, normed] = troupe.addLayerNorm(x, x.mul(0.5), weight, bias, 1e-5);
  const heads = normed.view([1, 2, rows, width / 2]);
  const attended = troupe.attention(heads, heads, heads, true, 0.3).reshape([rows, width]);
  const bent = troupe.biasGelu(attended.matmul(attended.t()).matmul(normed), bias);
  return bent.mul(weight).add(sum).sub(0.1).neg();
}

const parameters = () => [drawn([width], 100).requiresGrad_(), drawn([width], 101).requiresGrad_()] as const;
const input = (step: number) => drawn([rows, width], step).requiresGrad_();
const upstream = (step: number) => drawn([rows, width], 200 + step);

function record(x: Tensor, bound: readonly [Tensor, Tensor], run = () => block(x, ...bound)): number {
  const recording = beginRecording([x], bound);
  const recorded = run();
  expect(endForward(recording, [recorded], [])).toBe("");
  const from = upstream(0);
  const { program } = recordBackward(recording, [from], () => grad([recorded], [x, ...bound], [from]));
  if (typeof program !== "number") throw new Error(`${program}`);
  improveProgram(program);
  return program;
}

/** Results and gradients of single operators on the host. */
function expectedOf(step: number): number[][] {
  const [x, bound] = [input(step), parameters()];
  const result = block(x, ...bound);
  return [result, ...(grad([result], [x, ...bound], [upstream(step)]) as Tensor[])].map(numbers);
}

describe("a program captured on the pretend device", () => {
  it("has the bits of single operators at each launch, whatever the schedule, and waits for nothing", () => {
    scope(() => {
      const steps = [1, 2, 3, 4, 5];
      const expected = steps.map(expectedOf);
      onDevice("sim:0", () => {
        const bound = parameters();
        const program = record(input(1), bound);
        expect(captureProgram(program)).toBe("");
        const [inputs, upstreams] = [steps.map(input), steps.map(upstream)];
        const late: number[] = [];
        for (const seed of [1, 2, 3]) {
          pretend().simSeed(seed);
          const begun = pretend().simStatistics();
          const made = steps.map((_, index) => {
            const { results, call } = playForward(program, [inputs[index] as Tensor], [], [true], true);
            return [...results, ...(playBackward(call, [upstreams[index] as Tensor], 3) as Tensor[])];
          });
          const { lateOperators, readBacks, hostWaits } = pretend().simStatistics();
          expect([readBacks, hostWaits]).toEqual([begun.readBacks, begun.hostWaits]);
          late.push(lateOperators - begun.lateOperators);
          expect(
            made.map((tensors) => tensors.map(numbers)),
            `seed ${seed}`,
          ).toEqual(expected);
        }
        // Each call is two launches, and copies of two tensors in and four out.
        expect(late.slice(1)).toEqual([5 * 8, 5 * 8]);
        dropProgram(program);
      });
    });
  });

  it("keeps calls under way apart, as a pipeline has them, and a result that outlives them", () => {
    scope(() => {
      const steps = [1, 2, 3, 4];
      const expected = steps.map(expectedOf);
      onDevice("sim:0", () => {
        const bound = parameters();
        const program = record(input(1), bound);
        expect(captureProgram(program)).toBe("");
        for (let round = 0; round < 3; round++) {
          const played = steps.map((step) => playForward(program, [input(step)], [], [true], true));
          const made = played.map(({ results, call }, index) => [
            ...results,
            ...(playBackward(call, [upstream(steps[index] as number)], 3) as Tensor[]),
          ]);
          expect(made.map((tensors) => tensors.map(numbers))).toEqual(expected);
        }
        dropProgram(program);
      });
    });
  });

  it("computes backward from a gradient that lies otherwise than the recorded one, singly and as a graph", () => {
    scope(() =>
      onDevice("sim:0", () => {
        const bound = parameters();
        const program = record(input(1), bound);
        expect(captureProgram(program)).toBe("");
        const made = [1, 2, 3].map((round) => {
          const { call } = playForward(program, [input(1)], [], [true], true);
          const from = upstream(1);
          const given = round === 2 ? from : from.t().contiguous().t();
          return (playBackward(call, [given], 3) as Tensor[]).map(numbers);
        });
        expect(made).toEqual(Array(3).fill(expectedOf(1).slice(1)));
        dropProgram(program);
      }),
    );
  });

  it("computes forward alone, and releases a call whose backward never comes", () => {
    scope(() =>
      onDevice("sim:0", () => {
        const [weight, bias] = parameters();
        const program = record(input(1), [weight, bias]);
        expect(captureProgram(program)).toBe("");
        for (let round = 0; round < 20; round++)
          dropCall(playForward(program, [input(1)], [], [true], true).call);
        const forward = noGrad(() => {
          const x = input(1);
          const recording = beginRecording([x], [weight, bias]);
          const result = block(x, weight, bias);
          expect(endForward(recording, [result], [])).toBe("");
          return endProgram(recording);
        });
        if (typeof forward !== "number") throw new Error(`${forward}`);
        improveProgram(forward);
        expect(captureProgram(forward)).toBe("");
        for (const step of [1, 2, 3])
          expect(playForward(forward, [input(step)], [], [false], false).results.map(numbers)).toEqual(
            expectedOf(step).slice(0, 1),
          );
        for (const each of [program, forward]) dropProgram(each);
      }),
    );
  });

  it("is refused, with the reason, where each call draws or nothing lies on a device", () => {
    scope(() => {
      const x = input(1);
      onDevice("sim:0", () => {
        const given = input(1);
        const recording = beginRecording([given], []);
        const dropped = troupe.dropout(given, 0.25, 5, 3, 0, rows * width, 0);
        expect(endForward(recording, [dropped], [3])).toBe("");
        const from = upstream(1);
        const { program } = recordBackward(recording, [from], () => grad([dropped], [given], [from]));
        expect(captureProgram(program as number)).toBe("it draws random numbers");
        dropProgram(program as number);
      });
      const host = record(x, parameters());
      expect(captureProgram(host)).toBe("");
      dropProgram(host);
    });
  });
});
