import type { Module, Parameter, Randomness } from "../../nn/index.ts";
import {
  type AutocastDType,
  canRecordPrograms,
  hold,
  noGrad,
  OpenScope,
  refuseBackward,
  type Tensor,
} from "../../tensor/index.ts";
import { type BlockPlan, type BlockUnit, ROOT_UNIT } from "../blocks/plan-blocks.ts";
import { BlockTape } from "../tape/block-tape.ts";
import type { Offloader } from "../tape/offloader.ts";
import type { BlockCalls } from "../tape/program-call.ts";
import {
  BlockPrograms,
  type RecordedBlock,
  type RecordedProgram,
  type Unrecorded,
} from "../tape/programs.ts";
import { BlockGathers, type GatherOptions, type ShardPort } from "./block-gathers.ts";
import { BufferWrites } from "./buffer-writes.ts";
import { type Completion, MORE_MAY_COME, UnitGradients } from "./unit-gradients.ts";
import { type Forwarded, WrappedBlocks } from "./wrapped-blocks.ts";

/** Choices that change speed and memory, never the result; `fast` alone changes its last bits. */
export interface EngineOptions extends GatherOptions {
  /** The dtype that operators cast to in forward; undefined for none. */
  readonly autocast?: AutocastDType | undefined;
  /** The model's random numbers, if it draws any: recomputation draws the same again. */
  readonly randomness: Randomness | undefined;
  /** Holds the inputs of recomputed blocks until backward. Default: they stay. */
  readonly offloader?: Offloader | undefined;
  /** Whether blocks are recorded and replayed as programs. Default: false. */
  readonly programs?: boolean;
  /** Whether programs may have other bits where that is quicker. Default: false. */
  readonly fast?: boolean;
}

/** Names the micro-batch that runs, and the chunk of this stage that it runs through. */
export interface PassKey {
  readonly microBatch: number;
  readonly chunk: number;
  /** Earlier forwards of this micro-batch. Default: 0. */
  readonly repeat?: number;
  /** Name of what it computes, where passes differ in that. Default: the same in each pass with as many earlier forwards. */
  readonly program?: string | undefined;
}

/** A forward pass that waits for its backward. */
interface OpenPass {
  readonly tape: BlockTape;
  readonly roots: readonly Tensor[];
  readonly received: readonly Tensor[];
}

/**
 * Runs a model written for one device on parameters that shards hold, pass by pass: each block's parameters are gathered in
 * time, the tape is walked backwards, and each block's gradient handed on as soon as it is complete. One engine a rank;
 * synchronous; waits only inside the port.
 */
export class BlockEngine<Ticket> {
  readonly #plan: BlockPlan;
  readonly #gathers: BlockGathers<Ticket>;
  readonly #blocks: WrappedBlocks;
  readonly #gradients: UnitGradients;
  readonly #writes: BufferWrites;
  readonly #offloader: Offloader | undefined;
  readonly #randomness: Randomness | undefined;
  readonly #open = new Map<string, OpenPass>();
  readonly #programs: BlockPrograms | undefined;
  readonly #unrecorded: Unrecorded[] = [];
  readonly #recordedPrograms: RecordedProgram[] = [];
  /** By what they compute, passes that have shown that gradients flow only through the blocks' arguments and results. */
  readonly #checked = new Set<string>();

