import { type Module, type Parameter, wrapForward } from "../nn/index.ts";
import {
  type AutocastDType,
  autocast,
  type DType,
  gradEnabled,
  hold,
  noGrad,
  scope,
  type Tensor,
} from "../tensor/index.ts";
import { BlockTape } from "./block-tape.ts";
import type { FlatBlock } from "./flat-block.ts";
import { GradientBuckets } from "./gradient-buckets.ts";
import { type BlockPlan, ROOT_BLOCK } from "./plan-blocks.ts";
import { type GatherPort, Prefetcher } from "./prefetch.ts";

/** How the engine reaches the shard that holds the parameters; the rank actor gives it one made of messages. */
export interface ShardPort<Ticket> extends GatherPort<Ticket> {
  /** A level-3 block's gathered parameters are given up. */
  release(block: number): void;
  /** Hands a block's whole flat gradient of the step over, to be reduced; ownership passes. */
  reduce(block: number, gradient: Tensor): void;
}

/** Choices that change speed and memory, never the result. */
export interface EngineOptions {
  /** Dtype in which parameters are gathered and gradients made. */
  readonly dtype: DType;
  /** How far gathers run ahead, in bytes. */
  readonly prefetchBytes: number;
  /** What operators cast to while the model computes forward; none where they compute in what they are given. */
  readonly autocast?: AutocastDType | undefined;
}

const BYTES_PER_ELEMENT: Partial<Record<DType, number>> = { float32: 4, float64: 8, bfloat16: 2, float16: 2 };

/**
 * Runs a model written for one device on parameters that shards hold: wraps each block's forward so that its
 * parameters are gathered in time, walks the tape backwards, and hands each block's gradient on as soon as it is whole.
 * One engine a rank; synchronous; waits only inside the port.
 */
export class BlockEngine<Ticket> {
  readonly #plan: BlockPlan;
  readonly #port: ShardPort<Ticket>;
  readonly #prefetcher: Prefetcher<Ticket>;
  readonly #tape: BlockTape;
  readonly #buckets: GradientBuckets;
  readonly #leaves: Tensor[][] = [];
  readonly #autocast: AutocastDType | undefined;
  readonly #unwrap: (() => void)[] = [];
  /** Whether gradients that become whole are the step's, or only this micro-batch's. */
  #lastMicroBatch = true;
  /** Blocks whose gradients of this micro-batch are not whole yet. */
  #pending = new Set<number>();

  constructor(plan: BlockPlan, port: ShardPort<Ticket>, options: EngineOptions) {
    this.#plan = plan;
    this.#port = port;
    this.#autocast = options.autocast;
    const bytesPerElement = BYTES_PER_ELEMENT[options.dtype] ?? 4;
    this.#prefetcher = new Prefetcher(port, {
      sizeBytes: plan.layouts.map((layout) => layout.numel * bytesPerElement),
      resident: plan.layouts.map((layout) => layout.index === ROOT_BLOCK || layout.zero < 3),
      windowBytes: options.prefetchBytes,
    });
    this.#buckets = new GradientBuckets(plan.layouts, options.dtype);
    this.#tape = new BlockTape(
      {
        need: (block) => this.#prefetcher.need(block),
        release: (block) => this.#release(block),
        contribute: (block, gradients) => this.#buckets.contribute(block, gradients),
        whole: (block) => this.#whole(block),
      },
      ROOT_BLOCK,
      () => this.#leavesOf(ROOT_BLOCK),
    );
  }

  /**
   * Binds every parameter to its view of the gathered flat buffers and wraps the blocks.
   * @param fulls - one flat buffer a block, in the engine's dtype; ownership passes
   */
  bind(fulls: readonly Tensor[]): void {
    this.#plan.layouts.forEach((layout, index) => {
      this.#leaves.push(bindLeaves(layout, this.#plan.parameters[index] ?? [], fulls[index] as Tensor));
    });
    this.#plan.modules.forEach((module, index) => {
      if (module !== undefined) this.#unwrap.push(this.#wrap(module, index));
    });
  }

  /**
   * Starts gathering for a pass over the blocks; parameters gathered before are not used any more.
   * @param kind - "step", "evaluate", ...: passes of one kind need the same blocks in the same order
   */
  begin(kind: string): void {
    this.#prefetcher.begin(kind);
  }

  /**
   * Forward and backward of one micro-batch.
   * @param body - computes the loss, a scalar
   * @param last - whether this is the step's last micro-batch: only then are gradients handed on
   * @param weigh - looks at the loss before backward; what it returns multiplies the gradient
   * @returns the loss, in nats
   * @throws whatever `body` or `weigh` throws; nothing has been handed on then
   */
  forwardBackward(body: () => Tensor, last: boolean, weigh: (lossNats: number) => number): number {
    this.#lastMicroBatch = last;
    try {
      return scope(() => {
        this.#prefetcher.need(ROOT_BLOCK);
        const loss = autocast(this.#autocast, body);
        const lossNats = loss.item();
        const weight = weigh(lossNats);
        this.#pending = new Set(this.#plan.layouts.map((layout) => layout.index));
        this.#tape.backward(weight === 1 ? loss : loss.mul(weight), (block) => this.#leavesOf(block));
        for (const block of this.#pending) this.#unused(block);
        return lossNats;
      });
    } catch (error) {
      this.#tape.clear();
      this.#buckets.clear();
      throw error;
    }
  }

  /** Runs `body` on the present parameters without recording: evaluation and generation. */
  evaluate<R>(body: () => R): R {
    return noGrad(() => {
      this.#prefetcher.need(ROOT_BLOCK);
      return autocast(this.#autocast, body);
    });
  }

  /** Puts the model back as it was and releases the parameters' views. */
  dispose(): void {
    for (const unwrap of this.#unwrap.splice(0)) unwrap();
    for (const leaf of this.#leaves.splice(0).flat()) leaf.dispose();
  }

  #wrap(module: Module, block: number): () => void {
    return wrapForward(module, (forward, inputs) => {
      // Running a block again in backward casts as forward did.
      const run = (...args: unknown[]) =>
        autocast(this.#autocast, () => (forward as (...args: unknown[]) => unknown)(...args));
      if (gradEnabled()) return this.#tape.call(block, run, inputs) as never;
      this.#prefetcher.need(block);
      const result = run(...inputs);
      this.#release(block);
      return result as never;
    });
  }

  #release(block: number): void {
    if (this.#prefetcher.release(block)) this.#port.release(block);
  }

  /** Every block is reduced in every step, used or not: what ranks agree on never depends on what a batch touched. */
  #unused(block: number): void {
    this.#buckets.contribute(
      block,
      this.#leavesOf(block).map(() => null),
    );
    this.#whole(block);
  }

  #whole(block: number): void {
    this.#pending.delete(block);
    this.#buckets.endMicroBatch(block);
    if (this.#lastMicroBatch) this.#port.reduce(block, this.#buckets.take(block));
  }

  #leavesOf(block: number): readonly Tensor[] {
    return this.#leaves[block] ?? [];
  }
}

function bindLeaves(layout: FlatBlock, parameters: readonly Parameter[], full: Tensor): Tensor[] {
  const leaves = layout.parameters.map((spec, index) => {
    const leaf = scope(() =>
      hold(
        full
          .narrow(0, spec.offset, spec.numel)
          .view([...spec.shape])
          .detach()
          .requiresGrad_(),
      ),
    );
    parameters[index]?.bind(leaf);
    return leaf;
  });
  full.dispose();
  return leaves;
}
