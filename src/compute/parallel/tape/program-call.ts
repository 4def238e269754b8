import type { Randomness } from "../../nn/index.ts";
import {
  beginRecording,
  dropCall,
  dropProgram,
  dropRecording,
  endForward,
  endProgram,
  type GradientPlace,
  hold,
  playBackward,
  playForward,
  playForwardAgain,
  programDifference,
  programFits,
  recordBackward,
  type Tensor,
} from "../../tensor/index.ts";
import {
  type BlockCall,
  type CallProgram,
  type CutOutputs,
  computeAgain,
  cutOutputs,
  isFloating,
} from "./block-call.ts";
import { describePlain } from "./describe-plain.ts";
import { mapLeaves, mapTensors } from "./map-tensors.ts";

const NOT_PLAIN = "a result that is neither a tensor nor plain data";

/** The kind of a call: all but its values. */
export interface CallKind {
  /** The arguments without their tensors, and the settings of the block's modules. */
  readonly kind: string;
  /** Whether no gradients are wanted. */
  readonly isAlone: boolean;
  /** Trainable parameters of the block, then of the root. */
  readonly leaves: readonly Tensor[];
  /** The arguments' tensors, cut, and others that change from call to call. */
  readonly tensors: readonly Tensor[];
  /** Lists of tensors that operators of Troupe's take, of any lengths. */
  readonly lists: readonly (readonly Tensor[])[];
}

/** The parts of a recorded forward besides operators. */
interface ForwardHalf {
  /** Names of the draws, in order. */
  readonly draws: readonly string[];
  /** The result, with the place of each tensor in the program's results instead of the tensor. */
  readonly template: unknown;
  /** The result's template as text. */
  readonly text: string;
  /** Which results the outer graph follows. */
  readonly leaves: readonly boolean[];
}

/** A program and the calls it is for. */
export class Kept {
  readonly program: number;
  readonly forward: ForwardHalf;
  /** The outputs that had gradients: a letter each. */
  readonly reached: string;
  /** Tensors that backward gives gradients of, besides the call's inputs. */
  readonly #leaves: readonly Tensor[];
  readonly #kind: string;
  /** Whether it is forward alone. */
  readonly isAlone: boolean;
  /** Padding positions behind the call, where ranks share positions. */
  readonly padding: number | undefined;
  /** Whether a second recording came to the same. */
  isSure = false;
  /** Whether it was replayed. */
  isUsed = false;

  constructor(
    program: number,
    { kind, isAlone, leaves }: CallKind,
    forward: ForwardHalf,
    { reached, padding }: { readonly reached: string; readonly padding: number | undefined },
  ) {
    this.program = program;
    this.forward = forward;
    this.reached = reached;
    this.padding = padding;
    this.isAlone = isAlone;
    this.#kind = kind;
    this.#leaves = leaves;
  }

  isFor({ kind, leaves, tensors }: CallKind): boolean {
    return this.#kind === kind && areSame(this.#leaves, leaves) && programFits(this.program, tensors);
  }
}

/** Positions that ranks share: the padding at their end, which modules read and set. */
export interface SharedPositions {
  numPadding: number;
}

/** Calls of blocks that were replayed or recorded. */
export interface BlockCalls {
  replayed: number;
  /** A program is replayed once two recordings of one kind of call agree. */
  recorded: number;
  /** Time of the recorded calls, their computation included. */
  recordMs: number;
}

/** Where the programs of a model's blocks are kept. */
export interface ProgramStore {
  readonly calls: BlockCalls;
  readonly randomness: Randomness | undefined;
  readonly region: SharedPositions | undefined;
  /** Parameters and buffers that stay where they are from call to call: the block's own and the root's. */
  boundOf(block: number): readonly Tensor[];
  /** Keeps a program, unless its block was refused meanwhile. */
  keep(block: number, kept: Kept): void;
  /** Replays a program from now on: a second recording came to the same. */
  confirm(block: number, kept: Kept): void;
  /** Issues a block's calls of this kind, with gradients or without, one operator at a time from now on. */
  refuse(block: number, isAlone: boolean, reason: string | Error): void;
  /** Whether operators may take more lists than when the call began. */
  hasNewLists(block: number, call: CallKind): boolean;
  /** @returns a program of the same kind of call */
  twin(block: number, call: CallKind): Kept | undefined;
}

