import { type DType, itemBytes, type Tensor } from "../../tensor/index.ts";
import { type BlockPlan, type BlockUnit, ROOT_UNIT } from "../blocks/plan-blocks.ts";
import { BoundParameters } from "./bound-parameters.ts";
import { type GatherPort, Prefetcher } from "./prefetch.ts";

/** The engine's access to the shard that holds the parameters; the rank actor's consists of messages. */
export interface ShardPort<Ticket> extends GatherPort<Ticket> {
  /** Sends a block's complete flat gradient of the step to be reduced; ownership passes. */
  reduce(block: number, gradient: Tensor): void;
}

/** How parameters are gathered ahead. */
export interface GatherOptions {
  /** Dtype of gathered parameters and of gradients. */
  readonly dtype: DType;
  /** How far gathers run ahead, in bytes. */
  readonly prefetchBytes: number;
  /** Flat blocks whose parameters have memory only while gathered, by index. Default: none. */
  readonly paged?: readonly number[];
}

/** Gathers the parameters of units in time, and knows which are gathered. */
export class BlockGathers<Ticket> {
  readonly #plan: BlockPlan;
  readonly #paged: readonly number[];
  readonly #prefetcher: Prefetcher<Ticket>;
  #parameters: BoundParameters | undefined;
  #isHolding = false;

  constructor(plan: BlockPlan, port: GatherPort<Ticket>, options: GatherOptions) {
    this.#plan = plan;
    this.#paged = options.paged ?? [];
    const ofRoot = new Set(plan.units[ROOT_UNIT]?.flats);
    const gathers: GatherPort<Ticket> = {
      start: (block) => port.start(block),
      wait: (ticket) => port.wait(ticket),
      release: (block) => {
        this.#parameters?.markGathered(block, false);
        port.release(block);
      },
    };
    this.#prefetcher = new Prefetcher(gathers, {
      sizeBytes: plan.layouts.map((layout) => layout.numel * itemBytes(options.dtype)),
      resident: plan.layouts.map((layout) => ofRoot.has(layout.index) || layout.zero < 3),
      windowBytes: options.prefetchBytes,
    });
  }

  /** The model's parameters, bound to the gathered buffers. */
  get parameters(): BoundParameters {
    if (this.#parameters === undefined) throw new Error("[parallel] the parameters are not bound");
    return this.#parameters;
  }

  /** @param fulls - one flat buffer a flat block; ownership passes */
  bind(fulls: readonly Tensor[]): void {
    this.#parameters = new BoundParameters(this.#plan, fulls, this.#paged);
  }

  /** Starts gathering for a pass; passes of one kind need the same blocks in the same order. */
  begin(kind: string): void {
    this.#prefetcher.begin(kind);
  }

  /** Waits until a unit's parameters are gathered. */
  need(unit: number): void {
    for (const flat of this.#flatsOf(unit)) {
      this.#prefetcher.need(flat);
      this.#parameters?.markGathered(flat, true);
    }
  }

  /** Gathers all units, and keeps them until `body` has ended. */
  holding<R>(body: () => R): R {
    const units = [...this.#plan.units.keys()];
    for (const unit of units) this.need(unit);
    this.#isHolding = true;
    try {
      return body();
    } finally {
      this.#isHolding = false;
      for (const unit of units) this.release(unit);
    }
  }

  /** Releases a unit's parameters until they are needed again. */
  release(unit: number): void {
    if (this.#isHolding) return;
    for (const flat of this.#flatsOf(unit)) this.#prefetcher.release(flat);
  }

  [Symbol.dispose](): void {
    this.#parameters?.[Symbol.dispose]();
  }

  #flatsOf(unit: number): readonly number[] {
    return (this.#plan.units[unit] as BlockUnit).flats;
  }
}
