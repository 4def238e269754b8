// Megatron-LM's index builders of 2022, as slow and plain as they are described: complete lists, one draw at a time, nothing of this package.

/** MT19937 as it is published; `next` gives 32 bits. */
export function twister(seed: number): () => number {
  const state = [seed >>> 0];
  for (let i = 1; i < 624; i++) {
    const before = (state[i - 1] as number) ^ ((state[i - 1] as number) >>> 30);
    state.push((Math.imul(1812433253, before) + i) >>> 0);
  }
  let at = 624;
  return () => {
    if (at === 624) {
      for (let i = 0; i < 624; i++) {
        const bits = ((state[i] as number) & 0x80000000) | ((state[(i + 1) % 624] as number) & 0x7fffffff);
        state[i] = ((state[(i + 397) % 624] as number) ^ (bits >>> 1) ^ (bits & 1 ? 0x9908b0df : 0)) >>> 0;
      }
      at = 0;
    }
    let word = state[at++] as number;
    word ^= word >>> 11;
    word ^= (word << 7) & 0x9d2c5680;
    word ^= (word << 15) & 0xefc60000;
    return (word ^ (word >>> 18)) >>> 0;
  };
}

/** MT19937-64 as it is published. */
export function twister64(seed: bigint): () => bigint {
  const mask = (1n << 64n) - 1n;
  const state = [seed & mask];
  for (let i = 1n; i < 312n; i++) {
    const last = state.at(-1) as bigint;
    state.push((6364136223846793005n * (last ^ (last >> 62n)) + i) & mask);
  }
  let at = 312;
  return () => {
    if (at === 312) {
      for (let i = 0; i < 312; i++) {
        const high = (state[i] as bigint) & 0xffffffff80000000n;
        const bits = high | ((state[(i + 1) % 312] as bigint) & 0x7fffffffn);
        state[i] = (state[(i + 156) % 312] as bigint) ^ (bits >> 1n) ^ (bits & 1n ? 0xb5026f5aa96619e9n : 0n);
      }
      at = 0;
    }
    let word = state[at++] as bigint;
    word ^= (word >> 29n) & 0x5555555555555555n;
    word ^= (word << 17n) & 0x71d67fffeda60000n & mask;
    word ^= (word << 37n) & 0xfff7eee000000000n & mask;
    return word ^ (word >> 43n);
  };
}

/** numpy's legacy shuffle: from the last place down, a place at or before it, drawn under the smallest mask of ones. */
function shuffle<T>(list: T[], next: () => number): T[] {
  for (let last = list.length - 1; last >= 1; last--) {
    const mask = 2 ** Math.ceil(Math.log2(last + 1)) - 1;
    let place = (next() & mask) >>> 0;
    while (place > last) place = (next() & mask) >>> 0;
    [list[last], list[place]] = [list[place] as T, list[last] as T];
  }
  return list;
}

/** The result of `_build_index_mappings`, from the tokens themselves laid end to end. */
export function plainGpt(
  lengths: readonly number[],
  documents: readonly number[],
  numSamples: number,
  length: number,
  seed: number,
) {
  const next = twister(seed);
  const perEpoch = documents.reduce((sum, document) => sum + (lengths[document] as number), 0);
  let epochs = 1;
  while (epochs * perEpoch < numSamples * length + 1) epochs++;
  const without = Math.floor(((epochs - 1) * perEpoch - 1) / length);
  const separates =
    epochs > 1 && numSamples - without < Math.trunc(0.8 * Math.floor((perEpoch - 1) / length));
  const together = Array.from({ length: separates ? epochs - 1 : epochs }, () => documents).flat();
  const laid = [...shuffle(together, next), ...(separates ? shuffle([...documents], next) : [])];
  const tokens = laid.flatMap((document, place) =>
    Array.from({ length: lengths[document] as number }, (_, offset) => [place, offset] as const),
  );
  const count = Math.floor((tokens.length - 1) / length);
  const bounds = Array.from({ length: count + 1 }, (_, sample) => tokens[sample * length] ?? [0, 0]);
  const all = Array.from({ length: count }, (_, sample) => sample);
  const order = separates
    ? [...shuffle(all.slice(0, without), next), ...shuffle(all.slice(without), next)]
    : shuffle(all, next);
  return { epochs, separates, laid, bounds: bounds.flat(), order };
}

/** The result of `build_mapping`. */
export function plainSentences(
  documents: readonly number[],
  lengths: readonly number[],
  given: {
    maxSamples: number;
    maxLength: number;
    short: number;
    seed: number;
    least: number;
    epochs: number;
  },
): (readonly number[])[] {
  const { maxSamples, maxLength, short, seed, least, epochs } = given;
  const next = twister(seed);
  const ratio = short === 0 ? 0 : Math.round(1 / short);
  const target = () => {
    if (ratio === 0) return maxLength;
    const drawn = next();
    return drawn % ratio === 0 ? 2 + (drawn % (maxLength - 1)) : maxLength;
  };
  const map: (readonly number[])[] = [];
  for (let epoch = 0; epoch < epochs && map.length < maxSamples; epoch++)
    for (let document = 0; document < documents.length - 1; document++) {
      const sentences = Array.from(
        { length: (documents[document + 1] as number) - (documents[document] as number) },
        (_, sentence) => (documents[document] as number) + sentence,
      );
      if (sentences.length > 1 && sentences.some((sentence) => (lengths[sentence] as number) > 512)) continue;
      if (sentences.length < least) continue;
      let wanted = target();
      let taken: number[] = [];
      while (sentences.length > 0) {
        taken.push(sentences.shift() as number);
        const sum = taken.reduce((total, sentence) => total + (lengths[sentence] as number), 0);
        if ((sum >= wanted && sentences.length > 1 && taken.length >= least) || sentences.length === 0) {
          map.push([taken[0] as number, (taken.at(-1) as number) + 1, wanted]);
          wanted = target();
          taken = [];
        }
      }
    }
  const swap = twister64(BigInt(seed + 1));
  for (let i = map.length - 1; i > 0; i--) {
    const j = Number(swap() % BigInt(i + 1));
    [map[i], map[j]] = [map[j] as number[], map[i] as number[]];
  }
  return map;
}

/** The result of `get_train_valid_test_split_` for weights. */
export function plainSplit(weights: readonly number[], size: number): number[] {
  const padded = [...weights, 0, 0].slice(0, 3);
  const total = padded.reduce((sum, weight) => sum + weight, 0);
  const bounds = [0];
  for (const weight of padded) {
    const exact = (weight / total) * size;
    const down = Math.floor(exact);
    // Python rounds halves to the even one.
    const rounded = exact - down === 0.5 ? down + (down % 2) : Math.round(exact);
    bounds.push((bounds.at(-1) as number) + rounded);
  }
  const excess = (bounds[3] as number) - size;
  return bounds.map((bound, place) => (place === 0 ? bound : bound - excess));
}

/** The result of `build_blending_indices`: [dataset, sample] of each place. */
export function plainBlend(weights: readonly number[], size: number): number[][] {
  const total = weights.reduce((sum, weight) => sum + weight, 0);
  const taken: number[] = [];
  return Array.from({ length: size }, (_, place) => {
    const errors = weights.map(
      (weight, dataset) =>
        (weight / total) * Math.max(place, 1) - taken.filter((each) => each === dataset).length,
    );
    const dataset = errors.indexOf(Math.max(...errors));
    taken.push(dataset);
    return [dataset, taken.filter((each) => each === dataset).length - 1];
  });
}
