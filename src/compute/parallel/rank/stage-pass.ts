import { TroupeError } from "../../../errors/index.ts";
import { hold, ops, type Tensor } from "../../tensor/index.ts";
import type { BlockRange } from "../layout/stage-cut.ts";
import { mapTensors } from "../tape/map-tensors.ts";

/** Thrown to end a forward pass where the next stage goes on: not an error, and caught by the engine alone. */
export class StageEnd {
  readonly pass: StagePass;

  constructor(pass: StagePass) {
    this.pass = pass;
  }
}

/**
 * One run of the complete forward of a model of which only some blocks are computed here. The part before them runs on
 * placeholders, tensors without memory; at the first of them the tensors from the stage before take their place; and at the
 * first block behind them the run ends, and that block's arguments are sent. A stage that has the model's end alone gets the
 * result of the last block.
 */
export class StagePass {
  readonly #calls: readonly number[];
  readonly #range: BlockRange;
  /** Number of block calls in the model, if the part after all of them is a stage of its own. */
  readonly #end: number | undefined;
  /** Tensors from the stage before: every tensor among the arguments of the first block, in order. */
  readonly #arrived: readonly Tensor[];
  /** The tensor in place of each placeholder. */
  readonly #standIns = new Map<Tensor, Tensor>();
  #sent: readonly Tensor[] = [];
  /** Number of calls so far, those that the forward leaves out included. */
  #numCalls = 0;
  #hasBegun = false;

  /**
   * @param calls - blocks in the order in which forward calls them. It may leave out calls, as of an encoder that has read all
   * @param end - the number of calls, if a stage has only the part after them
   */
  constructor(
    calls: readonly number[],
    range: BlockRange,
    arrived: readonly Tensor[],
    end: number | undefined,
  ) {
    this.#calls = calls;
    this.#range = range;
    this.#end = end;
    this.#arrived = arrived;
  }

  /** The tensors for the next stage: every tensor among the arguments of its first block; the caller's to dispose. */
  get sent(): readonly Tensor[] {
    return this.#sent;
  }

  /**
   * Counts a call of a block, by its position in the model.
   * @returns whether it is computed here, and its arguments
   * @throws {StageEnd} where the pass ends; {TroupeError} `PIPELINE_BOUNDARY` if a tensor of another stage is not among those
   * that the stage sends
   */
  enter(block: number, args: readonly unknown[]): { readonly here: boolean; readonly args: unknown[] } {
    const next = this.#calls.indexOf(block, this.#numCalls);
    const position = next < 0 ? this.#numCalls : next;
    this.#numCalls = position + 1;
    const { begin, end } = this.#range;
    if (position < begin) return { here: false, args: [...args] };
    if (!this.#hasBegun && begin > 0) this.#match(args);
    this.#hasBegun = true;
    const own = mapTensors(args, (tensor) => this.#standIn(tensor, position)) as unknown[];
    if (position < end) return { here: true, args: own };
    this.#send(own);
  }

  /**
   * Takes the result of a block that is computed here.
   * @throws {StageEnd} if it is the model's last, and another stage has the part after it
   */
  leave(result: unknown): void {
    if (this.#numCalls === this.#end) this.#send(result);
  }

  /** Whether all blocks have passed by, and the rest of the model is this stage's. */
  get isAtItsEnd(): boolean {
    return this.#numCalls === this.#end && this.#range.begin === this.#end;
  }

  /** @returns `result` of a block that is not computed here, without memory except for tensors that have arrived */
  shapeOf(result: unknown): unknown {
    let index = 0;
    const shapes = mapTensors(result, (tensor) => {
      const arrived = this.isAtItsEnd ? this.#arrived[index++] : undefined;
      if (arrived !== undefined) return arrived;
      return isPlaceholder(tensor) ? tensor : ops.troupe.placeholder(tensor.shape, tensor.dtype);
    });
    if (this.isAtItsEnd && index !== this.#arrived.length)
      throw boundaryError(`${this.#arrived.length} tensors among the last block's results`, index);
    return shapes;
  }

  /** @throws {TroupeError} `PIPELINE_BOUNDARY` for a result, such as a loss, that was computed without values */
  checkResult(result: unknown): void {
    mapTensors(result, (tensor) => {
      if (!isPlaceholder(tensor)) return tensor;
      throw boundaryError(
        "a result made of what the last block returns",
        "one that another stage's tensors enter",
      );
    });
  }

  #send(tensors: unknown): never {
    const sent: Tensor[] = [];
    mapTensors(tensors, (tensor) => {
      sent.push(hold(tensor.alias()));
      return tensor;
    });
    this.#sent = sent;
    throw new StageEnd(this);
  }

  #match(args: readonly unknown[]): void {
    let index = 0;
    mapTensors(args, (tensor) => {
      const arrived = this.#arrived[index++];
      if (isPlaceholder(tensor) && arrived !== undefined) this.#standIns.set(tensor, arrived);
      return tensor;
    });
    if (index !== this.#arrived.length)
      throw boundaryError(`${this.#arrived.length} tensors among the block's arguments`, index);
  }

  #standIn(tensor: Tensor, position: number): Tensor {
    if (this.#range.begin === 0 || !isPlaceholder(tensor)) return tensor;
    const standIn = this.#standIns.get(tensor);
    if (standIn !== undefined) return standIn;
    throw boundaryError(
      `call ${position} of a block to read only what it is given by the block before, or what is computed from the batch`,
      `a tensor of shape [${tensor.shape}] that only an earlier stage has`,
    );
  }
}

const isPlaceholder = (tensor: Tensor): boolean => tensor.device === "meta";

function boundaryError(expected: string, got: unknown): TroupeError {
  return new TroupeError("PIPELINE_BOUNDARY", {
    where: "pipeline",
    expected,
    got: `${got}`,
    hint: "pass it through the blocks as an argument, or use fewer stages",
    fields: { got },
  });
}
