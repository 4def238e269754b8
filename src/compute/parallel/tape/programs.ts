import { framesOf, ownFrames } from "../../../errors/index.ts";
import { isFused, isWriting, type Module, presentRecording, type Randomness } from "../../nn/index.ts";
import {
  describeProgram,
  dropProgram,
  improveProgram,
  type ProgramText,
  type Tensor,
} from "../../tensor/index.ts";
import { describePlain } from "./describe-plain.ts";
import {
  type BlockCalls,
  type CallKind,
  type Kept,
  ProgramCall,
  type ProgramStore,
  type SharedPositions,
} from "./program-call.ts";

/** Programs that are kept of one block with gradients, and as many without; the oldest is dropped for another. */
const MOST_OF_A_BLOCK = 4;

/** Programs of one block that may be dropped one after the other without a replay. */
const MOST_IN_VAIN = 32;

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

/** Takes what becomes of each block. */
export interface ProgramListener {
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
  readonly region: SharedPositions | undefined;
  readonly calls: BlockCalls = { replayed: 0, recorded: 0, recordMs: 0 };
  readonly #blockOf: (block: number) => RecordedBlock;
  readonly #listener: ProgramListener;
  readonly #blocks = new Map<number, RecordedBlock>();
  readonly #modules = new Map<number, readonly Module[]>();
  readonly #kept = new Map<number, Kept[]>();
  /** By block: programs dropped without a replay since one was replayed. */
  readonly #inVain = new Map<number, number>();
  readonly #refused = new Set<number>();
  /** Programs that the listener has, as text. */
  readonly #told = new Set<string>();

  constructor(
    blockOf: (block: number) => RecordedBlock,
    listener: ProgramListener,
    of: { readonly randomness: Randomness | undefined; readonly region: SharedPositions | undefined },
  ) {
    this.#blockOf = blockOf;
    this.#listener = listener;
    this.randomness = of.randomness;
    this.region = of.region;
  }

  /**
   * @param args - of the call, cut
   * @param leaves - trainable parameters of the block, then of the root; undefined: no gradients are wanted
   * @returns the call, to be replayed or recorded; undefined if it is issued one operator at a time
   */
  open(
    block: number,
    args: readonly unknown[],
    leaves: readonly Tensor[] | undefined,
  ): ProgramCall | undefined {
    if (this.#refused.has(block)) return undefined;
    const tensors: Tensor[] = [];
    const text = describePlain(args, tensors);
    if (text === undefined) {
      this.refuse(block, "an argument that is neither a tensor nor plain data");
      return undefined;
    }
    const isAlone = leaves === undefined;
    const kind = `${isAlone} ${isFused()} ${this.region?.numPadding} ${text} ${this.#stateOf(block)}`;
    const ofCall = { kind, isAlone, leaves: leaves ?? [], tensors };
    return new ProgramCall(this, block, { ...ofCall, kept: this.twin(block, ofCall) });
  }

  /** Computes a call of a block without gradients. */
  compute<R>(block: number, args: readonly unknown[], run: () => R): R {
    const call =
      presentRecording() === undefined && !isWriting() ? this.open(block, args, undefined) : undefined;
    return call === undefined ? run() : call.compute(run);
  }

  /** @returns the calls since it was asked before */
  takeCalls(): BlockCalls {
    const calls = { ...this.calls };
    Object.assign(this.calls, { replayed: 0, recorded: 0, recordMs: 0 });
    return calls;
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
    const alike = all.filter(({ isAlone }) => isAlone === kept.isAlone);
    if (alike.length > MOST_OF_A_BLOCK) this.#drop(block, alike[0] as Kept);
  }

  #drop(block: number, kept: Kept): void {
    const all = this.#kept.get(block) ?? [];
    all.splice(all.indexOf(kept), 1);
    dropProgram(kept.program);
    const inVain = kept.isUsed ? 0 : (this.#inVain.get(block) ?? 0) + 1;
    this.#inVain.set(block, inVain);
    if (inVain === MOST_IN_VAIN)
      this.refuse(block, `${inVain} programs that were dropped before a second call like their first`);
  }

  confirm(block: number, kept: Kept): void {
    improveProgram(kept.program);
    kept.isSure = true;
    const text = describeProgram(kept.program);
    const key = JSON.stringify(text);
    if (this.#told.has(key)) return;
    this.#told.add(key);
    this.#listener.recorded({ block: this.#block(block).name, ...text });
  }

  twin(block: number, call: CallKind): Kept | undefined {
    return this.#kept.get(block)?.find((each) => each.isFor(call));
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
