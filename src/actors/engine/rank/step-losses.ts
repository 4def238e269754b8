import {
  hold,
  type LateNumber,
  moveRef,
  ops,
  readLater,
  scope,
  Tensor,
  type TensorRef,
} from "../../../compute/tensor/index.ts";
import { type Losses, weighValues } from "../../../job/index.ts";
import type { ActorRef } from "../../../runtime/index.ts";
import { type RankStepped, type ShardProtocol, sentTo } from "../../protocols/index.ts";
import type { WeighedBatch } from "./batch-source.ts";

/** The loss of one forward, weighed by its micro-batch's share; a device may still compute it. */
export interface PassLoss {
  readonly nats: LateNumber;
  /** float64 [1], if a device computes it; to be released. */
  readonly onDevice: Tensor | undefined;
  readonly named: (() => Readonly<Record<string, number>>) | undefined;
}

/** @param loss - the weighed sum of `losses`, a scalar of any floating dtype */
export function passLoss(losses: Losses, loss: Tensor): PassLoss {
  const isOnDevice = loss.device !== "cpu" && loss.device !== "meta";
  const onDevice = isOnDevice ? hold(() => loss.detach().to("float64").view([1])) : undefined;
  return { nats: readLater(loss), onDevice, named: namedValues(losses) };
}

/** The losses of one step's micro-batches on one rank. */
export class StepLosses {
  readonly #isReported: boolean;
  readonly #losses: Omit<PassLoss, "named">[] = [];
  readonly #weighed: (() => Readonly<Record<string, number>>)[] = [];
  readonly #numCounted: number[] = [];
  #numSamples = 0;
  #numTokens: number | undefined;

  /** @param isReported - whether this rank reports the losses of its replica; else they only prove that ranks agree */
  constructor(isReported: boolean) {
    this.#isReported = isReported;
  }

  /** Adds a micro-batch. @param losses - its trained losses, at least one: their sum is its loss. Ownership passes */
  add(losses: readonly PassLoss[], batch: WeighedBatch): void {
    const nats = () => losses.map((loss) => loss.nats()).reduce((sum, each) => sum + each);
    const onDevice = losses.flatMap((loss) => loss.onDevice ?? []);
    this.#losses.push({ nats, onDevice: this.#isReported ? sumOf(onDevice) : undefined });
    if (!this.#isReported) {
      for (const tensor of onDevice) tensor.dispose();
      return;
    }
    const named = losses.flatMap((each) => each.named ?? []);
    if (named.length > 0) this.#weighed.push(() => weighValues(sumsByName(named), batch.weight));
    if (batch.numCounted !== undefined) this.#numCounted.push(batch.numCounted);
    this.#numSamples += batch.numSamples;
    this.#numTokens = batch.numTokens === undefined ? undefined : (this.#numTokens ?? 0) + batch.numTokens;
  }

  /**
   * The losses for the shard, `factor` times each, so that their mean is the step's; empty if not reported.
   * A device's are sent unread: reading would wait for all of its work.
   */
  sentTo(shard: ActorRef<ShardProtocol>, factor: number): readonly number[] | TensorRef {
    if (!this.#isReported) return [];
    const tensors = this.#losses.flatMap(({ onDevice }) => onDevice ?? []);
    if (tensors.length === 0) return this.#losses.map(({ nats }) => nats() * factor);
    const joined = hold(() => scope(() => (factor === 1 ? ops.cat(tensors) : ops.cat(tensors).mul(factor))));
    for (const each of tensors) each.dispose();
    return moveRef(joined, sentTo(shard));
  }

  /** The conductor's copy. Waits for a device. */
  get reported(): Pick<
    RankStepped,
    "lossesNats" | "namedLosses" | "witnessNats" | "numCounted" | "numSamples" | "numTokens"
  > {
    const nats = this.#losses.map((loss) => loss.nats());
    return {
      numSamples: this.#numSamples,
      numTokens: this.#numTokens,
      ...(!this.#isReported && nats.length > 0 && { witnessNats: nats }),
      ...(this.#numCounted.length > 0 && { numCounted: this.#numCounted }),
      lossesNats: this.#isReported ? nats : [],
      namedLosses: this.#weighed.map((values) => values()),
    };
  }
}

/** The values of losses that have names, once they are known. */
function namedValues(losses: Losses): (() => Readonly<Record<string, number>>) | undefined {
  if (losses instanceof Tensor) return undefined;
  const late = Object.entries(losses).map(([name, loss]) => [name, readLater(loss)] as const);
  return () => Object.fromEntries(late.map(([name, value]) => [name, value()]));
}

/** @param tensors - on a device; ownership passes. @returns undefined without any */
function sumOf([first, ...more]: readonly Tensor[]): Tensor | undefined {
  if (first === undefined || more.length === 0) return first;
  const sum = hold(() => more.reduce((sum, each) => sum.add(each), first));
  for (const each of [first, ...more]) each.dispose();
  return sum;
}

/** The losses of several forwards by name: two of one name add up. */
function sumsByName(
  all: readonly (() => Readonly<Record<string, number>>)[],
): Readonly<Record<string, number>> {
  const sums: Record<string, number> = {};
  for (const [name, value] of all.flatMap((named) => Object.entries(named())))
    sums[name] = name in sums ? (sums[name] as number) + value : value;
  return sums;
}
