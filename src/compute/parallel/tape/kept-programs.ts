import { dropProgram } from "../../tensor/index.ts";
import type { CallKind, Kept } from "./program-call.ts";

/** Programs of one block that may be dropped one after the other without a replay. */
const MOST_IN_VAIN = 32;

/** Programs of blocks' calls, all with gradients or all without. */
export class KeptPrograms implements Disposable {
  readonly #mostOfBlock: number;
  readonly #kept = new Map<number, Kept[]>();
  /** By block: programs dropped without a replay since one was replayed. */
  readonly #inVain = new Map<number, number>();
  readonly #refused = new Set<number>();

  /** @param mostOfBlock - programs that are kept of one block; the oldest is dropped for another */
  constructor(mostOfBlock: number) {
    this.#mostOfBlock = mostOfBlock;
  }

  isRefused(block: number): boolean {
    return this.#refused.has(block);
  }

  /** Drops a block's programs and keeps no others. @returns whether it was not refused before */
  refuse(block: number): boolean {
    for (const { program } of this.#kept.get(block)?.splice(0) ?? []) dropProgram(program);
    const isNew = !this.#refused.has(block);
    this.#refused.add(block);
    return isNew;
  }

  /** @returns why the block is to be refused, if it is */
  keep(block: number, kept: Kept): string | undefined {
    const all = this.#kept.get(block) ?? [];
    this.#kept.set(block, all);
    all.push(kept);
    const oldest = all.length > this.#mostOfBlock ? all.shift() : undefined;
    if (oldest === undefined) return undefined;
    dropProgram(oldest.program);
    const inVain = oldest.isUsed ? 0 : (this.#inVain.get(block) ?? 0) + 1;
    this.#inVain.set(block, inVain);
    return inVain < MOST_IN_VAIN
      ? undefined
      : `${inVain} programs dropped in a row before they were used: its calls differ too much`;
  }

  /** @returns the program of calls of this kind */
  find(block: number, call: CallKind): Kept | undefined {
    return this.#kept.get(block)?.find((each) => each.isFor(call));
  }

  [Symbol.dispose](): void {
    for (const { program } of [...this.#kept.values()].flat()) dropProgram(program);
    this.#kept.clear();
  }
}
