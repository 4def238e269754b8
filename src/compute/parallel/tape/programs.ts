import { framesOf, ownFrames } from "../../../errors/index.ts";
import {
  isFused,
  isWriting,
  type Module,
  pagedInputs,
  presentRecording,
  type Randomness,
} from "../../nn/index.ts";
import {
  captureProgram,
  describeProgram,
  dropProgram,
  improveProgram,
  type ProgramText,
  type Tensor,
} from "../../tensor/index.ts";
import { describePlain } from "./describe-plain.ts";
import { KeptPrograms } from "./kept-programs.ts";
import { ModuleSettings } from "./module-settings.ts";
import {
  type BlockCalls,
  type CallKind,
  type Kept,
  ProgramCall,
  type ProgramStore,
  type SharedPositions,
} from "./program-call.ts";

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
  /** Why a device issues its operators singly, where graphs of the device were wanted. */
  readonly uncaptured?: string | undefined;
}

/** Chooses how programs are improved, and takes what becomes of each block. */
export interface ProgramListener {
  /** Whether programs may have other bits where that is quicker. */
  readonly fast: boolean;
  /** Whether a device captures programs as graphs. */
  readonly captures: boolean;
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
 * reported once.
 */
export class BlockPrograms implements ProgramStore, Disposable {
  readonly randomness: Randomness | undefined;
  readonly region: SharedPositions | undefined;
  readonly calls: BlockCalls = { replayed: 0, recorded: 0, recordMs: 0 };
  readonly #blockOf: (block: number) => RecordedBlock;
  readonly #listener: ProgramListener;
  readonly #blocks = new Map<number, RecordedBlock>();
  readonly #modules = new Map<number, readonly Module[]>();
  readonly #settings = new Map<number, ModuleSettings>();
  readonly #withGradients = new KeptPrograms(4);
  readonly #alone = new KeptPrograms(8);
  /** Programs that the listener has, as text. */
  readonly #reported = new Set<string>();

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
    const isAlone = leaves === undefined;
    if (this.#programsOf(isAlone).isRefused(block)) return undefined;
    const tensors: Tensor[] = [];
    const text = describePlain(args, tensors);
    if (text === undefined) {
      this.refuse(block, isAlone, "an argument that is neither a tensor nor plain data");
      return undefined;
    }
    const paged = isAlone ? pagedInputs(this.#modulesOf(block)) : undefined;
    tensors.push(...(paged?.tensors ?? []));
    const lists = paged?.lists ?? [];
    const settings = `${isAlone} ${isFused()} ${this.region?.numPadding} ${lists.length}`;
    const kind = `${settings} ${text} ${this.#settingsOf(block).text}`;
    const ofCall = { kind, isAlone, leaves: leaves ?? [], tensors, lists };
    return new ProgramCall(this, block, { ...ofCall, kept: this.twin(block, ofCall) });
  }

  /** Computes a call of a block without gradients. */
  compute<R>(block: number, args: readonly unknown[], run: () => R): R {
    // The first pass over pages makes their memory; a cache of another kind is read past the arguments.
    const isOpen = !isWriting() || pagedInputs(this.#modulesOf(block)) !== undefined;
    const call = presentRecording() === undefined && isOpen ? this.open(block, args, undefined) : undefined;
    return call === undefined ? run() : call.compute(run);
  }

  hasNewLists(block: number, { lists }: CallKind): boolean {
    return (pagedInputs(this.#modulesOf(block))?.lists.length ?? 0) !== lists.length;
  }

  /** @returns the calls since it was asked before */
  takeCalls(): BlockCalls {
    const calls = { ...this.calls };
    Object.assign(this.calls, { replayed: 0, recorded: 0, recordMs: 0 });
    return calls;
  }

  refuse(block: number, isAlone: boolean, reason: string | Error): void {
    if (!this.#programsOf(isAlone).refuse(block)) return;
    const { name } = this.#block(block);
    if (typeof reason === "string") this.#listener.unrecorded({ block: name, reason });
    else this.#listener.unrecorded({ block: name, reason: reason.message, line: lineOf(reason) });
  }

  keep(block: number, kept: Kept): void {
    const programs = this.#programsOf(kept.isAlone);
    if (programs.isRefused(block)) {
      dropProgram(kept.program);
      return;
    }
    const reason = programs.keep(block, kept);
    if (reason !== undefined) this.refuse(block, kept.isAlone, reason);
  }

  confirm(block: number, kept: Kept): void {
    improveProgram(kept.program, this.#listener.fast);
    kept.isSure = true;
    const uncaptured = this.#listener.captures ? captureProgram(kept.program) : "";
    const text = describeProgram(kept.program);
    const key = JSON.stringify(text);
    if (this.#reported.has(key)) return;
    this.#reported.add(key);
    const { name } = this.#block(block);
    this.#listener.recorded({ block: name, ...text, ...(uncaptured !== "" && { uncaptured }) });
  }

  twin(block: number, call: CallKind): Kept | undefined {
    return this.#programsOf(call.isAlone).find(block, call);
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
    this.#withGradients[Symbol.dispose]();
    this.#alone[Symbol.dispose]();
  }

  #programsOf(isAlone: boolean): KeptPrograms {
    return isAlone ? this.#alone : this.#withGradients;
  }

  #modulesOf(block: number): readonly Module[] {
    const modules = this.#modules.get(block) ?? [...this.#block(block).module.namedModules().values()];
    this.#modules.set(block, modules);
    return modules;
  }

  #settingsOf(block: number): ModuleSettings {
    const known = this.#settings.get(block) ?? new ModuleSettings(this.#modulesOf(block));
    this.#settings.set(block, known);
    return known;
  }
}

/** The innermost of the user's lines in an error's stack. */
function lineOf(error: Error): string | undefined {
  const [frame] = ownFrames(framesOf(error.stack));
  return frame && [frame.file, frame.line, frame.column].filter((part) => part !== undefined).join(":");
}
