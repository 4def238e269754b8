import { noteOrigin } from "../../../errors/index.ts";
import { grad, type Tensor } from "../../tensor/index.ts";
import {
  type BlockCall,
  computeAgain,
  cutInputs,
  cutOutputs,
  forgetCall,
  type PartTape,
} from "./block-call.ts";
import type { Offloader } from "./offloader.ts";
import { OuterGraph } from "./outer-graph.ts";
import { refuseForeign, TapeChecks } from "./tape-checks.ts";

/** What the tape tells and asks the engine around each block. Blocks are named by their index. */
export interface BlockHooks {
  /** Called before a block computes, forward and backward: returns once its parameters are whole. */
  need(block: number): void;
  /** The block's parameters are not needed for now. */
  release(block: number): void;
  /** Adds gradients of leaves to the block's; `null` where one was not used. */
  contribute(block: number, leaves: readonly Tensor[], gradients: readonly (Tensor | null)[]): void;
  /** Nothing more will be contributed to the block in this pass. */
  whole(block: number): void;
  /** Whether a tensor is a parameter, which outlives the pass. */
  isParameter(tensor: Tensor): boolean;
  /** @returns the block's name, for errors */
  name(block: number): string;
}

/** How a block is called. */
export interface CallOptions {
  /** Whether what forward computes inside is let go and computed again in backward. */
  readonly recompute: boolean;
  /** Where parts of the block are: opens a tape for this call, on which `forward` records them. Default: none. */
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
  /** Leaves that an earlier stage computed: their gradients are the caller's. */
  readonly #received: readonly Tensor[];
  /** None where nothing is checked. */
  readonly #checks: TapeChecks | undefined;
  readonly #outer: OuterGraph;

  /**
   * @param root - index of the block that owns what no block owns
   * @param leavesOf - a block's parameters that are trainable now, bound
   * @param options.received - leaves that come from outside the pass; default none
   * @param options.checks - of how many blocks, the root included, to look for gradients that would be lost, for which all
   *   parameters are named in every call's backward: what a model does wrong it does in its first pass, so one is enough. Not
   *   looked for unless told otherwise
   * @param options.offloader - where the inputs of what is computed again rest until then; default they stay
   */
  constructor(
    hooks: BlockHooks,
    root: number,
    leavesOf: (block: number) => readonly Tensor[],
    options: {
      readonly received?: readonly Tensor[];
      readonly checks?: number | undefined;
      readonly offloader?: Offloader | undefined;
    } = {},
  ) {
    this.#hooks = hooks;
    this.#root = root;
    this.#leavesOf = leavesOf;
    this.#received = options.received ?? [];
    this.#offloader = options.offloader;
    const { checks } = options;
    this.#checks = checks === undefined ? undefined : new TapeChecks(this.#calls, root, checks, leavesOf);
    this.#outer = new OuterGraph(() => leavesOf(root), this.#checks);
    this.#outer.open(this.#received);
  }

  /**
   * Runs `forward` as a call of `block`.
   * @param args - what the caller passed; tensors that require gradients are cut, the rest passes through
   * @returns what `forward` returned, its tensors cut
   * @throws {TroupeError} `BLOCK_TENSOR` for a tensor inside a class instance, on its way in or out
   */
  call<R>(
    block: number,
    forward: (...args: unknown[]) => R,
    args: readonly unknown[],
    { recompute, parts: openParts }: CallOptions,
  ): R {
    this.#hooks.need(block);
    const { args: cutArgs, inputs, inputLeaves, kept } = cutInputs(args, recompute);
    // Where nothing asks for a gradient there is nothing to compute again.
    const again = recompute && (inputs.length > 0 || this.#leavesOf(block).length > 0);
    const partLeaves = openParts && { own: this.#leavesOf(block), root: this.#leavesOf(this.#root) };
    const parts = partLeaves && openParts?.(inputLeaves, [...partLeaves.own, ...partLeaves.root]);
    const run = () => forward(...cutArgs);
    const { result, outputs, outputLeaves } = cutOutputs(run, again);
    const tickets = again ? this.#offload(inputs, inputLeaves) : [];
    this.#calls.push({
      block,
      inputs,
      inputLeaves,
      outputs,
      outputLeaves,
      kept,
      again: run,
      tickets,
      parts,
      partLeaves,
    });
    this.#outer.open(outputLeaves);
    this.#hooks.release(block);
    return result;
  }

