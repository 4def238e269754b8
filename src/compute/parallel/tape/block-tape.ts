import { noteOrigin } from "../../../errors/index.ts";
import { presentRecording } from "../../nn/index.ts";
import { type GradientPlace, grad, type Tensor } from "../../tensor/index.ts";
import {
  type BlockCall,
  type CutOutputs,
  computeAgain,
  cutInputs,
  cutOutputs,
  forgetCall,
  type PartTape,
} from "./block-call.ts";
import type { Offloader } from "./offloader.ts";
import { OuterGraph } from "./outer-graph.ts";
import { reachedBy } from "./program-call.ts";
import type { BlockPrograms } from "./programs.ts";
import { type ForeignTensors, foreignTensors, refuseForeign } from "./tape-checks.ts";

/** Calls from the tape to the engine around each block. Blocks are named by their index. */
export interface BlockHooks {
  /** Called before a block computes, forward and backward: returns once its parameters are gathered. */
  need(block: number): void;
  /** Called when the block's parameters are not needed for now. */
  release(block: number): void;
  /** Adds gradients of leaves to the block's; `null` where one was not used. */
  contribute(block: number, leaves: readonly Tensor[], gradients: readonly (Tensor | null)[]): void;
  /**
   * @param isLast - whether the pass has no more gradients of the block
   * @returns memory in which the first gradients of a block's leaves may be computed, by their index. Default: none.
   */
  placesOf?(leaves: readonly Tensor[], isLast: boolean): readonly GradientPlace[];
  /** Whether `contribute` takes sparse gradients of the root's tables of vectors. Default: false. */
  readonly takesRows?: boolean;
  /** Called when nothing more will be contributed to the block in this pass. */
  complete(block: number): void;
  /** Whether a tensor is a parameter, which outlives the pass. */
  isParameter(tensor: Tensor): boolean;
  /** @returns the block's name, for errors */
  name(block: number): string;
}

/** How a block is called. */
export interface CallOptions {
  /** Whether activations inside are dropped and computed again in backward. */
  readonly recompute: boolean;
  /** If the block has recomputed parts: opens a tape for this call, on which `forward` records them. Default: none. */
  readonly parts?: ((inputs: readonly Tensor[], parameters: readonly Tensor[]) => PartTape) | undefined;
}

/**
 * Records the block calls of one forward pass and walks them backwards.
 *
 * A block's inputs and outputs are cut from the outer graph, so that each call is an autograd graph of its own. The
 * walk runs one call's backward, hands its parameter gradients on at once, and so overlaps their reduction with the
 * next call's backward, with no hook from native code. A tensor that several blocks read gathers its gradient until its
 * first use in forward order is reached: only then is the sum complete. What enters or leaves a block otherwise than as
 * an argument or a result would take its gradient past these graphs: a tape that checks refuses it.
 */
export class BlockTape {
  readonly #hooks: BlockHooks;
  readonly #root: number;
  readonly #leavesOf: (block: number) => readonly Tensor[];
  readonly #calls: BlockCall[] = [];
  readonly #offloader: Offloader | undefined;
  readonly #programs: BlockPrograms | undefined;
  /** Leaves that an earlier stage computed: their gradients are the caller's. */
  readonly #received: readonly Tensor[];
  /** None if nothing is checked. */
  readonly #foreignTo: ForeignTensors;
  readonly #outer: OuterGraph;

  /**
   * @param root - index of the block that owns the parameters outside all blocks
   * @param leavesOf - a block's parameters that are trainable now, bound
   * @param options.received - leaves that come from outside the pass; default none
   * @param options.checks - number of blocks, the root included, to check for lost gradients; every call's backward then names
   * all parameters. A program does the same in every pass, so checking its first is enough. Default: no checks
   * @param options.offloader - holds the inputs of recomputed calls until then; default they stay
   * @param options.programs - replay calls, in passes that are not checked; default none
   */
  constructor(
    hooks: BlockHooks,
    root: number,
    leavesOf: (block: number) => readonly Tensor[],
    options: {
      readonly received?: readonly Tensor[];
      readonly checks?: number | undefined;
      readonly offloader?: Offloader | undefined;
      readonly programs?: BlockPrograms | undefined;
    } = {},
  ) {
    this.#hooks = hooks;
    this.#root = root;
    this.#leavesOf = leavesOf;
    this.#received = options.received ?? [];
    this.#offloader = options.offloader;
    const { checks } = options;
    this.#programs = checks === undefined ? options.programs : undefined;
    this.#foreignTo = checks === undefined ? () => [] : foreignTensors(this.#calls, root, checks, leavesOf);
    this.#outer = new OuterGraph(() => leavesOf(root), this.#foreignTo, hooks.takesRows ?? false);
    this.#outer.open(this.#received);
  }

