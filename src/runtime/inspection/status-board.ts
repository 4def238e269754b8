import type { UserCall } from "../../errors/index.ts";
import { type ActorState, actorStates, type CollectiveStatus } from "../protocol/actor-status.ts";
import { CollectiveLine, collectiveLineBytes, shiftedLine } from "./collective-line.ts";

// biome-ignore format: a list
const word = {
  version: 0, state: 1, kindIndex: 2, numQueued: 3, waitingFor: 4, opLength: 5, blockLength: 6,
  callLength: 7, isCallPending: 8,
} as const;
const numWords = 10;
const real = { sinceMs: 0, opSinceMs: 1, sequence: 2, numHandled: 3, answeredMs: 4, callSinceMs: 5 } as const;
const numReals = 6;
const textLength = 40;
const callTextLength = 80;
const realsOffset = numWords * 4;
const textsOffset = realsOffset + numReals * 8;
const callOffset = textsOffset + 2 * textLength * 2;
const collectiveOffset = callOffset + callTextLength * 2;
/** Size of one actor's board, in bytes. */
export const boardSizeBytes = collectiveOffset + collectiveLineBytes;

const stateCode = Object.fromEntries(actorStates.map((state, code) => [state, code])) as Record<
  ActorState,
  number
>;

/** One reading of an actor's board. */
export interface Status {
  readonly state: ActorState;
  /** Index of the kind of message being handled, -1 when none. */
  readonly kindIndex: number;
  /** When this state began, on the process's clock. */
  readonly sinceMs: number;
  readonly numQueued: number;
  readonly numHandled: number;
  /** Uid of the actor whose answer it blocks for, -1 when none. */
  readonly waitingFor: number;
  /** The operation that the actor itself reported, empty before the first. */
  readonly op: string;
  readonly block: string;
  readonly sequence: number;
  readonly opSinceMs: number;
  /** The user's function that its thread waits for; undefined where it waits for none. */
  readonly call: UserCall | undefined;
  /** When its system sent the last heartbeat probe that it has answered; 0 before the first. */
  readonly answeredMs: number;
  /** The collective it is in or was in last, undefined before the first. */
  readonly collective: CollectiveStatus | undefined;
}

/** The status of one actor in shared memory: its thread writes, any other reads, even while it is stuck in native code. */
export class StatusBoard {
  /** The last collective of this actor. */
  readonly collective: CollectiveLine;
  readonly #words: Int32Array;
  readonly #reals: Float64Array;
  readonly #op: Uint16Array;
  readonly #block: Uint16Array;
  readonly #call: Uint16Array;
  readonly #now: () => number;
  #lastCall = "";
  #lastOp = "";
  #lastBlock = "";

  /** @param memory - `boardSizeBytes` bytes, zeroed; shared with the readers of this board */
  constructor(now: () => number, memory: Uint8Array) {
    const { buffer, byteOffset } = memory;
    this.#now = now;
    this.#words = new Int32Array(buffer, byteOffset, numWords);
    this.#reals = new Float64Array(buffer, byteOffset + realsOffset, numReals);
    this.#op = new Uint16Array(buffer, byteOffset + textsOffset, textLength);
    this.#block = new Uint16Array(buffer, byteOffset + textsOffset + 2 * textLength, textLength);
    this.#call = new Uint16Array(buffer, byteOffset + callOffset, callTextLength);
    this.collective = new CollectiveLine(
      now,
      new Uint8Array(buffer, byteOffset + collectiveOffset, collectiveLineBytes),
    );
  }

  /** Writes what this actor does now: operation, block, and a number that rises with each. Names are cut at 40 characters. */
  set(op: string, block = "", sequence = 0): void {
    this.#beginWrite();
    if (op !== this.#lastOp) {
      this.#lastOp = op;
      this.#words[word.opLength] = write(this.#op, op);
    }
    if (block !== this.#lastBlock) {
      this.#lastBlock = block;
      this.#words[word.blockLength] = write(this.#block, block);
    }
    this.#reals[real.sequence] = sequence;
    this.#reals[real.opSinceMs] = this.#now();
    this.#endWrite();
  }

