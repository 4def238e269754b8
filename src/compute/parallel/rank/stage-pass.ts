import { TroupeError } from "../../../errors/index.ts";
import { hold, ops, type Tensor } from "../../tensor/index.ts";
import type { BlockRange } from "../layout/stage-cut.ts";
import { mapTensors } from "../tape/map-tensors.ts";

/** Ends a forward pass where the next stage goes on: not an error, and met by nobody but the engine. */
export class StageEnd {
  readonly pass: StagePass;

  constructor(pass: StagePass) {
    this.pass = pass;
  }
}

/**
 * One run of the whole forward of a model of which only some blocks are computed here. What comes before them runs on
 * placeholders, tensors without memory; at the first of them what the stage before has sent takes their place; and at
 * the first block behind them the run ends, with the arguments of that block as what is to be sent. A stage that has the
 * model's end alone gets what the last block returns.
 */
export class StagePass {
  readonly #range: BlockRange;
  /** Calls of the whole model, where what follows them all is a stage of its own. */
  readonly #end: number | undefined;
  /** What the stage before has sent: every tensor among the arguments of the first block, in order. */
  readonly #arrived: readonly Tensor[];
  /** What stands in for a placeholder. */
  readonly #standIns = new Map<Tensor, Tensor>();
  #sent: readonly Tensor[] = [];
  #numCalls = 0;

  /** @param end - how many calls the model makes, where a stage has what follows them and none of them */
  constructor(range: BlockRange, arrived: readonly Tensor[], end?: number) {
    this.#range = range;
    this.#end = end;
    this.#arrived = arrived;
  }

  /** What the next stage receives: every tensor among the arguments of its first block; the caller's to dispose. */
  get sent(): readonly Tensor[] {
    return this.#sent;
  }

  /**
   * A block is about to be called, whichever: calls are counted.
   * @returns whether it is computed here, and with what
   * @throws {StageEnd} where the pass ends; {TroupeError} `PIPELINE_BOUNDARY` where a tensor that another stage has is
   *   not among what that stage sends
   */
  enter(args: readonly unknown[]): { readonly here: boolean; readonly args: unknown[] } {
    const position = this.#numCalls++;
    const { begin, end } = this.#range;
    if (position < begin) return { here: false, args: [...args] };
    if (position === begin && begin > 0) this.#match(args);
    const own = mapTensors(args, (tensor) => this.#standIn(tensor, position)) as unknown[];
    if (position < end) return { here: true, args: own };
    this.#send(own);
  }

  /**
   * A block that is computed here has returned `result`.
   * @throws {StageEnd} where it is the model's last, and what follows is another stage's
   */
  leave(result: unknown): void {
    if (this.#numCalls === this.#end) this.#send(result);
  }

  /** Whether all blocks have passed by, and the rest of the model is this stage's. */
  get isAtItsEnd(): boolean {
    return this.#numCalls === this.#end && this.#range.begin === this.#end;
  }

  /** @returns `result` of a block that is not computed here, with nothing in it that has memory but what has arrived of it */
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
    if (index !== this.#arrived.length) {
      throw boundaryError(`${this.#arrived.length} tensors among the block's arguments`, index);
    }
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

function isPlaceholder(tensor: Tensor): boolean {
  return tensor.device === "meta";
}

function boundaryError(expected: string, got: unknown): TroupeError {
  return new TroupeError(
    "PIPELINE_BOUNDARY",
    {
      where: "pipeline",
      expected,
      got: `${got}`,
      hint: "pass it through the blocks as an argument, or use fewer stages",
    },
    { fields: { got } },
  );
}
