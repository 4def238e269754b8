import { type Module, type Parameter, presentRecording, recordedOnce, wrapForward } from "../nn/index.ts";
import {
  type AutocastDType,
  autocast,
  type DType,
  full,
  gradEnabled,
  hold,
  noGrad,
  ops,
  scope,
  type Tensor,
} from "../tensor/index.ts";
import { BlockTape } from "./block-tape.ts";
import type { FlatBlock } from "./flat-block.ts";
import { GradientBuckets } from "./gradient-buckets.ts";
import { InnerTape } from "./inner-tape.ts";
import { type BlockPlan, type BlockUnit, ROOT_UNIT } from "./plan-blocks.ts";
import { type GatherPort, Prefetcher } from "./prefetch.ts";
import type { Shelter } from "./shelter.ts";
import type { BlockRange } from "./stage-cut.ts";
import { StageEnd, StagePass } from "./stage-pass.ts";

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
  /** Where what recomputed blocks keep rests until backward; it stays unless told otherwise. */
  readonly shelter?: Shelter | undefined;
}

/** Which micro-batch runs through which chunk of this stage. */
export interface PassKey {
  readonly microBatch: number;
  readonly chunk: number;
}

/** What a forward pass came to: what it computes on the last stage, else what the next stage receives. */
export interface Forwarded<Result> {
  /** The caller's to dispose. */
  readonly result: Result | undefined;
  /** The engine's until the pass has been walked backwards, if it was recorded; else the caller's. */
  readonly sent: readonly Tensor[];
}

/** Which gradients are the step's and no longer only a micro-batch's once a pass has been walked. */
export interface Completion {
  /** Those of the chunk's blocks. */
  readonly chunk: boolean;
  /** Those of the root. */
  readonly step: boolean;
}

/** A forward pass that waits for its backward. */
interface OpenPass {
  readonly tape: BlockTape;
  readonly roots: readonly Tensor[];
  readonly received: readonly Tensor[];
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
  readonly #buckets: GradientBuckets;
  /** What is trained of each unit, in the order of its flat blocks. */
  readonly #trained: Tensor[][] = [];
  readonly #bound: Tensor[] = [];
  readonly #autocast: AutocastDType | undefined;
  readonly #shelter: Shelter | undefined;
  readonly #unwrap: (() => void)[] = [];
  readonly #open = new Map<string, OpenPass>();
  /** What runs now: a forward pass and the tape that records it, if gradients are wanted. */
  #pass: StagePass | undefined;
  #tape: BlockTape | undefined;
  /** The tape of the block that is called now, where parts of it are to be computed again. */
  #inner: InnerTape | undefined;
  /** Whether a pass has shown that no gradient takes a way past the blocks' arguments and results. */
  #checked = false;
  /** Units whose gradients of the pass that is walked are not whole yet, and what becomes of them then. */
  #pending = new Set<number>();
  #completion: Completion = { chunk: true, step: true };