/** One call of a block that is replayed or recorded. */
export class ProgramCall implements CallProgram {
  readonly #programs: ProgramStore;
  readonly #block: number;
  readonly #kind: CallKind;
  /** The program that the call replays; undefined while it is recorded. */
  readonly #kept: Kept | undefined;
  /** The draws before the call, from which it is computed again. */
  readonly #drawn: ReadonlyMap<string, number> | undefined;
  /** Padding before the call, and behind it. */
  readonly #paddingBefore: number | undefined;
  #padding: number | undefined;
  #streams: readonly number[] = [];
  #played = 0;
  #recording = 0;
  #half: ForwardHalf | undefined;

  constructor(programs: ProgramStore, block: number, kind: CallKind & { readonly kept: Kept | undefined }) {
    this.#programs = programs;
    this.#block = block;
    this.#kind = kind;
    this.#kept = kind.kept?.isSure === true ? kind.kept : undefined;
    this.#drawn = programs.randomness?.drawn();
    this.#paddingBefore = programs.region?.numPadding;
  }

  /** Whether a program computes it. */
  get isReplayed(): boolean {
    return this.#kept !== undefined;
  }

  /** Computes forward, as `cutOutputs` does. @param again - whether backward computes it again */
  forward<R>(run: () => R, again: boolean): CutOutputs<R> {
    const kept = this.#kept;
    if (kept === undefined) {
      const cut = cutOutputs(
        again ? run : () => this.#recorded(run, ({ requiresGrad }) => requiresGrad),
        again,
      );
      this.#padding = this.#programs.region?.numPadding;
      return cut;
    }
    const results = this.#replayed(kept, !again);
    const { template, leaves } = kept.forward;
    const result = mapPlaces(template, results) as R;
    const outputLeaves = results.filter((_, index) => leaves[index]).map((leaf) => hold(leaf));
    return { result, outputs: undefined, outputLeaves };
  }

