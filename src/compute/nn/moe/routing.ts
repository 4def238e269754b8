import { ops, type Tensor, zeros } from "../../tensor/index.ts";
import { argumentError } from "../argument-error.ts";

// S tokens, E experts, C capacity (the most tokens that an expert takes), D width.

/** Options of routing tokens to experts. */
export interface GateOptions {
  /** Number of experts per token: 1 or 2. */
  readonly k: 1 | 2;
  /** Capacity as a factor on the even share of tokens, k · S / E. */
  readonly capacityFactor: number;
  /** The least capacity, in tokens. */
  readonly minCapacity: number;
  /**
   * Whether tokens beyond an expert's capacity are dropped. Otherwise the capacity is the load of the busiest expert; for
   * meta tensors it is the even share.
   */
  readonly dropTokens: boolean;
  /** Tokens per sequence, if the auxiliary loss is the mean over sequences; undefined for one loss over all tokens. */
  readonly sequenceLength?: number | undefined;
}

/** Random draws for a gate; undefined ones are not used. */
export interface GateNoise {
  /** [S, E] of Gumbel noise, added to the logits before the first choice (k = 1) or before the second (k = 2). */
  readonly gumbel: Tensor | undefined;
  /** [S, E] of keys in [0, 1): an expert keeps the tokens with the largest keys (k = 1); without keys, the first tokens. */
  readonly keys: Tensor | undefined;
}

/** One choice of every token. */
export interface Choice {
  /** int64 [S]: index of the token in the E · C slots of all experts; arbitrary if it is not kept. */
  readonly places: Tensor;
  /** bool [S]: whether the expert has taken the token. */
  readonly kept: Tensor;
  /** float32 [S]: weight of the expert's output; 0 if not kept. */
  readonly weights: Tensor;
}

/** The assignment of tokens to experts. */
export interface Routing {
  /** First choices, then second choices. */
  readonly choices: readonly Choice[];
  readonly capacity: number;
  /** float32 scalar: 1 if tokens are spread evenly (in each sequence, if sequences are separate), E if all go to one expert. */
  readonly auxiliaryLoss: Tensor;
  /** int64 [E]: number of tokens whose first choice each expert was, before dropping. */
  readonly counts: Tensor;
}

/**
 * Routes tokens to experts, as DeepSpeed's top-1 and top-2 gates do.
 * @param logits - float32 [S, E]
 * @param agree - makes all ranks that share experts agree on one capacity; called if no tokens are dropped
 * @throws `MODULE_ARGUMENT` if there are fewer than k experts
 * @see Shazeer et al. 2017, https://arxiv.org/abs/1701.06538; Lepikhin et al. 2020; Fedus et al. 2021
 */
export function route(
  logits: Tensor,
  options: GateOptions,
  noise: GateNoise = { gumbel: undefined, keys: undefined },
  agree: (capacity: number) => number = (capacity) => capacity,
): Routing {
  const [numTokens = 0, numExperts = 0] = logits.shape;
  const { k, capacityFactor, minCapacity, dropTokens } = options;
  if (numExperts < k) throw argumentError("route", `${k} experts or more`, numExperts, {});
  const gates = logits.softmax(1); // [S, E]
  const masks = k === 1 ? [firstOf(gates, logits, noise)] : firstTwoOf(gates, logits, noise);
  const [first = masks[0] as Tensor] = masks;
  const share = (factor: number) => Math.ceil((numTokens / numExperts) * factor * k);
  const needed = () => (logits.device === "meta" ? share(1) : agree(busiest(masks)));
  const capacity = dropTokens ? Math.max(minCapacity, share(capacityFactor)) : needed();
  const kept = k === 1 && noise.keys ? [keepLargest(first, noise.keys, capacity)] : masks;
  const choices = placesOf(kept, capacity).map(({ mask, positions }) =>
    choiceOf(mask, positions, gates, capacity),
  );
  return {
    choices: k === 1 ? choices : normalized(choices),
    capacity,
    auxiliaryLoss: unevenness(gates, first.to("float32"), options.sequenceLength),
    counts: first.sum(0),
  };
}

/** Moves tokens x [S, D] to their experts' slots, [E, C, D]; empty slots are zero. */
export function dispatch(x: Tensor, { choices, capacity, counts }: Routing): Tensor {
  const [, width = 0] = x.shape;
  const numPlaces = (counts.shape[0] ?? 0) * capacity;
  const sizes = [numPlaces + 1, width]; // the last one takes the dropped tokens
  let places =
    x.device === "meta" ? ops.troupe.placeholder(sizes, x.dtype) : zeros(sizes, { dtype: x.dtype });
  for (const { places: to, kept } of choices)
    places = ops.indexAdd(places, 0, to.maskedFill(kept.eq(0), numPlaces), x);
  return places.narrow(0, 0, numPlaces).view([-1, capacity, width]);
}