  /**
   * Runs `forward` as a call of `block`.
   * @param args - from the caller; tensors that require gradients are cut, the rest passes through
   * @returns the result of `forward`, its tensors cut
   * @throws {TroupeError} `BLOCK_TENSOR` for a tensor inside a class instance, on its way in or out
   */
  call<R>(
    block: number,
    forward: (...args: unknown[]) => R,
    args: readonly unknown[],
    { recompute, parts: openParts }: CallOptions,
  ): R {
    this.#hooks.need(block);
    const programs = presentRecording() === undefined ? this.#programs : undefined;
    const { args: cutArgs, inputs, inputLeaves, kept } = cutInputs(args, recompute || programs !== undefined);
    const own = this.#leavesOf(block);
    const root = this.#leavesOf(this.#root);
    const leaves = [...own, ...root];
    // If nothing requires a gradient there is nothing to recompute.
    const recomputes = recompute && (inputs.length > 0 || own.length > 0);
    const program = programs?.open(block, cutArgs, leaves);
    // A replay computes parts again by itself.
    const parts = program?.isReplayed === true ? undefined : openParts?.(inputLeaves, leaves);
    const again = () => forward(...cutArgs);
    const partLeaves = openParts && { own, root };
    const call = { block, inputs, inputLeaves, kept, again, parts, partLeaves, program };
    let cut: CutOutputs<R>;
    try {
      cut = program?.forward(again, recomputes) ?? cutOutputs(again, recomputes);
    } catch (error) {
      // For `clear` to release.
      this.#calls.push({ ...call, outputs: undefined, outputLeaves: [], tickets: [] });
      throw error;
    }
    const { result, outputs, outputLeaves } = cut;
    const tickets = recomputes ? this.#offload(inputs, inputLeaves) : [];
    this.#calls.push({ ...call, outputs, outputLeaves, tickets });
    this.#outer.open(outputLeaves);
    this.#hooks.release(block);
    return result;
  }

  /**
   * Walks the calls backwards and completes every called block exactly once, the root last.
   * @param roots - of the outer graph: the loss, or the tensors sent to the next stage
   * @param gradients - of the roots; left out for a scalar loss
   * @returns the gradients of the received tensors, in order, the caller's to dispose; null for unused ones
   * @throws {TroupeError} `BLOCK_TENSOR` for a tensor that left or entered a block otherwise than as a result or an argument,
   * if the tape checks
   */
  backward(roots: readonly Tensor[], gradients?: readonly (Tensor | null)[]): (Tensor | null)[] {
    const calls = this.#calls;
    const firstCall = new Map<number, BlockCall>();
    const firstUse = new Map<Tensor, BlockCall>();
    for (const call of calls) {
      if (!firstCall.has(call.block)) firstCall.set(call.block, call);
      for (const input of call.inputs) if (!firstUse.has(input)) firstUse.set(input, call);
    }
    this.#hooks.need(this.#root);
    roots.forEach((root, index) => {
      const gradient = gradients?.[index];
      if (gradient !== null) this.#pull(root, gradient);
    });
    for (let call = calls.at(-1); call !== undefined; call = calls.at(-1)) {
      const isLast = firstCall.get(call.block) === call;
      this.#placing(call, () => this.#backwardCall(call, isLast));
      if (isLast) this.#hooks.complete(call.block);
      this.#outer.close(call.outputLeaves);
      for (const input of new Set(call.inputs)) {
        if (firstUse.get(input) !== call || this.#outer.ends.has(input)) continue;
        const gradient = this.#outer.take(input);
        if (gradient !== undefined) this.#pull(input, gradient);
        gradient?.dispose();
        this.#forgetInput(input);
      }
      this.#forget(call);
      calls.pop();
    }
    this.#hooks.complete(this.#root);
    return this.#received.map((leaf) => this.#outer.take(leaf) ?? null);
  }

  clear(): void {
    for (const call of this.#calls.splice(0)) {
      this.#forget(call);
      for (const input of call.inputs) this.#forgetInput(input);
    }
    this.#outer.clear();
  }

  /** Follows a gradient through the outer graph, and adds what arrives at the root's parameters. */
  #pull(output: Tensor, gradient: Tensor | undefined): void {
    const ofRoot = this.#outer.pull(output, gradient);
    if (ofRoot === undefined) return;
    this.#hooks.contribute(this.#root, ofRoot.leaves, ofRoot.gradients);
    for (const tensor of ofRoot.gradients) tensor?.dispose();
  }