  /** Computes a call without gradients. */
  compute<R>(run: () => R): R {
    const kept = this.#kept;
    if (kept !== undefined) return mapPlaces(kept.forward.template, this.#replayed(kept, false)) as R;
    const result = this.#recorded(run, () => false);
    this.#padding = this.#programs.region?.numPadding;
    const [recording, half] = [this.#recording, this.#half];
    if (recording === 0 || half === undefined) return result;
    if (this.#programs.hasNewLists(this.#block, this.#kind)) this.drop();
    else this.#take(endProgram(recording), half, "");
    this.#recording = 0;
    return result;
  }

  backward(
    given: readonly (Tensor | undefined)[],
    own: readonly Tensor[],
    places: () => readonly GradientPlace[],
  ): (Tensor | null)[] | undefined {
    const kept = this.#kept;
    if (kept === undefined) return undefined;
    const leaves = own.slice(own.length - this.#kind.leaves.length);
    if (kept.reached !== reachedBy(given) || !areSame(leaves, this.#kind.leaves)) {
      this.#refuse("gradients of other results than were recorded, or parameters frozen since forward");
      return undefined;
    }
    const { tensors, lists } = this.#kind;
    // A program that another one has replaced since forward cannot be replayed again.
    if (this.#played === 0 && this.#programs.twin(this.#block, this.#kind) !== kept) return undefined;
    const call = this.#played || playForwardAgain(kept.program, tensors, this.#streams, lists);
    this.#played = 0;
    const recorded = given.filter((gradient) => gradient !== undefined);
    const gradients = playBackward(call, recorded, own.length, places());
    if (gradients === undefined) this.#refuse("gradients that lie in memory otherwise than recorded ones");
    return gradients;
  }

  computeAgain(call: BlockCall): Tensor[] {
    if (this.#kept !== undefined) return this.#asBefore(() => computeAgain(call));
    return computeAgain({ ...call, again: () => this.#recorded(call.again, isFloating) });
  }

  walk(given: readonly Tensor[], reached: string, walk: () => (Tensor | null)[]): (Tensor | null)[] {
    const [recording, half] = [this.#recording, this.#half];
    // An output may have a gradient that leads nowhere.
    const leadsOn = given.length === [...reached].filter((letter) => letter === "g").length;
    if (recording === 0 || half === undefined || !leadsOn) return walk();
    this.#recording = 0;
    const beginMs = performance.now();
    const { gradients, program } = recordBackward(recording, given, walk);
    this.#take(program, half, reached);
    this.#programs.calls.recordMs += performance.now() - beginMs;
    return gradients;
  }

  drop(): void {
    if (this.#recording !== 0) dropRecording(this.#recording);
    if (this.#played !== 0) dropCall(this.#played);
    this.#recording = this.#played = 0;
  }

  /** Runs what the module computed before a replay did: its first draws and its padding are to be those of that forward. */
  #asBefore<R>(body: () => R): R {
    const { randomness, region } = this.#programs;
    const present = region?.numPadding;
    if (region !== undefined && this.#paddingBefore !== undefined) region.numPadding = this.#paddingBefore;
    try {
      return randomness === undefined || this.#drawn === undefined
        ? body()
        : randomness.drawnFrom(this.#drawn, body);
    } finally {
      if (region !== undefined && present !== undefined) region.numPadding = present;
    }
  }

  #take(made: number | string | Error, half: ForwardHalf, reached: string): void {
    if (typeof made === "number")
      this.#keep(new Kept(made, this.#kind, half, { reached, padding: this.#padding }));
    else this.#refuse(made);
  }

  #refuse(reason: string | Error): void {
    this.#programs.refuse(this.#block, this.#kind.isAlone, reason);
  }

  /** Keeps a recorded program, or confirms an earlier one. */
  #keep(made: Kept): void {
    const before = this.#programs.twin(this.#block, this.#kind);
    if (before === undefined) {
      this.#programs.keep(this.#block, made);
      return;
    }
    // A third recording was under way when two agreed.
    if (before.isSure) {
      dropProgram(made.program);
      return;
    }
    const difference = isSame(before, made)
      ? programDifference(before.program, made.program)
      : "other results";
    dropProgram(made.program);
    if (difference === "") this.#programs.confirm(this.#block, before);
    else this.#refuse(`two calls that differ: ${difference}`);
  }

  /** Replays forward as the module would have computed it, its draws and padding included. */
  #replayed(kept: Kept, keep: boolean): Tensor[] {
    const { randomness, region } = this.#programs;
    this.#streams = kept.forward.draws.map((name) => randomness?.nextStream(name) ?? 0);
    const { tensors, lists } = this.#kind;
    const { results, call } = playForward(
      kept.program,
      tensors,
      this.#streams,
      kept.forward.leaves,
      keep,
      lists,
    );
    this.#played = call;
    if (region !== undefined && kept.padding !== undefined) region.numPadding = kept.padding;
    kept.isUsed = true;
    this.#programs.calls.replayed += 1;
    return results;
  }

  #recorded<R>(run: () => R, isLeaf: (tensor: Tensor) => boolean): R {
    const { randomness } = this.#programs;
    const names: string[] = [];
    const streams: number[] = [];
    const { calls } = this.#programs;
    const beginMs = performance.now();
    const { tensors: given, lists } = this.#kind;
    this.#recording = beginRecording(given, this.#programs.boundOf(this.#block), lists);
    try {
      const listen = (name: string, stream: number) => {
        names.push(name);
        streams.push(stream);
      };
      const result = randomness === undefined ? run() : randomness.listening(listen, run);
      const tensors: Tensor[] = [];
      const text = describePlain(result, tensors);
      let place = 0;
      const template = mapTensors(result, () => new Place(place++));
      const refusal = endForward(this.#recording, tensors, streams) || (text === undefined ? NOT_PLAIN : "");
      this.#half = { draws: names, template, text: text ?? "", leaves: tensors.map(isLeaf) };
      if (refusal !== "") {
        this.drop();
        this.#refuse(refusal);
      }
      return result;
    } catch (error) {
      this.drop();
      throw error;
    } finally {
      calls.recorded += 1;
      calls.recordMs += performance.now() - beginMs;
    }
  }
}

/** Stands for a tensor of a result. */
class Place {
  readonly index: number;

  constructor(index: number) {
    this.index = index;
  }
}

/** @returns which of a call's outputs have gradients, a letter each */
export function reachedBy(gradients: readonly unknown[]): string {
  return gradients.map((gradient) => (gradient === undefined ? "-" : "g")).join("");
}

function mapPlaces(template: unknown, results: readonly Tensor[]): unknown {
  return mapLeaves(template, (leaf) => (leaf instanceof Place ? results[leaf.index] : leaf));
}

function isSame(one: Kept, other: Kept): boolean {
  const facts = [one, other].map(({ forward: { draws, text, leaves }, reached }) =>
    JSON.stringify([draws, text, leaves, reached]),
  );
  return facts[0] === facts[1];
}

function areSame(ones: readonly Tensor[], others: readonly Tensor[]): boolean {
  return ones.length === others.length && ones.every((one, index) => one === others[index]);
}
