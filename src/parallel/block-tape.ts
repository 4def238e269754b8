import { grad, hold, ops, type Tensor, Tensor as TensorClass } from "../tensor/index.ts";

/** What the tape tells and asks the engine around each block. Blocks are named by their index. */
export interface BlockHooks {
  /** Called before a block computes, forward and backward: returns once its parameters are whole. */
  need(block: number): void;
  /** The block's parameters are not needed for now. */
  release(block: number): void;
  /** Adds gradients to the block's, in the order of its parameters; `null` where a parameter was not used. */
  contribute(block: number, gradients: readonly (Tensor | null)[]): void;
  /** Nothing more will be contributed to the block in this pass. */
  whole(block: number): void;
}

/** One call of a block in forward: its own autograd graph, from cut inputs and parameter leaves to outputs. */
interface Call {
  readonly block: number;
  /** What the caller passed: an output of an earlier block, or a tensor of the outer graph. */
  readonly inputs: readonly Tensor[];
  readonly inputLeaves: readonly Tensor[];
  readonly outputs: readonly Tensor[];
  /** What the caller received: the outputs, detached; leaves of the outer graph. */
  readonly outputLeaves: readonly Tensor[];
}

/**
 * Records the block calls of one forward pass and walks them backwards.
 *
 * A block's inputs and outputs are cut from the outer graph, so that each call is an autograd graph of its own. The
 * walk runs one call's backward, hands its parameter gradients on at once, and so overlaps their reduction with the
 * next call's backward, with no hook from native code. What lies between the blocks (embeddings, the loss) is ordinary
 * autograd over root parameters and block outputs. A tensor that several blocks read gathers its gradient until its
 * first use in forward order is reached: only then is the sum complete.
 */
export class BlockTape {
  readonly #hooks: BlockHooks;
  readonly #root: number;
  readonly #rootLeaves: () => readonly Tensor[];
  readonly #calls: Call[] = [];
  /** Gradients of tensors outside the blocks, by identity. */
  readonly #gradients = new Map<Tensor, Tensor>();

  /**
   * @param root - index of the block that owns what no block owns
   * @param rootLeaves - its parameters, bound
   */
  constructor(hooks: BlockHooks, root: number, rootLeaves: () => readonly Tensor[]) {
    this.#hooks = hooks;
    this.#root = root;
    this.#rootLeaves = rootLeaves;
  }

  /**
   * Runs `forward` as a call of `block`.
   * @param args - what the caller passed; tensors that require gradients are cut, the rest passes through
   * @returns what `forward` returned, its tensors cut
   */
  call<R>(block: number, forward: (...args: unknown[]) => R, args: readonly unknown[]): R {
    this.#hooks.need(block);
    const inputs: Tensor[] = [];
    const inputLeaves: Tensor[] = [];
    const cutArgs = mapTensors(args, (tensor) => {
      if (!tensor.requiresGrad) return tensor;
      const leaf = hold(tensor.detach().requiresGrad_());
      inputs.push(hold(tensor));
      inputLeaves.push(leaf);
      return leaf;
    }) as unknown[];
    const outputs: Tensor[] = [];
    const outputLeaves: Tensor[] = [];
    const result = mapTensors(forward(...cutArgs), (tensor) => {
      if (!tensor.requiresGrad) return tensor;
      const leaf = hold(tensor.detach().requiresGrad_());
      outputs.push(hold(tensor));
      outputLeaves.push(leaf);
      return leaf;
    }) as R;
    this.#calls.push({ block, inputs, inputLeaves, outputs, outputLeaves });
    this.#hooks.release(block);
    return result;
  }

  /**
   * Walks the calls backwards from `loss`; every block is told `whole` exactly once, the root last.
   * @param loss - scalar, of the outer graph
   * @param leavesOf - a block's parameters, bound
   */
  backward(loss: Tensor, leavesOf: (block: number) => readonly Tensor[]): void {
    const calls = this.#calls;
    const firstCall = new Map<number, Call>();
    const firstUse = new Map<Tensor, Call>();
    for (const call of calls) {
      if (!firstCall.has(call.block)) firstCall.set(call.block, call);
      for (const input of call.inputs) if (!firstUse.has(input)) firstUse.set(input, call);
    }
    this.#hooks.need(this.#root);
    const made = new Set(calls.flatMap((call) => call.outputLeaves));
    this.#pullOuter(loss, undefined, made);
    for (let call = calls.at(-1); call !== undefined; call = calls.at(-1)) {
      this.#backwardCall(call, leavesOf(call.block));
      if (firstCall.get(call.block) === call) this.#hooks.whole(call.block);
      for (const leaf of call.outputLeaves) made.delete(leaf);
      for (const input of new Set(call.inputs)) {
        if (firstUse.get(input) !== call || made.has(input)) continue;
        const gradient = this.#take(input);
        if (gradient !== undefined) this.#pullOuter(input, gradient, made);
        gradient?.dispose();
        this.#forgetInput(input);
      }
      forget(call);
      calls.pop();
    }
    this.#hooks.whole(this.#root);
  }