  /** Adds the block's name to an error of its backward, whose stack no longer shows the lines of forward. */
  #placing(call: BlockCall, walk: () => void): void {
    try {
      walk();
    } catch (error) {
      noteOrigin(error, { module: this.#hooks.name(call.block) });
      throw error;
    }
  }

  #backwardCall(call: BlockCall, isLast: boolean): void {
    const leaves = call.partLeaves?.own ?? this.#leavesOf(call.block);
    const outputGradients = call.outputLeaves.map((leaf) => this.#outer.take(leaf));
    if (outputGradients.every((gradient) => gradient === undefined)) {
      this.#hooks.contribute(
        call.block,
        leaves,
        leaves.map(() => null),
      );
      return;
    }
    this.#hooks.need(call.block);
    this.#bringInputs(call);
    const rootLeaves = call.partLeaves?.root ?? this.#leavesOf(this.#root);
    const own = [...call.inputLeaves, ...leaves, ...rootLeaves];
    const before = call.inputLeaves.length;
    const places = () =>
      (this.#hooks.placesOf?.(leaves, isLast) ?? []).map((place) => ({
        ...place,
        gradient: before + place.gradient,
      }));
    const gradients =
      call.program?.backward(outputGradients, own, places) ?? this.#walk(call, own, outputGradients);
    this.#hooks.release(call.block);
    const parameterGradients = gradients.slice(before, before + leaves.length);
    const ofRoot = gradients.slice(before + leaves.length);
    this.#hooks.contribute(call.block, leaves, parameterGradients);
    // A parameter that several blocks share is the root's.
    if (ofRoot.some((gradient) => gradient !== null)) this.#hooks.contribute(this.#root, rootLeaves, ofRoot);
    for (const tensor of [...outputGradients, ...parameterGradients, ...ofRoot]) tensor?.dispose();
    call.inputs.forEach((input, index) => {
      this.#outer.add(input, gradients[index]);
    });
  }

  /** The gradients of `own` by autograd, in order. @param outputGradients - of the call's outputs */
  #walk(
    call: BlockCall,
    own: readonly Tensor[],
    outputGradients: readonly (Tensor | undefined)[],
  ): (Tensor | null)[] {
    const outputs = call.outputs ?? call.program?.computeAgain(call) ?? computeAgain(call);
    const foreign = this.#foreignTo(call, this.#outer.ends);
    const reached = outputs.map(
      (output, index) => output.requiresGrad && outputGradients[index] !== undefined,
    );
    const roots = outputs.filter((_, index) => reached[index]);
    const rootGradients = outputGradients.filter((_, index) => reached[index]) as Tensor[];
    // Parameters that were trainable in forward may be frozen by now, and nothing be left to walk.
    const isCut = roots.length === 0 || own.length + foreign.length === 0;
    const walk = () =>
      call.parts?.backward(roots, rootGradients) ??
      grad(roots, [...own, ...foreign], rootGradients, { allowUnused: true });
    const gradients = isCut
      ? own.map(() => null)
      : (call.program?.walk(rootGradients, reachedBy(outputGradients), walk) ?? walk());
    refuseForeign(gradients.splice(own.length), `block ${this.#hooks.name(call.block)}`);
    if (call.outputs === undefined) for (const output of outputs) output.dispose();
    return gradients;
  }

  /** Offloads inputs that only this call reads: they are not needed until it is recomputed. */
  #offload(inputs: readonly Tensor[], inputLeaves: readonly Tensor[]): unknown[] {
    const offloader = this.#offloader;
    if (offloader === undefined) return [];
    return inputs.flatMap((input, index) => {
      const ticket = offloader.keep([input, inputLeaves[index] as Tensor]);
      return ticket === undefined ? [] : [ticket];
    });
  }

  /** Brings a call's inputs back; those of the call before it are prefetched while this one is walked. */
  #bringInputs(call: BlockCall): void {
    for (const ticket of call.tickets.splice(0)) this.#offloader?.bring(ticket);
    const before = this.#calls[this.#calls.indexOf(call) - 1];
    for (const ticket of before?.tickets ?? []) this.#offloader?.expect(ticket);
  }

  #forget(call: BlockCall): void {
    for (const ticket of call.tickets.splice(0)) this.#offloader?.drop(ticket);
    forgetCall(call);
  }

  /** A root parameter or a received tensor may be a block's input too, and outlives the walk. */
  #forgetInput(input: Tensor): void {
    if (!this.#hooks.isParameter(input) && !this.#received.includes(input)) input.dispose();
  }
}