  constructor(plan: BlockPlan, port: ShardPort<Ticket>, options: EngineOptions) {
    this.#plan = plan;
    this.#offloader = options.offloader;
    this.#randomness = options.randomness;
    this.#gathers = new BlockGathers(plan, port, options);
    this.#programs = this.#openPrograms(options);
    this.#blocks = new WrappedBlocks(plan, this.#gathers, { ...options, programs: this.#programs });
    const { dtype, programs = false, fast = false } = options;
    this.#gradients = new UnitGradients(plan, { dtype, adds: programs && fast }, (block, gradient) =>
      port.reduce(block, gradient),
    );
    this.#writes = new BufferWrites(plan, (block, writes) => port.reduce(block, writes));
  }

  #openPrograms({ programs = false, fast = false, randomness }: EngineOptions): BlockPrograms | undefined {
    if (!programs) return undefined;
    if (!canRecordPrograms()) {
      this.#unrecorded.push({ block: "every block", reason: "a libtorch older than 2.13" });
      return undefined;
    }
    const listener = {
      fast,
      captures: process.env.TROUPE_DEVICE_GRAPHS === "1",
      recorded: (program: RecordedProgram) => void this.#recordedPrograms.push(program),
      unrecorded: (block: Unrecorded) => void this.#unrecorded.push(block),
    };
    const { region } = this.#plan;
    return new BlockPrograms((unit) => this.#recorded(unit), listener, { randomness, region });
  }

  /**
   * Binds every parameter to its view of the gathered flat buffers, or to a placeholder if another stage holds it, wraps the
   * blocks, and records writes of forward to buffers.
   * @param fulls - one flat buffer a flat block, in the engine's dtype; ownership passes
   */
  bind(fulls: readonly Tensor[]): void {
    this.#gathers.bind(fulls);
    this.#blocks.wrap();
    this.#writes.bind();
  }

  /**
   * Starts gathering for a pass over the blocks; parameters gathered before are not used again.
   * @param kind - "step", "evaluate", ...: passes of one kind need the same blocks in the same order
   */
  begin(kind: string): void {
    this.#gathers.begin(kind);
    this.#gradients.beginStep();
  }

  /**
   * Marks all parameters that are trainable after the step's forwards as trained. Without it a step trains those that were
   * trainable in one of its backwards.
   */
  noteTrained(): void {
    this.#gradients.note();
  }

  /** @returns the parameters that the step trains; later changes of `trainable` do not count */
  settleTrained(): ReadonlySet<Parameter> {
    return this.#gradients.settle();
  }

  /** @returns the parameters that had gradients in the first step's losses, on the first call */
  takeReached(): ReadonlySet<Parameter> | undefined {
    return this.#gradients.takeReached();
  }

  /** @returns blocks that were not recorded as programs, each once */
  takeUnrecorded(): readonly Unrecorded[] {
    return this.#unrecorded.splice(0);
  }

  /** @returns calls of blocks that were replayed or recorded since it was asked before; undefined without programs */
  takeBlockCalls(): BlockCalls | undefined {
    return this.#programs?.takeCalls();
  }

  /** @returns programs that blocks are replayed by, each once */
  takePrograms(): readonly RecordedProgram[] {
    return this.#recordedPrograms.splice(0);
  }

  /**
   * Forward of one micro-batch through one chunk, recorded for {@link backward}.
   * @param body - computes the loss, a scalar
   * @param received - leaves from the stage before; empty on the first. Ownership passes
   * @throws errors of `body`; nothing is kept of the pass then
   */
  forward(key: PassKey, body: () => Tensor, received: readonly Tensor[] = []): Forwarded<Tensor> {
    const leaves = received.filter((tensor) => tensor.requiresGrad);
    const checks = this.#checked.has(programOf(key)) ? undefined : this.#plan.units.length;
    const options = { received: leaves, checks, offloader: this.#offloader, programs: this.#programs };
    const tape = new BlockTape(this.#hooks, ROOT_UNIT, this.#gathers.parameters.trainable, options);
    try {
      using _backward = refuseBackward();
      using _writes = this.#writes.collect();
      const forwarded = this.#blocks.run(key.chunk, body, received, tape);
      this.#writes.keep();
      const { result: loss, sent } = forwarded;
      const roots = loss === undefined ? sent : [hold(loss.alias())];
      this.#open.set(nameOf(key), { tape, roots, received });
      return forwarded;
    } catch (error) {
      tape.clear();
      for (const tensor of received) tensor.dispose();
      throw error;
    }
  }

  /**
   * Backward of a pass; frees its records. With the step's last one, the forwards' writes to buffers are handed on too.
   * @param gradients - of the sent tensors that require gradients, in order; on the last stage the factor of the loss's
   * @param completion - if left out, {@link flush} says when the step's gradients are complete
   * @param only - names of the parameters whose gradients count; default all
   * @returns the gradients of the received tensors that require them, in order; the caller's to dispose
   */
  backward(
    key: PassKey,
    gradients: readonly (Tensor | null)[],
    completion: Completion = MORE_MAY_COME,
    only?: RegExp,
  ): (Tensor | null)[] {
    const { tape, roots, received } = this.#open.get(nameOf(key)) as OpenPass;
    this.#open.delete(nameOf(key));
    this.#gradients.note();
    const units = this.#plan.chunkUnits[key.chunk] as ReadonlySet<number>;
    this.#gradients.begin(units, completion, only);
    try {
      using _ = new OpenScope();
      const asking = roots.filter((root) => root.requiresGrad);
      const answers = tape.backward(asking, gradients);
      this.#gradients.end();
      if (completion.step) this.#writes.handOn();
      this.#checked.add(programOf(key));
      return answers;
    } catch (error) {
      tape.clear();
      this.#gradients.clear();
      throw error;
    } finally {
      for (const tensor of [...roots, ...received]) tensor.dispose();
    }
  }

  /** Ends the step's passes: hands on the remaining gradients, on a stage with the complete model. */
  flush(): void {
    this.#gradients.flush();
    this.#writes.handOn();
  }

  drop(key: PassKey): void {
    const pass = this.#open.get(nameOf(key));
    if (pass === undefined) return;
    this.#open.delete(nameOf(key));
    release(pass);
  }

  /** Drops every pass that waits for its backward, and the gradients collected so far. */
  abandon(): void {
    for (const pass of this.#open.values()) release(pass);
    this.#open.clear();
    this.#gradients.clear();
    this.#writes.clear();
  }

  /** Forward of one chunk without recording. @param received - from the stage before; stays the caller's */
  evaluateChunk<R>(chunk: number, body: () => R, received: readonly Tensor[]): Forwarded<R> {
    return noGrad(() => this.#blocks.run(chunk, body, received, undefined));
  }

  /** Runs `body` with all of this rank's parameters gathered: each block once, in the order of the model, however often it is called. */
  holding<R>(body: () => R): R {
    return this.#gathers.holding(body);
  }

  /** Runs `body` on the present parameters without recording; the stage has the complete model. */
  evaluate<R>(body: () => R): R {
    return noGrad(() => {
      this.#gathers.need(ROOT_UNIT);
      this.#randomness?.restart();
      return this.#blocks.cast(body);
    });
  }

  dispose(): void {
    this.abandon();
    this.#programs?.[Symbol.dispose]();
    this.#blocks.unwrap();
    this.#gathers[Symbol.dispose]();
  }

  #recorded(unit: number): RecordedBlock {
    const { name, module, parameters } = this.#plan.units[unit] as BlockUnit;
    const ofRoot = (this.#plan.units[ROOT_UNIT] as BlockUnit).parameters;
    return {
      name,
      module: module as Module,
      parameters: [...parameters, ...ofRoot].map(({ memory }) => memory),
    };
  }

  readonly #hooks = {
    takesRows: true,
    need: (unit: number) => this.#gathers.need(unit),
    release: (unit: number) => this.#gathers.release(unit),
    contribute: (_: number, leaves: readonly Tensor[], gradients: readonly (Tensor | null)[]) =>
      this.#gradients.contribute(leaves, gradients, this.#gathers.parameters.placeOf),
    placesOf: (leaves: readonly Tensor[], isLast: boolean) =>
      this.#gradients.placesOf(leaves, this.#gathers.parameters.placeOf, isLast),
    isParameter: (tensor: Tensor) => this.#gathers.parameters.placeOf(tensor) !== undefined,
    complete: (unit: number) => this.#gradients.complete(unit),
    name: (unit: number) => (this.#plan.units[unit] as BlockUnit).name,
  };
}

const nameOf = ({ microBatch, chunk, repeat = 0 }: PassKey) => `${microBatch}.${chunk}.${repeat}`;

const programOf = ({ program, repeat = 0 }: PassKey) => program ?? `forward ${repeat}`;

/** Releases a pass whose backward never comes. */
function release({ tape, roots, received }: OpenPass): void {
  tape.clear();
  for (const tensor of [...roots, ...received]) tensor.dispose();
}