  /** Gives up a pass that will not be walked. */
  clear(): void {
    for (const call of this.#calls.splice(0)) {
      forget(call);
      for (const input of call.inputs) this.#forgetInput(input);
    }
    for (const gradient of this.#gradients.values()) gradient.dispose();
    this.#gradients.clear();
  }

  #backwardCall(call: Call, leaves: readonly Tensor[]): void {
    const roots: Tensor[] = [];
    const rootGradients: Tensor[] = [];
    call.outputs.forEach((output, index) => {
      const gradient = this.#take(call.outputLeaves[index] as Tensor);
      if (gradient === undefined) return;
      roots.push(output);
      rootGradients.push(gradient);
    });
    if (roots.length === 0) {
      this.#hooks.contribute(
        call.block,
        leaves.map(() => null),
      );
      return;
    }
    this.#hooks.need(call.block);
    const rootLeaves = this.#rootLeaves();
    const wanted = [...call.inputLeaves, ...leaves, ...rootLeaves];
    const gradients = grad(roots, wanted, rootGradients, { allowUnused: true });
    this.#hooks.release(call.block);
    const parameterGradients = gradients.slice(
      call.inputLeaves.length,
      call.inputLeaves.length + leaves.length,
    );
    const ofRoot = gradients.slice(call.inputLeaves.length + leaves.length);
    this.#hooks.contribute(call.block, parameterGradients);
    // A parameter that several blocks share is the root's.
    if (ofRoot.some((gradient) => gradient !== null)) this.#hooks.contribute(this.#root, ofRoot);
    for (const tensor of [...rootGradients, ...parameterGradients, ...ofRoot]) tensor?.dispose();
    call.inputs.forEach((input, index) => {
      this.#add(input, gradients[index]);
    });
  }

  /** Ordinary autograd between the blocks: from `output` to block outputs and root parameters. */
  #pullOuter(output: Tensor, gradient: Tensor | undefined, made: ReadonlySet<Tensor>): void {
    const rootLeaves = this.#rootLeaves();
    const outer = [...made];
    // Two block inputs may share a piece of the outer graph, so it must outlive one walk; it dies with its tensors.
    const gradients = grad([output], [...outer, ...rootLeaves], gradient && [gradient], {
      allowUnused: true,
      retainGraph: true,
    });
    const rootGradients = gradients.slice(outer.length);
    this.#hooks.contribute(this.#root, rootGradients);
    for (const tensor of rootGradients) tensor?.dispose();
    outer.forEach((leaf, index) => {
      this.#add(leaf, gradients[index]);
    });
  }

  #add(tensor: Tensor, gradient: Tensor | null | undefined): void {
    if (gradient === null || gradient === undefined) return;
    const sum = this.#gradients.get(tensor);
    // Out of place: autograd may hand one tensor to several inputs.
    this.#gradients.set(tensor, hold(sum === undefined ? gradient : ops.add(sum, gradient)));
    if (sum !== undefined) {
      sum.dispose();
      gradient.dispose();
    }
  }

  /** A root parameter may be a block's input too, and outlives the pass. */
  #forgetInput(input: Tensor): void {
    if (!this.#rootLeaves().includes(input)) input.dispose();
  }

  #take(tensor: Tensor): Tensor | undefined {
    const gradient = this.#gradients.get(tensor);
    this.#gradients.delete(tensor);
    return gradient;
  }
}

function forget(call: Call): void {
  for (const tensor of [...call.inputLeaves, ...call.outputs, ...call.outputLeaves]) tensor.dispose();
}

/** @returns `value` with `change` applied to every tensor in it: a tensor, or arrays and plain objects of them */
export function mapTensors(value: unknown, change: (tensor: Tensor) => Tensor): unknown {
  if (value instanceof TensorClass) return change(value);
  if (Array.isArray(value)) return value.map((item) => mapTensors(item, change));
  if (value !== null && typeof value === "object" && Object.getPrototypeOf(value) === Object.prototype) {
    return Object.fromEntries(Object.entries(value).map(([key, item]) => [key, mapTensors(item, change)]));
  }
  return value;
}
