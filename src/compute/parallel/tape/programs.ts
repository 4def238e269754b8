import { framesOf, ownFrames } from "../../../errors/index.ts";
import { isFused, type Module, type Randomness } from "../../nn/index.ts";
import {
  describeProgram,
  dropProgram,
  improveProgram,
  type ProgramText,
  type Tensor,
} from "../../tensor/index.ts";
import { describePlain } from "./describe-plain.ts";
import { type Kept, ProgramCall, type ProgramStore } from "./program-call.ts";

/** Programs that are kept of one block; the oldest is dropped for another. */
const MOST_OF_A_BLOCK = 4;

/** A block whose calls are issued one operator at a time, and why. */
export interface Unrecorded {
  /** Name of the block. */
  readonly block: string;
  readonly reason: string;
  /** The line of the user's code that was in the way, as `file:line:column`, if one was. */
  readonly line?: string | undefined;
}

/** A block whose calls are replayed, and its program. */
export interface RecordedProgram extends ProgramText {
  /** Name of the block. */
  readonly block: string;
}

/** Chooses how programs are improved, and takes what becomes of each block. */
export interface ProgramListener {
  /** Whether programs may have other bits where that is quicker. */
  readonly fast: boolean;
  /** Takes a program that is replayed from now on; of programs alike, one. */
  recorded(program: RecordedProgram): void;
  /** Takes each block that is not recorded, once. */
  unrecorded(block: Unrecorded): void;
}

/** A block as its programs see it. */
export interface RecordedBlock {
  readonly name: string;
  readonly module: Module;
  /** Parameters and buffers that stay where they are from call to call: the block's own and the root's. */
  readonly parameters: readonly Tensor[];
}

/**
 * Programs of a model's blocks: a block's operators are recorded twice for each kind of call, forward and backward, and from then
 * on replayed by one native call each, with the same bits. A block that cannot be recorded is issued one operator at a time, and
 * told once.
 */
export class BlockPrograms implements ProgramStore, Disposable {
  readonly randomness: Randomness | undefined;
  readonly #blockOf: (block: number) => RecordedBlock;
  readonly #listener: ProgramListener;
  readonly #blocks = new Map<number, RecordedBlock>();
  readonly #modules = new Map<number, readonly Module[]>();
  readonly #kept = new Map<number, Kept[]>();
  readonly #refused = new Set<number>();
  /** Programs that the listener has, as text. */
  readonly #told = new Set<string>();

  constructor(
    blockOf: (block: number) => RecordedBlock,
    randomness: Randomness | undefined,
    listener: ProgramListener,
  ) {
    this.#blockOf = blockOf;
    this.randomness = randomness;
    this.#listener = listener;
  }

  /**
   * @param args - of the call, cut
   * @param leaves - trainable parameters of the block, then of the root
   * @returns the call, to be replayed or recorded; undefined if it is issued one operator at a time
   */
  open(block: number, args: readonly unknown[], leaves: readonly Tensor[]): ProgramCall | undefined {
    if (this.#refused.has(block)) return undefined;
    const tensors: Tensor[] = [];
    const text = describePlain(args, tensors);
    if (text === undefined) {
      this.refuse(block, "an argument that is neither a tensor nor plain data");
      return undefined;
    }
    const kind = `${isFused()} ${text} ${this.#stateOf(block)}`;
    const kept = this.#kept.get(block)?.find((each) => each.isFor(kind, leaves, tensors));
    return new ProgramCall(this, block, { kind, leaves, tensors, kept });
  }

  refuse(block: number, reason: string | Error): void {
    if (this.#refused.has(block)) return;
    this.#refused.add(block);
    for (const { program } of this.#kept.get(block)?.splice(0) ?? []) dropProgram(program);
    const { name } = this.#block(block);
    if (typeof reason === "string") this.#listener.unrecorded({ block: name, reason });
    else this.#listener.unrecorded({ block: name, reason: reason.message, line: lineOf(reason) });
  }

  keep(block: number, kept: Kept): void {
    const all = this.#kept.get(block) ?? [];
    this.#kept.set(block, all);
    if (this.#refused.has(block)) dropProgram(kept.program);
    else all.push(kept);
    if (all.length > MOST_OF_A_BLOCK) dropProgram((all.shift() as Kept).program);
  }

  confirm(block: number, kept: Kept): void {
    improveProgram(kept.program, this.#listener.fast);
    kept.isSure = true;
    const text = describeProgram(kept.program);
    const key = JSON.stringify(text);
    if (this.#told.has(key)) return;
    this.#told.add(key);
    this.#listener.recorded({ block: this.#block(block).name, ...text });
  }

  twin(block: number, kind: string, leaves: readonly Tensor[], tensors: readonly Tensor[]): Kept | undefined {
    return this.#kept.get(block)?.find((each) => each.isFor(kind, leaves, tensors));
  }

  boundOf(block: number): readonly Tensor[] {
    return this.#block(block).parameters;
  }

  #block(block: number): RecordedBlock {
    const known = this.#blocks.get(block) ?? this.#blockOf(block);
    this.#blocks.set(block, known);
    return known;
  }

  [Symbol.dispose](): void {
    for (const { program } of [...this.#kept.values()].flat()) dropProgram(program);
    this.#kept.clear();
  }

  /** Settings of a block's modules, such as whether they train: a forward may depend on them. */
  #stateOf(block: number): string {
    const modules = this.#modules.get(block) ?? [...this.#block(block).module.namedModules().values()];
    this.#modules.set(block, modules);
    let text = "";
    for (const module of modules) {
      for (const value of Object.values(module)) if (typeof value !== "object") text += `${value} `;
    }
    return text;
  }
}

/** The innermost of the user's lines in an error's stack. */
function lineOf(error: Error): string | undefined {
  const [frame] = ownFrames(framesOf(error.stack));
  return frame && [frame.file, frame.line, frame.column].filter((part) => part !== undefined).join(":");
}
