// ggml's quantization in its published form, in float32 without fused operations: the bits are those of its C code.
import { scope, tensor } from "../../../compute/tensor/index.ts";

const { fround } = Math;

/** Q8_0: blocks of 32 values, each a scale in float16 and 8 bits a value. @param values - a multiple of 32 */
export function quantizeTo8(values: Float32Array): Uint8Array {
  const numBlocks = values.length / 32;
  const scales = new Float32Array(numBlocks);
  const bytes = new Uint8Array(numBlocks * 34);
  const quants = new Int8Array(bytes.buffer);
  for (let block = 0; block < numBlocks; block++) {
    const begin = block * 32;
    let largest = 0;
    for (let at = begin; at < begin + 32; at++) largest = Math.max(largest, Math.abs(values[at] as number));
    const scale = fround(largest / 127);
    const inverse = scale === 0 ? 0 : fround(1 / scale);
    scales[block] = scale;
    for (let at = 0; at < 32; at++) {
      const value = fround((values[begin + at] as number) * inverse);
      quants[block * 34 + 2 + at] = value < 0 ? Math.ceil(value - 0.5) : Math.floor(value + 0.5);
    }
  }
  const { bits } = inHalf(scales);
  for (let block = 0; block < numBlocks; block++) putHalf(bytes, block * 34, bits[block] as number);
  return bytes;
}

/**
 * Q4_K: super-blocks of 256 values in 8 blocks of 32, a value being scale · q − minimum with q of 4 bits. A block's scale and
 * minimum have 6 bits, of a scale and a minimum of the super-block in float16.
 * @param values - a multiple of 256
 */
export function quantizeTo4(values: Float32Array): Uint8Array {
  const numSuper = values.length / 256;
  const bytes = new Uint8Array(numSuper * 144);
  const quants = new Uint8Array(values.length);
  const steps = new Uint8Array(numSuper * 16);
  const ofSuper = new Float32Array(numSuper * 2);
  const block = new BlockFit();
  const [scales, minima] = [new Float32Array(8), new Float32Array(8)];
  for (let index = 0; index < numSuper; index++) {
    for (let part = 0; part < 8; part++) {
      const begin = index * 256 + part * 32;
      block.fit(values, begin);
      scales[part] = block.scale;
      minima[part] = block.minimum;
      quants.set(block.quants, begin);
    }
    for (const [place, of] of [scales, minima].entries()) {
      const largest = of.reduce((most, each) => Math.max(most, each), 0);
      const inverse = largest > 0 ? fround(63 / largest) : 0;
      ofSuper[index * 2 + place] = fround(largest / 63);
      for (let part = 0; part < 8; part++)
        steps[index * 16 + place * 8 + part] = Math.min(63, nearest(fround(inverse * (of[part] as number))));
    }
  }
  const { bits, rounded } = inHalf(ofSuper);
  for (let index = 0; index < numSuper; index++) {
    const at = index * 144;
    putHalf(bytes, at, bits[index * 2] as number);
    putHalf(bytes, at + 2, bits[index * 2 + 1] as number);
    putSteps(bytes, at + 4, steps.subarray(index * 16, index * 16 + 16));
    for (let part = 0; part < 8; part++) {
      const scale = fround((rounded[index * 2] as number) * (steps[index * 16 + part] as number));
      const minimum = fround((rounded[index * 2 + 1] as number) * (steps[index * 16 + 8 + part] as number));
      if (scale === 0) continue;
      const begin = index * 256 + part * 32;
      for (let place = begin; place < begin + 32; place++) {
        const level = nearest(fround(fround((values[place] as number) + minimum) / scale));
        quants[place] = levelOf(level);
      }
    }
    for (let pair = 0; pair < 4; pair++) {
      const from = index * 256 + pair * 64;
      for (let place = 0; place < 32; place++)
        bytes[at + 16 + pair * 32 + place] =
          (quants[from + place] as number) | ((quants[from + place + 32] as number) << 4);
    }
  }
  return bytes;
}

/** The best scale and minimum of a block of 32 values by weighted least squares, over 21 steps around its range / 15. */
class BlockFit {
  scale = 0;
  minimum = 0;
  readonly quants = new Uint8Array(32);
  readonly #values = new Float32Array(32);
  readonly #weights = new Float32Array(32);
  readonly #tried = new Uint8Array(32);