  /** Writes the user's function that this thread waits for; its text is cut at 80 characters. */
  setCall(call: UserCall | undefined): void {
    this.#beginWrite();
    const what = call?.what ?? "";
    if (what !== "" && what !== this.#lastCall) {
      this.#lastCall = what;
      write(this.#call, what);
    }
    this.#words[word.callLength] = Math.min(what.length, callTextLength);
    this.#words[word.isCallPending] = call?.isPending === true ? 1 : 0;
    this.#reals[real.callSinceMs] = call?.sinceMs ?? 0;
    this.#endWrite();
  }

  /** Writes the state as the runtime sees it; `kindIndex` is the kind of message being handled. */
  enter(state: ActorState, kindIndex = -1, waitingFor = -1, nowMs = this.#now()): void {
    this.#words[word.state] = stateCode[state];
    this.#words[word.kindIndex] = kindIndex;
    this.#words[word.waitingFor] = waitingFor;
    this.#reals[real.sinceMs] = nowMs;
  }

  /** Writes that the mailbox is empty. The time stays that of the last message, because reading a clock costs. */
  enterIdle(): void {
    this.#words[word.state] = stateCode.idle;
    this.#words[word.kindIndex] = -1;
  }

  /** Writes that a message is being handled, and counts it. */
  enterHandling(kindIndex: number, nowMs: number): void {
    this.enter("handling", kindIndex, -1, nowMs);
    this.#reals[real.numHandled] = (this.#reals[real.numHandled] as number) + 1;
  }

  /** Answers the system's heartbeat probe of `probedMs`: this thread receives messages. */
  enterProbe(probedMs: number): void {
    this.#reals[real.answeredMs] = probedMs;
  }

  /** Writes how many messages wait. */
  setQueued(numQueued: number): void {
    this.#words[word.numQueued] = numQueued;
  }

  /**
   * Reads the board, from any thread. If a write tore the actor's own texts, they are read again. Numbers are written one by
   * one, so that a reading may mix two moments that are a message apart.
   */
  read(): Status {
    for (let attempt = 0; ; attempt++) {
      const version = Atomics.load(this.#words, word.version);
      const status = this.#readOnce();
      const isConsistent = version % 2 === 0 && version === Atomics.load(this.#words, word.version);
      // A thread killed in mid-write leaves an odd version forever: then the torn reading is all there is.
      if (isConsistent || attempt === 100) return status;
    }
  }

  #readOnce(): Status {
    const words = this.#words;
    const reals = this.#reals;
    return {
      state: actorStates[words[word.state] as number] as ActorState,
      kindIndex: words[word.kindIndex] as number,
      sinceMs: reals[real.sinceMs] as number,
      numQueued: words[word.numQueued] as number,
      numHandled: reals[real.numHandled] as number,
      waitingFor: words[word.waitingFor] as number,
      op: read(this.#op, words[word.opLength] as number),
      block: read(this.#block, words[word.blockLength] as number),
      sequence: reals[real.sequence] as number,
      opSinceMs: reals[real.opSinceMs] as number,
      answeredMs: reals[real.answeredMs] as number,
      call: this.#readCall(),
      collective: this.collective.read(),
    };
  }

  #readCall(): UserCall | undefined {
    const length = this.#words[word.callLength] as number;
    if (length === 0) return undefined;
    const sinceMs = this.#reals[real.callSinceMs] as number;
    return { what: read(this.#call, length), sinceMs, isPending: this.#words[word.isCallPending] === 1 };
  }

  #beginWrite(): void {
    Atomics.add(this.#words, word.version, 1);
  }

  #endWrite(): void {
    Atomics.add(this.#words, word.version, 1);
  }
}

/** Copies another process's board, whose clock is `laterMs` behind, into `copy`; a torn one is skipped until the next call. */
export function mirrorBoard(copy: Uint8Array, board: Uint8Array, laterMs: number): void {
  if (board.length !== boardSizeBytes) return;
  const [words, reals] = [new Int32Array(numWords), new Float64Array(numReals)];
  new Uint8Array(words.buffer).set(board.subarray(0, realsOffset));
  new Uint8Array(reals.buffer).set(board.subarray(realsOffset, textsOffset));
  if ((words[word.version] as number) % 2 !== 0) return;
  for (const at of [real.sinceMs, real.opSinceMs, real.callSinceMs])
    reals[at] = (reals[at] as number) + laterMs;
  copy.set(new Uint8Array(words.buffer));
  copy.set(new Uint8Array(reals.buffer), realsOffset);
  copy.set(board.subarray(textsOffset, collectiveOffset), textsOffset);
  copy.set(shiftedLine(board.subarray(collectiveOffset), laterMs), collectiveOffset);
}

function write(target: Uint16Array, text: string): number {
  const length = Math.min(text.length, target.length);
  for (let index = 0; index < length; index++) target[index] = text.charCodeAt(index);
  return length;
}

function read(source: Uint16Array, length: number): string {
  return String.fromCharCode(...source.subarray(0, length));
}
