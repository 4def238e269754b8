// A feed-forward half of GPT-2's with its residual, as a program with the bits of single operators and as a fast one, by turns.
import { loadavg } from "node:os";
import {
  beginRecording,
  endForward,
  full,
  grad,
  improveProgram,
  ops,
  playBackward,
  playForward,
  recordBackward,
  scope,
  type Tensor,
} from "../../src/compute/tensor/index.ts";

const [rows, width, inner] = [512, 768, 3072];
const numTurns = 25;

/** Prints milliseconds of processor time of both, forward and backward on one thread: the least of some turns. */
export function timeFeedForward(): void {
  const least = { exact: Number.POSITIVE_INFINITY, fast: Number.POSITIVE_INFINITY };
  scope(() => {
    const inputs = [[rows, width], [width, inner], [inner], [inner, width], [width]].map((shape, stream) =>
      drawn(shape, stream).requiresGrad_(),
    );
    const upstream = drawn([rows, width], inputs.length);
    const programs = { exact: recorded(inputs, upstream), fast: recorded(inputs, upstream) };
    improveProgram(programs.exact);
    improveProgram(programs.fast, true);
    for (let turn = 0; turn < numTurns; turn += 1) {
      for (const mode of ["exact", "fast"] as const) {
        const before = process.cpuUsage();
        scope(() => {
          const { call } = playForward(programs[mode], inputs, [], [false], true);
          playBackward(call, [upstream], inputs.length);
        });
        const { user, system } = process.cpuUsage(before);
        least[mode] = Math.min(least[mode], (user + system) / 1000);
      }
    }
  });
  console.log(
    `ms of a feed-forward half, ${rows} × ${width} × ${inner} in bfloat16, both ways, load ${loadavg()[0]?.toFixed(1)}`,
  );
  console.log(`  exact    ${least.exact.toFixed(2)}`);
  console.log(`  fast     ${least.fast.toFixed(2)}, ratio ${(least.exact / least.fast).toFixed(3)}`);
}

function drawn(shape: readonly number[], stream: number): Tensor {
  return ops.troupe.philoxNormal_(full(shape, 0), 0, 0.05, 1, stream, 0).to("bfloat16");
}

function recorded(inputs: readonly Tensor[], upstream: Tensor): number {
  const [x, up, bias, down, last] = inputs as [Tensor, Tensor, Tensor, Tensor, Tensor];
  const recording = beginRecording(inputs, []);
  const y = x.add(ops.addmm(last, ops.troupe.biasGelu(x.mm(up), bias, "tanh"), down));
  const refusal = endForward(recording, [y], []);
  const { program } = recordBackward(recording, [upstream], () => grad([y], inputs, [upstream]));
  if (refusal !== "" || typeof program !== "number") throw new Error(`${refusal}${program}`);
  return program;
}
