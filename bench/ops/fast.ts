// Parts of GPT-2 with the bits of single operators and with those of fast programs, by turns.
import {
  full,
  grad,
  ops,
  playBackward,
  playForward,
  scope,
  setTileProducts,
  type Tensor,
  zeros,
} from "../../src/compute/tensor/index.ts";
import { load } from "../measure/machine.ts";
import { type Body, programsOf } from "./recorded.ts";

const [rows, width, inner, classes] = [512, 768, 3072, 50_257];
const manyRows = 4096;
const attention = { samples: 16, heads: 12, length: 256, features: 64 };
const numTurns = 15;

/** Prints milliseconds of processor time on one thread, exact and fast: the least of some turns. */
export function timeFast(): void {
  console.log(`ms of processor time in bfloat16, exact and fast by turns, load ${load()}`);
  scope(timeFeedForward);
  scope(timeOutputLayer);
  scope(timeLaterGradient);
  scope(timeAttention);
  scope(timeProducts);
}

function timeFeedForward(): void {
  const inputs = [[rows, width], [width, inner], [inner], [inner, width], [width]].map((shape, stream) =>
    drawn(shape, stream).requiresGrad_(),
  );
  const upstream = drawn([rows, width], inputs.length);
  compareBothWays(`feed-forward half, ${rows} × ${width} × ${inner}`, feedForward, inputs, upstream);
}

/** An output layer with its loss, which makes its gradients in forward. */
function timeOutputLayer(): void {
  const hidden = drawn([rows, width], 0).requiresGrad_();
  const weight = drawn([classes, width], 1).requiresGrad_();
  const targets = zeros([rows], { dtype: "int64" });
  compare(`output layer with its loss, ${rows} × ${width} × ${classes}`, () => {
    ops.troupe.linearCrossEntropy(hidden, weight, targets, -100);
  });
}

/** A weight's gradient, added to those of earlier micro-batches. */
function timeLaterGradient(): void {
  const upstream = drawn([rows, inner], 0).t();
  const x = drawn([rows, width], 1);
  const sum = zeros([inner, width]);
  compare(`weight's gradient on those before, ${inner} × ${rows} × ${width}`, (mode) => {
    if (mode === "fast") ops.troupe.addProduct_(sum, upstream, x);
    else ops.add_(sum, upstream.mm(x));
  });
}

type Heads = [query: Tensor, key: Tensor, value: Tensor];

/** As models have it: causal alone, with dropout, with a mask of padding, and with heads in groups that share keys and values. */
function timeAttention(): void {
  const { samples, heads, length, features } = attention;
  const scale = features ** -0.5;
  const of = (count: number): Heads =>
    [heads, count, count].map((each, stream) =>
      drawn([samples, each, length, features], stream).requiresGrad_(),
    ) as Heads;
  const upstream = drawn([samples, heads, length, features], 3);
  const compareHeads = (name: string, inputs: Heads, attend: (...inputs: Heads) => Tensor): void =>
    compare(`${name}, ${samples} × ${heads} heads of ${length} × ${features}, both ways`, () => {
      grad([attend(...inputs)], inputs, [upstream]);
    });

  compareHeads("causal attention", of(heads), (q, k, v) => ops.troupe.attention(q, k, v, true, scale));
  const weights = samples * heads * length ** 2;
  compareHeads("the same with dropout", of(heads), (q, k, v) =>
    ops.troupe.droppedAttention(
      ...([q, k, v, undefined, undefined, true, 0, scale] as const),
      ...([0.1, 1, 9, 0, weights, weights] as const),
    ),
  );
  const isWord = drawn([samples, 1, 1, length], 4).gt(-0.05);
  compareHeads("attention with a mask", of(heads), (q, k, v) =>
    ops.troupe.maskedAttention(q, k, v, isWord, undefined, false, 0, scale),
  );
  compareHeads("causal attention in groups of 4", of(heads / 4), (q, k, v) =>
    ops.troupe.maskedAttention(q, k, v, undefined, undefined, true, 0, scale),
  );
}

/** Products that nothing follows, with factors as a layer forward and backward has them. */
function timeProducts(): void {
  timeProduct("forward", [manyRows, width], [width, inner]);
  timeProduct("an input's gradient", [manyRows, inner], [inner, width]);
  timeProduct("a weight's gradient", [width, manyRows], [manyRows, inner], true);
}

function timeProduct(
  name: string,
  left: readonly [number, number],
  right: readonly [number, number],
  turned = false,
): void {
  scope(() => {
    const inputs = [drawn(turned ? [left[1], left[0]] : left, 0), drawn(right, 1)].map((each) =>
      each.requiresGrad_(),
    );
    const multiply = ([a, b]: readonly Tensor[]) =>
      (turned ? (a as Tensor).t() : (a as Tensor)).mm(b as Tensor);
    const upstream = zeros([left[0], right[1]], { dtype: "bfloat16" });
    const programs = programsOf(multiply, inputs, upstream);
    compare(`a product, ${name}: ${left[0]} × ${left[1]} × ${right[1]}`, (mode) => {
      playForward(programs[mode], inputs, [], [false], false);
    });
  });
}

/** Forward and backward. */
function compareBothWays(name: string, body: Body, inputs: readonly Tensor[], upstream: Tensor): void {
  const programs = programsOf(body, inputs, upstream);
  compare(`${name}, both ways`, (mode) => {
    const { call } = playForward(programs[mode], inputs, [], [false], true);
    playBackward(call, [upstream], inputs.length);
  });
}

function compare(name: string, run: (mode: "exact" | "fast") => void): void {
  const least = { exact: Number.POSITIVE_INFINITY, fast: Number.POSITIVE_INFINITY };
  for (let turn = 0; turn < numTurns; turn += 1) {
    for (const mode of ["exact", "fast"] as const) {
      const wanted = setTileProducts(mode === "fast");
      const before = process.cpuUsage();
      scope(() => run(mode));
      const { user, system } = process.cpuUsage(before);
      setTileProducts(wanted);
      least[mode] = Math.min(least[mode], (user + system) / 1000);
    }
  }
  const { exact, fast } = least;
  console.log(`  ${name}: ${exact.toFixed(2)}, ${fast.toFixed(2)}, ratio ${(exact / fast).toFixed(3)}`);
}

function drawn(shape: readonly number[], stream: number): Tensor {
  return ops.troupe.philoxNormal_(full(shape, 0), 0, 0.05, 1, stream, 0).to("bfloat16");
}

function feedForward([x, up, bias, down, last]: readonly Tensor[]): Tensor {
  const activated = ops.troupe.biasGelu((x as Tensor).mm(up as Tensor), bias as Tensor, "tanh");
  return (x as Tensor).add(ops.addmm(last as Tensor, activated, down as Tensor));
}
