// A norm and GELU as users write them, whose elementwise operators a program joins.
import {
  type DType,
  full,
  grad,
  ops,
  playBackward,
  playForward,
  scope,
  type Tensor,
} from "../../src/compute/tensor/index.ts";
import { load } from "../measure/machine.ts";
import { type Body, programsOf } from "./recorded.ts";

/** The bodies, and the shapes of their inputs; the first is the result's. */
const cases: readonly (readonly [string, Body, readonly number[][]])[] = [
  ["norm", norm, [[512, 768], [768], [512, 768]]],
  ["GELU", gelu, [[512, 3072]]],
];
const numTurns = 15;
const callsPerTurn = 20;

/** Prints milliseconds of processor time on one thread, singly, exact and fast: the least of some turns, forward and backward. */
export function timeChains(): void {
  for (const dtype of ["bfloat16", "float16"] as const) {
    console.log(`ms of processor time of what a user writes, in ${dtype}, both ways, load ${load()}`);
    for (const [name, body, shapes] of cases) scope(() => timeChain(name, body, shapes, dtype));
  }
}

function timeChain(name: string, body: Body, shapes: readonly number[][], dtype: DType): void {
  const inputs = shapes.map((shape, stream) =>
    ops.troupe.philoxNormal_(full(shape, 0), 0, 1, 1, stream, 0).to(dtype).requiresGrad_(),
  );
  const [shape = []] = shapes;
  const upstream = full(shape, 0.37).to(dtype);
  const least = {
    off: Number.POSITIVE_INFINITY,
    exact: Number.POSITIVE_INFINITY,
    fast: Number.POSITIVE_INFINITY,
  };
  const programs = programsOf(body, inputs, upstream);
  const run = (mode: keyof typeof least) => {
    if (mode === "off") return void grad([body(inputs)], inputs, [upstream]);
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
  console.log(`  ${name}, ${shape.join(" × ")}: ${figures.join(", ")}`);
}

/** Root-mean-square norm, with a residual and a scale. */
function norm([x, weight, residual]: readonly Tensor[]): Tensor {
  const given = x as Tensor;
  const wide = given.to("float32");
  const normed = wide.mul(wide.square().mean(-1, true).add(1e-6).rsqrt()).to(given.dtype);
  return normed
    .mul(weight as Tensor)
    .add(residual as Tensor)
    .mul(0.7);
}

/** GELU by its formula with tanh. */
function gelu([x]: readonly Tensor[]): Tensor {
  const u = x as Tensor;
  const inner = u.add(u.pow(3).mul(0.044715)).mul(Math.sqrt(2 / Math.PI));
  return u.mul(0.5).mul(inner.tanh().add(1));
}