/** Sums each token's weighted outputs: the experts' outputs [E, C, D] → [S, D]. */
export function combine(answers: Tensor, { choices }: Routing): Tensor {
  const rows = answers.reshape([-1, answers.shape[2] ?? 0]); // [E · C, D]
  const parts = choices.map(({ places, weights }) =>
    rows.indexSelect(0, places).mul(weights.to(rows.dtype).unsqueeze(1)),
  );
  return parts.reduce((sum, part) => sum.add(part)); // [S, D]
}

/**
 * Computes E · Σ over experts of the mean gate times the share of tokens. @param first - float32 [S, E] with 1 at each
 * token's expert
 */
function unevenness(gates: Tensor, first: Tensor, sequenceLength: number | undefined): Tensor {
  const [, numExperts = 0] = gates.shape;
  if (sequenceLength === undefined) return gates.mean(0).mul(first.mean(0)).sum().mul(numExperts);
  const ofSequences = (x: Tensor) => x.view([-1, sequenceLength, numExperts]).mean([1]); // [B, E]
  return ofSequences(gates).mul(ofSequences(first)).sum(1).mean().mul(numExperts);
}

/** Returns int64 [S, E] with 1 at each token's expert. */
function firstOf(gates: Tensor, logits: Tensor, { gumbel }: GateNoise): Tensor {
  return oneHot((gumbel === undefined ? gates : logits.add(gumbel)).argmax(1), gates);
}

function firstTwoOf(gates: Tensor, logits: Tensor, { gumbel }: GateNoise): Tensor[] {
  const first = oneHot(gates.argmax(1), gates);
  const noisy = gumbel === undefined ? logits : logits.add(gumbel);
  const second = oneHot(noisy.maskedFill(first.to("bool"), Number.NEGATIVE_INFINITY).argmax(1), gates);
  return [first, second];
}

/** As libtorch's, which reads the indices to check them. */
const oneHot = (index: Tensor, gates: Tensor): Tensor =>
  index
    .unsqueeze(-1)
    .eq(ops.arange(0, gates.shape[1] ?? 0, 1, "int64"))
    .to("int64");

/** Returns the number of tokens of the busiest expert, counting every choice. */
function busiest(masks: readonly Tensor[]): number {
  const counts = masks.map((mask) => mask.sum(0)).reduce((sum, count) => sum.add(count));
  return counts.max().item();
}

/** Selects tokens at random: a full expert keeps a uniform sample instead of the first tokens of the batch. */
function keepLargest(mask: Tensor, keys: Tensor, capacity: number): Tensor {
  const [numTokens = 0] = mask.shape;
  const [, largest] = ops.topk(mask.to("float32").mul(keys.add(1)), Math.min(capacity, numTokens), 0); // [≤ C, E]
  return mask.mul(ops.scatter(ops.zerosLike(mask), 0, largest, 1)); // + 1: a key of 0 still ranks before tokens of other experts
}

/** Returns the position of each choice in its expert's queue; second choices come after all first ones. */
function placesOf(masks: readonly Tensor[], capacity: number): { mask: Tensor; positions: Tensor }[] {
  let before: Tensor | undefined; // [E]
  return masks.map((mask) => {
    const queued = mask.cumsum(0).sub(1); // [S, E]
    const positions = before === undefined ? queued : queued.add(before);
    before = before === undefined ? mask.sum(0) : before.add(mask.sum(0));
    return { mask: mask.mul(positions.lt(capacity)), positions };
  });
}

function choiceOf(mask: Tensor, positions: Tensor, gates: Tensor, capacity: number): Choice {
  const [, numExperts = 0] = mask.shape;
  const experts = ops.arange(0, numExperts, 1, "int64").mul(capacity); // first place of each
  return {
    places: positions.add(experts).mul(mask).sum(1), // [S]
    kept: mask.sum(1).to("bool"),
    weights: gates.mul(mask.to("float32")).sum(1),
  };
}

/** Divides the two gates of each token by their sum; a dropped choice leaves its share to the other. */
function normalized(choices: readonly Choice[]): Choice[] {
  const EPSILON = 2 ** -23; // of float32, as DeepSpeed has it
  const sum = choices.map(({ weights }) => weights).reduce((total, weights) => total.add(weights));
  // A meta tensor has no zeros to avoid, and the gradient of clamp has no shape rule.
  const divisor = sum.device === "meta" ? sum : sum.clamp(EPSILON);
  return choices.map((choice) => ({ ...choice, weights: choice.weights.div(divisor) }));
}