  /** @param begin - of the block in `values` */
  fit(values: Float32Array, begin: number): void {
    const [x, weights, tried] = [this.#values, this.#weights, this.#tried];
    x.set(values.subarray(begin, begin + 32));
    let squares = 0;
    for (let at = 0; at < 32; at++) squares = fround(squares + fround((x[at] as number) * (x[at] as number)));
    const average = fround(Math.sqrt(fround(squares / 32)));
    let [least, most] = [x[0] as number, x[0] as number];
    let [sumOfWeights, sumOfValues] = [0, 0];
    for (let at = 0; at < 32; at++) {
      const value = x[at] as number;
      const weight = fround(average + Math.abs(value));
      weights[at] = weight;
      least = Math.min(least, value);
      most = Math.max(most, value);
      sumOfWeights = fround(sumOfWeights + weight);
      sumOfValues = fround(sumOfValues + fround(weight * value));
    }
    least = Math.min(least, 0);
    if (most === least) {
      this.quants.fill(0);
      this.scale = 0;
      this.minimum = -least;
      return;
    }
    const inverse = fround(15 / fround(most - least));
    this.#round(inverse, least);
    this.quants.set(tried);
    this.scale = fround(1 / inverse);
    let minimum = least;
    let error = this.#error(this.scale, minimum);
    for (let step = 0; step <= 20; step++) {
      // The range begins at the best minimum so far.
      const levelsOfRange = fround(fround(-1 + fround(fround(0.1) * step)) + 15);
      this.#round(fround(levelsOfRange / fround(most - minimum)), minimum);
      let [levels, squared, mixed] = [0, 0, 0];
      for (let at = 0; at < 32; at++) {
        const level = tried[at] as number;
        const weighted = fround((weights[at] as number) * level);
        levels = fround(levels + weighted);
        squared = fround(squared + fround(weighted * level));
        mixed = fround(mixed + fround(weighted * (x[at] as number)));
      }
      const determinant = fround(fround(sumOfWeights * squared) - fround(levels * levels));
      if (!(determinant > 0)) continue;
      const slope = fround(fround(sumOfWeights * mixed) - fround(sumOfValues * levels));
      const offset = fround(fround(squared * sumOfValues) - fround(levels * mixed));
      let scale = fround(slope / determinant);
      let shift = fround(offset / determinant);
      if (shift > 0) {
        shift = 0;
        scale = fround(mixed / squared);
      }
      const triedError = this.#error(scale, shift);
      if (triedError >= error) continue;
      error = triedError;
      this.scale = scale;
      minimum = shift;
      this.quants.set(tried);
    }
    this.minimum = -minimum;
  }

  #round(inverse: number, least: number): void {
    const [values, tried] = [this.#values, this.#tried];
    for (let at = 0; at < 32; at++)
      tried[at] = levelOf(nearest(fround(inverse * fround((values[at] as number) - least))));
  }

  #error(scale: number, minimum: number): number {
    const [values, tried, weights] = [this.#values, this.#tried, this.#weights];
    let sum = 0;
    for (let at = 0; at < 32; at++) {
      const made = fround(fround(scale * (tried[at] as number)) + minimum);
      const difference = fround(made - (values[at] as number));
      sum = fround(sum + fround((weights[at] as number) * fround(difference * difference)));
    }
    return sum;
  }
}

/** A level of 4 bits. */
function levelOf(value: number): number {
  return value < 0 ? 0 : Math.min(value, 15);
}

/** Rounds to the nearest whole number, halves to even ones: adding 1.5 · 2²³ leaves float32 no bits behind the point. */
function nearest(value: number): number {
  return fround(value + 12582912) - 12582912;
}

/** Floats rounded to float16: their bits, and their values. */
function inHalf(values: Float32Array): { readonly bits: Uint16Array; readonly rounded: Float32Array } {
  return scope(() => {
    const half = tensor(values, { dtype: "float32" }).to("float16");
    const { buffer, byteOffset, length } = half.toTypedArray();
    return {
      bits: new Uint16Array(buffer, byteOffset, length),
      rounded: half.to("float32").toTypedArray() as Float32Array,
    };
  });
}

function putHalf(bytes: Uint8Array, at: number, bits: number): void {
  bytes[at] = bits & 255;
  bytes[at + 1] = bits >> 8;
}

/** Packs 8 scales and 8 minima of 6 bits into 12 bytes: the upper two bits of the last four lie above the first four. */
function putSteps(bytes: Uint8Array, at: number, steps: Uint8Array): void {
  for (let part = 0; part < 4; part++) {
    const [scale = 0, minimum = 0] = [steps[part], steps[part + 8]];
    const [later = 0, laterMinimum = 0] = [steps[part + 4], steps[part + 12]];
    bytes[at + part] = scale | ((later >> 4) << 6);
    bytes[at + part + 4] = minimum | ((laterMinimum >> 4) << 6);
    bytes[at + part + 8] = (later & 15) | ((laterMinimum & 15) << 4);
  }
}
