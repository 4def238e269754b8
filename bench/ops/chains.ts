// A norm that a user writes, whose elementwise operators a program joins.
import {
  full,
  grad,
  ops,
  playBackward,
  playForward,
  scope,
  type Tensor,
} from "../../src/compute/tensor/index.ts";
import { load } from "../measure/machine.ts";
import { recorded } from "./recorded.ts";

const [rows, width] = [512, 768];
const numTurns = 15;
const callsPerTurn = 20;

/** Prints milliseconds of processor time on one thread, singly, exact and fast: the least of some turns, forward and backward. */
export function timeChains(): void {
  scope(() => {
    const inputs = [[rows, width], [width], [rows, width]].map((shape, stream) =>
      ops.troupe.philoxNormal_(full(shape, 0), 0, 1, 1, stream, 0).to("bfloat16").requiresGrad_(),
    );
    const upstream = full([rows, width], 0.37).to("bfloat16");
    const least = {
      off: Number.POSITIVE_INFINITY,
      exact: Number.POSITIVE_INFINITY,
      fast: Number.POSITIVE_INFINITY,
    };
    const programs = {
      exact: recorded(norm, inputs, upstream, false),
      fast: recorded(norm, inputs, upstream, true),
    };
    const run = (mode: keyof typeof least) => {
      if (mode === "off") return void grad([norm(inputs)], inputs, [upstream]);
      const { call } = playForward(programs[mode], inputs, [], [false], true);
      playBackward(call, [upstream], inputs.length);
    };
    for (let turn = 0; turn < numTurns; turn += 1) {
      for (const mode of ["off", "exact", "fast"] as const) {
        const before = process.cpuUsage();
        for (let call = 0; call < callsPerTurn; call += 1) scope(() => run(mode));
        const { user, system } = process.cpuUsage(before);
        least[mode] = Math.min(least[mode], (user + system) / 1000 / callsPerTurn);
      }
    }
    const figures = Object.entries(least).map(
      ([mode, ms]) => `${mode} ${ms.toFixed(3)} (${(least.off / ms).toFixed(2)} ×)`,
    );
    console.log(
      `ms of processor time of a norm by hand, ${rows} × ${width} in bfloat16, both ways, load ${load()}`,
    );
    console.log(`  ${figures.join(", ")}`);
  });
}

/** Root-mean-square norm, with a residual and a scale. */
function norm([x, weight, residual]: readonly Tensor[]): Tensor {
  const wide = (x as Tensor).to("float32");
  const normed = wide.mul(wide.square().mean(-1, true).add(1e-6).rsqrt()).to("bfloat16");
  return normed
    .mul(weight as Tensor)
    .add(residual as Tensor)
    .mul(0.7);
}