  constructor(plan: BlockPlan, port: ShardPort<Ticket>, options: EngineOptions) {
    this.#plan = plan;
    this.#port = port;
    this.#autocast = options.autocast;
    this.#shelter = options.shelter;
    const bytesPerElement = BYTES_PER_ELEMENT[options.dtype] ?? 4;
    const ofRoot = new Set(this.#unit(ROOT_UNIT).flats);
    this.#prefetcher = new Prefetcher(port, {
      sizeBytes: plan.layouts.map((layout) => layout.numel * bytesPerElement),
      resident: plan.layouts.map((layout) => ofRoot.has(layout.index) || layout.zero < 3),
      windowBytes: options.prefetchBytes,
    });
    this.#buckets = new GradientBuckets(plan.layouts, options.dtype);
  }

  /**
   * Binds every parameter to its view of the gathered flat buffers, or to a placeholder where another stage holds it,
   * and wraps the blocks.
   * @param fulls - one flat buffer a flat block, in the engine's dtype; ownership passes
   */
  bind(fulls: readonly Tensor[]): void {
    for (const unit of this.#plan.units) this.#bindUnit(unit, fulls);
    const { dtype } = fulls[0] ?? { dtype: "float32" as const };
    for (const parameter of this.#plan.absent) {
      const placeholder = hold(() => ops.troupe.placeholder(parameter.shape, dtype));
      parameter.bind(placeholder);
      this.#bound.push(placeholder);
    }
    for (const full of fulls) full.dispose();
    this.#plan.units.forEach(({ module, recompute }, unit) => {
      if (module === undefined) return;
      this.#unwrap.push(this.#wrap(module, unit));
      if (typeof recompute === "boolean") return;
      const modules = module.namedModules();
      for (const name of recompute) this.#unwrap.push(this.#wrapPart(modules.get(name) as Module));
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
   * Forward of one micro-batch through one chunk, recorded for {@link backward}.
   * @param body - computes the loss, a scalar
   * @param received - leaves that the stage before has sent; none on the first. Ownership passes
   * @throws whatever `body` throws; nothing is kept of the pass then
   */
  forward(key: PassKey, body: () => Tensor, received: readonly Tensor[] = []): Forwarded<Tensor> {
    const leaves = received.filter((tensor) => tensor.requiresGrad);
    const options = { received: leaves, checks: !this.#checked, shelter: this.#shelter };
    const tape = new BlockTape(this.#hooks, ROOT_UNIT, this.#trained, options);
    try {
      const forwarded = this.#run(key.chunk, body, received, tape);
      const { result: loss, sent } = forwarded;
      const roots = loss === undefined ? sent : [hold(loss.alias())];
      this.#open.set(nameOf(key), { tape, roots, received });
      return forwarded;
    } catch (error) {
      tape.clear();
      throw error;
    }
  }

  /**
   * Backward of a pass, and the end of what was kept for it.
   * @param gradients - of what was sent and asks for gradients, in order; on the last stage what multiplies the loss's
   * @returns the gradients of what was received and asks for them, in order; the caller's to dispose
   */
  backward(key: PassKey, gradients: readonly (Tensor | null)[], completion: Completion): (Tensor | null)[] {
    const { tape, roots, received } = this.#open.get(nameOf(key)) as OpenPass;
    this.#open.delete(nameOf(key));
    this.#completion = completion;
    this.#pending = new Set(this.#unitsOf(key.chunk));
    try {
      return scope(() => {
        const asking = roots.filter((root) => root.requiresGrad);
        const answers = tape.backward(asking, gradients);
        for (const unit of this.#pending) this.#unused(unit);
        this.#checked = true;
        return answers;
      });
    } catch (error) {
      tape.clear();
      this.#buckets.clear();
      throw error;
    } finally {
      for (const tensor of [...roots, ...received]) tensor.dispose();
    }
  }

  /**
   * Forward and backward of one micro-batch of a model that is whole on this stage.
   * @param last - whether this is the step's last micro-batch: only then are gradients handed on
   * @param weigh - looks at the loss before backward; what it returns multiplies the gradient
   * @returns the loss, in nats
   * @throws whatever `body` or `weigh` throws; nothing has been handed on then
   */
  forwardBackward(body: () => Tensor, last: boolean, weigh: (lossNats: number) => number): number {
    return scope(() => {
      const key = { microBatch: 0, chunk: 0 };
      const { result: loss } = this.forward(key, body);
      const lossNats = (loss as Tensor).item();
      try {
        const weight = full([], weigh(lossNats), { dtype: (loss as Tensor).dtype });
        this.backward(key, [weight], { chunk: last, step: last });
      } catch (error) {
        this.abandon();
        throw error;
      }
      return lossNats;
    });
  }

  /** Gives up every pass that waits for its backward, and the gradients collected so far. */
  abandon(): void {
    for (const { tape, roots, received } of this.#open.values()) {
      tape.clear();
      for (const tensor of [...roots, ...received]) tensor.dispose();
    }
    this.#open.clear();
    this.#buckets.clear();
  }

  /**
   * Forward of one chunk without recording.
   * @param received - what the stage before has sent; stays the caller's
   */
  evaluateChunk<R>(chunk: number, body: () => R, received: readonly Tensor[] = []): Forwarded<R> {
    return noGrad(() => this.#run(chunk, body, received, undefined));
  }

  /** Runs `body` on the present parameters without recording, of a model that is whole on this stage. */
  evaluate<R>(body: () => R): R {
    return noGrad(() => {
      this.#need(ROOT_UNIT);
      return autocast(this.#autocast, body);
    });
  }

  /** Puts the model back as it was and releases the parameters' views. */
  dispose(): void {
    this.abandon();
    for (const unwrap of this.#unwrap.splice(0)) unwrap();
    for (const tensor of this.#bound.splice(0)) tensor.dispose();
  }

  #run<R>(
    chunk: number,
    body: () => R,
    received: readonly Tensor[],
    tape: BlockTape | undefined,
  ): Forwarded<R> {
    this.#need(ROOT_UNIT);
    const { stages } = this.#plan;
    const pass = new StagePass(this.#rangeOf(chunk), received);
    presentRecording()?.begin(this.#rangeOf(chunk).begin > 0);
    this.#pass = stages.numStages * stages.numChunks > 1 ? pass : undefined;
    this.#tape = tape;
    try {
      const result = autocast(this.#autocast, body);
      this.#pass?.checkResult(result);
      return { result, sent: [] };
    } catch (signal) {
      if (!(signal instanceof StageEnd && signal.pass === pass)) throw signal;
      return { result: undefined, sent: pass.sent };
    } finally {
      this.#pass = undefined;
      this.#tape = undefined;
    }
  }

  #wrap(module: Module, unit: number): () => void {
    return wrapForward(module, (forward, inputs) => {
      // Running a block again in backward casts as forward did.
      const run = recordedOnce((...args: unknown[]) =>
        autocast(this.#autocast, () => (forward as (...args: unknown[]) => unknown)(...args)),
      );
      const entered = this.#pass?.enter(unit - 1, inputs) ?? { here: true, args: inputs };
      const recording = presentRecording();
      if (!entered.here) {
        const elsewhere = () => noGrad(() => run(...entered.args));
        return this.#pass?.shapeOf(recording?.mute(elsewhere) ?? elsewhere()) as never;
      }
      recording?.unmute();
      if (this.#tape !== undefined && gradEnabled()) {
        return this.#record(this.#tape, unit, run, entered.args) as never;
      }
      this.#need(unit);
      const result = run(...entered.args);
      this.#release(unit);
      return result as never;
    });
  }

  /** Calls a block on the tape, with what of it is to be computed again. */
  #record(
    tape: BlockTape,
    unit: number,
    run: (...args: unknown[]) => unknown,
    args: readonly unknown[],
  ): unknown {
    const { recompute, name } = this.#unit(unit);
    if (typeof recompute === "boolean") return tape.call(unit, run, args, { recompute });
    const outside = this.#inner;
    const parts = (inputs: readonly Tensor[], parameters: readonly Tensor[]) => {
      this.#inner = new InnerTape(inputs, parameters, name);
      return this.#inner;
    };
    try {
      return tape.call(unit, run, args, { recompute: false, parts });
    } finally {
      this.#inner = outside;
    }
  }

  /** Lets a part of a block be computed again in backward, where the block is recorded. */
  #wrapPart(part: Module): () => void {
    return wrapForward(part, (forward, inputs) => {
      const inner = this.#inner;
      const run = (...args: unknown[]) =>
        autocast(this.#autocast, () => (forward as (...args: unknown[]) => unknown)(...args));
      if (inner === undefined || !gradEnabled()) return run(...inputs) as never;
      // Parts within parts are computed again with them.
      this.#inner = undefined;
      try {
        return inner.call(run, inputs) as never;
      } finally {
        this.#inner = inner;
      }
    });
  }

  readonly #hooks = {
    need: (unit: number) => this.#need(unit),
    release: (unit: number) => this.#release(unit),
    contribute: (unit: number, gradients: readonly (Tensor | null)[]) => this.#contribute(unit, gradients),
    whole: (unit: number) => this.#whole(unit),
    name: (unit: number) => this.#unit(unit).name,
  };

  #need(unit: number): void {
    for (const flat of this.#unit(unit).flats) this.#prefetcher.need(flat);
  }

  #release(unit: number): void {
    for (const flat of this.#unit(unit).flats) if (this.#prefetcher.release(flat)) this.#port.release(flat);
  }

  #contribute(unit: number, gradients: readonly (Tensor | null)[]): void {
    let begin = 0;
    for (const flat of this.#trainedFlats(unit)) {
      const end = begin + flat.parameters.length;
      this.#buckets.contribute(flat.index, gradients.slice(begin, end));
      begin = end;
    }
  }

  /** Every block is reduced in every step, used or not: what ranks agree on never depends on what a batch touched. */
  #unused(unit: number): void {
    this.#contribute(
      unit,
      (this.#trained[unit] ?? []).map(() => null),
    );
    this.#whole(unit);
  }

  #whole(unit: number): void {
    this.#pending.delete(unit);
    const { chunk, step } = this.#completion;
    for (const { index } of this.#trainedFlats(unit)) {
      this.#buckets.endMicroBatch(index);
      if (unit === ROOT_UNIT ? step : chunk) this.#port.reduce(index, this.#buckets.take(index));
    }
  }

  #trainedFlats(unit: number): FlatBlock[] {
    return this.#unit(unit)
      .flats.map((flat) => this.#plan.layouts[flat] as FlatBlock)
      .filter((flat) => flat.trainable);
  }

  #unit(unit: number): BlockUnit {
    return this.#plan.units[unit] as BlockUnit;
  }

  /** The root and the blocks of one chunk of this stage. */
  #unitsOf(chunk: number): number[] {
    const { begin, end } = this.#rangeOf(chunk);
    return [ROOT_UNIT, ...Array.from({ length: end - begin }, (_, index) => begin + index + 1)];
  }

  #rangeOf(chunk: number): BlockRange {
    return this.#plan.ranges[chunk] as BlockRange;
  }

  #bindUnit({ flats, parameters }: BlockUnit, fulls: readonly Tensor[]): void {
    const rest = [...parameters];
    const trained: Tensor[] = [];
    for (const index of flats) {
      const layout = this.#plan.layouts[index] as FlatBlock;
      const leaves = bindLeaves(layout, rest.splice(0, layout.parameters.length), fulls[index] as Tensor);
      this.#bound.push(...leaves);
      if (layout.trainable) trained.push(...leaves);
    }
    this.#trained.push(trained);
  }
}

function bindLeaves(layout: FlatBlock, parameters: readonly Parameter[], full: Tensor): Tensor[] {
  return layout.parameters.map((spec, index) => {
    const view = scope(() =>
      hold(
        full
          .narrow(0, spec.offset, spec.numel)
          .view([...spec.shape])
          .detach(),
      ),
    );
    const leaf = layout.trainable ? view.requiresGrad_() : view;
    parameters[index]?.bind(leaf);
    return leaf;
  });
}

const nameOf = ({ microBatch, chunk }: PassKey) => `${microBatch}.${chunk}`;