  /**
   * Walks the calls backwards; every block that was called is told `whole` exactly once, the root last.
   * @param roots - of the outer graph: the loss, or what the next stage received
   * @param gradients - of the roots; left out for a scalar loss
   * @returns the gradients of what was received, in order, the caller's to dispose; null where it was not used
   * @throws {TroupeError} `BLOCK_TENSOR` for a tensor that came out of a block, or into one, past its results and arguments,
   *   where the tape checks
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
      this.#placing(call, () => this.#backwardCall(call));
      if (firstCall.get(call.block) === call) this.#hooks.whole(call.block);
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
    this.#hooks.whole(this.#root);
    return this.#received.map((leaf) => this.#outer.take(leaf) ?? null);
  }

  /** Gives up a pass that will not be walked. */
  clear(): void {
    for (const call of this.#calls.splice(0)) {
      this.#forget(call);
      for (const input of call.inputs) this.#forgetInput(input);
    }
    this.#outer.clear();
  }

  /** Follows a gradient through the outer graph, and adds what it comes to at the root's parameters. */
  #pull(output: Tensor, gradient: Tensor | undefined): void {
    const ofRoot = this.#outer.pull(output, gradient);
    if (ofRoot === undefined) return;
    this.#hooks.contribute(this.#root, ofRoot.leaves, ofRoot.gradients);
    for (const tensor of ofRoot.gradients) tensor?.dispose();
  }

  /** Notes the block's name with an error of its backward, whose stack no longer shows the lines of forward. */
  #placing(call: BlockCall, walk: () => void): void {
    try {
      walk();
    } catch (error) {
      noteOrigin(error, { module: this.#hooks.name(call.block) });
      throw error;
    }
  }

  #backwardCall(call: BlockCall): void {
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
    const outputs = call.outputs ?? computeAgain(call);
    const rootLeaves = call.partLeaves?.root ?? this.#leavesOf(this.#root);
    const own = [...call.inputLeaves, ...leaves, ...rootLeaves];
    const foreign = this.#checks?.foreignTo(call, this.#outer.ends) ?? [];
    const reached = outputs.map(
      (output, index) => output.requiresGrad && outputGradients[index] !== undefined,
    );
    const roots = outputs.filter((_, index) => reached[index]);
    const rootGradients = outputGradients.filter((_, index) => reached[index]) as Tensor[];
    // What was trainable in forward may be frozen by now, and nothing be left to walk.
    const isCut = roots.length === 0 || own.length + foreign.length === 0;
    const gradients = isCut
      ? own.map(() => null)
      : (call.parts?.backward(roots, rootGradients) ??
        grad(roots, [...own, ...foreign], rootGradients, { allowUnused: true }));
    refuseForeign(gradients.splice(own.length), `block ${this.#hooks.name(call.block)}`);
    this.#hooks.release(call.block);
    if (call.outputs === undefined) for (const output of outputs) output.dispose();
    const parameterGradients = gradients.slice(
      call.inputLeaves.length,
      call.inputLeaves.length + leaves.length,
    );
    const ofRoot = gradients.slice(call.inputLeaves.length + leaves.length);
    this.#hooks.contribute(call.block, leaves, parameterGradients);
    // A parameter that several blocks share is the root's.
    if (ofRoot.some((gradient) => gradient !== null)) this.#hooks.contribute(this.#root, rootLeaves, ofRoot);
    for (const tensor of [...outputGradients, ...parameterGradients, ...ofRoot]) tensor?.dispose();
    call.inputs.forEach((input, index) => {
      this.#outer.add(input, gradients[index]);
    });
  }

  /** Lets go of the memory of inputs that only this call reads: all are of no use until it is computed again. */
  #offload(inputs: readonly Tensor[], inputLeaves: readonly Tensor[]): unknown[] {
    const offloader = this.#offloader;
    if (offloader === undefined) return [];
    return inputs.flatMap((input, index) => {
      const ticket = offloader.keep([input, inputLeaves[index] as Tensor]);
      return ticket === undefined ? [] : [ticket];
    });
  }

  /** A call's inputs are brought back; those of the call before it are on their way while this one is walked. */
  #bringInputs(call: BlockCall): void {
    for (const ticket of call.tickets.splice(0)) this.#offloader?.bring(ticket);
    const before = this.#calls[this.#calls.indexOf(call) - 1];
    for (const ticket of before?.tickets ?? []) this.#offloader?.expect(ticket);
  }

  #forget(call: BlockCall): void {
    for (const ticket of call.tickets.splice(0)) this.#offloader?.drop(ticket);
    forgetCall(call);
  }

  /** A root parameter or what was received may be a block's input too, and outlives the walk. */
  #forgetInput(input: Tensor): void {
    if (!this.#hooks.isParameter(input) && !this.#received.includes(input)) input.dispose();
  }
}
