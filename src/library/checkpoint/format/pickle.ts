import { fileErrors, type TroupeError } from "../../../errors/index.ts";

/**
 * A pickle's content as plain data: dictionaries become Maps, tuples and lists arrays. An object that Python would
 * create by a call becomes a {@link PickledCall}: nothing is looked up, imported or run.
 */
export type Pickled =
  | null
  | boolean
  | number
  | bigint
  | string
  | Uint8Array
  | Pickled[]
  | Map<Pickled, Pickled>
  | PickledGlobal
  | PickledCall
  | PickledReference;

/** A Python global by name, such as `torch.FloatStorage`. */
export class PickledGlobal {
  readonly name: string;

  constructor(name: string) {
    this.name = name;
  }
}

/** A call that would create an object in Python; not carried out. */
export class PickledCall {
  readonly name: string;
  readonly args: readonly Pickled[];

  constructor(name: string, args: readonly Pickled[]) {
    this.name = name;
    this.args = args;
  }
}

/** A reference to data outside the pickle, such as a storage. */
export class PickledReference {
  readonly id: Pickled;

  constructor(id: Pickled) {
    this.id = id;
  }
}

/** Options of {@link readPickle}. */
export interface PickleRules {
  /** Path of the file, for messages. */
  readonly path: string;
  /** Whether a name may occur, although it has no meaning here; any other makes the file invalid. */
  readonly names: (name: string) => boolean;
}

const ORDERED_DICT = "collections.OrderedDict";
const MAX_DEPTH = 1_000_000;
/** The most values in a pickle: each takes some hundred bytes of memory, but one byte of the file. */
const MAX_VALUES = 2_000_000;

/** Thrown where the bytes end before the pickle does. */
export class PickleCut extends Error {}

/**
 * Reads one pickle of protocol 2, limited to the opcodes that `torch.save` writes.
 * @param bytes - the pickle, and perhaps more
 * @param begin - its first byte
 * @returns its content, and its end
 * @throws {TroupeError} `TORCH_FILE` for other opcodes, names that `rules` refuse, or an invalid pickle
 * @throws {PickleCut} where the bytes end first
 */
export function readPickle(
  bytes: Uint8Array,
  begin: number,
  rules: PickleRules,
): { readonly value: Pickled; readonly end: number } {
  return new Unpickling(bytes, begin, rules).run();
}

const utf8 = new TextDecoder("utf-8", { fatal: true });
const latin1 = new TextDecoder("latin1");

class Unpickling {
  readonly #bytes: Uint8Array;
  readonly #view: DataView;
  readonly #rules: PickleRules;
  readonly #stack: Pickled[] = [];
  readonly #marks: number[] = [];
  readonly #memo = new Map<number, Pickled>();
  #numValues = 0;
  #at: number;

  constructor(bytes: Uint8Array, begin: number, rules: PickleRules) {
    this.#bytes = bytes;
    this.#view = new DataView(bytes.buffer, bytes.byteOffset, bytes.byteLength);
    this.#rules = rules;
    this.#at = begin;
  }

  run(): { readonly value: Pickled; readonly end: number } {
    for (;;) {
      const place = this.#at;
      const opcode = String.fromCharCode(this.#byte());
      if (opcode === ".") return { value: this.#pop(), end: this.#at };
      const act = opcodes[opcode];
      if (act === undefined)
        throw this.refusal(`an opcode that torch.save writes at byte ${place}`, hex(opcode));
      act(this);
    }
  }

  push(value: Pickled): void {
    if (this.#stack.length >= MAX_DEPTH) throw this.refusal("a pickle of a model", "one nested without end");
    if (++this.#numValues > MAX_VALUES) throw this.refusal(`at most ${MAX_VALUES} values`, "more");
    this.#stack.push(value);
  }

  pop(): Pickled {
    return this.#pop();
  }

  top(): Pickled {
    const value = this.#pop();
    this.#stack.push(value);
    return value;
  }

  mark(): void {
    this.#marks.push(this.#stack.length);
  }

  /** Removes and returns the values pushed since the last mark. */
  marked(): Pickled[] {
    const begin = this.#marks.pop();
    if (begin === undefined || begin > this.#stack.length)
      throw this.refusal("a pickle", "no mark where one is needed");
    return this.#stack.splice(begin);
  }

  keep(key: number): void {
    this.#memo.set(key, this.top());
  }

  recall(key: number): void {
    const value = this.#memo.get(key);
    if (value === undefined) throw this.refusal("a pickle", `a reference to ${key}, which is not there`);
    this.push(value);
  }

  global(): void {
    const name = `${this.#line()}.${this.#line()}`;
    if (name !== ORDERED_DICT && !this.#rules.names(name))
      throw this.refusal("tensors, plain values and nothing that must be run", name);
    this.push(new PickledGlobal(name));
  }

  /** Calls nothing: an ordered dictionary becomes a Map, other calls are recorded. */
  call(): void {
    const args = this.#pop();
    const made = this.#pop();
    if (!(made instanceof PickledGlobal) || !Array.isArray(args))
      throw this.refusal("the name of what a value is made by", "another value");
    if (made.name !== ORDERED_DICT) {
      this.push(new PickledCall(made.name, args));
      return;
    }
    const [pairs = []] = args;
    const map = new Map<Pickled, Pickled>();
    for (const pair of Array.isArray(pairs) ? pairs : [])
      if (Array.isArray(pair)) map.set(pair[0] ?? null, pair[1] ?? null);
    this.push(map);
  }

  /** @param pairs - keys and values in turns, for the dictionary below them on the stack */
  set(pairs: readonly Pickled[]): void {
    const map = this.top();
    if (!(map instanceof Map)) throw this.refusal("a dictionary", "items of another value");
    for (let index = 0; index + 1 < pairs.length; index += 2)
      map.set(pairs[index] ?? null, pairs[index + 1] ?? null);
  }

  append(items: readonly Pickled[]): void {
    const list = this.top();
    if (!Array.isArray(list)) throw this.refusal("a list", "items of another value");
    for (const item of items) list.push(item);
  }

  unsigned(numBytes: 1 | 2 | 4): number {
    const at = this.#skip(numBytes);
    if (numBytes === 1) return this.#view.getUint8(at);
    return numBytes === 2 ? this.#view.getUint16(at, true) : this.#view.getUint32(at, true);
  }

  signed(): number {
    return this.#view.getInt32(this.#skip(4), true);
  }

  float(): number {
    return this.#view.getFloat64(this.#skip(8), false);
  }

  /** Reads a two's complement integer of any width, little-endian; a number where that is exact. */
  long(numBytes: number): number | bigint {
    const at = this.#skip(numBytes);
    let value = 0n;
    for (let index = numBytes - 1; index >= 0; index--)
      value = (value << 8n) | BigInt(this.#view.getUint8(at + index));
    const signed = BigInt.asIntN(8 * numBytes, value);
    return Number.isSafeInteger(Number(signed)) ? Number(signed) : signed;
  }

  bytes(numBytes: number): Uint8Array {
    const at = this.#skip(numBytes);
    return this.#bytes.subarray(at, at + numBytes);
  }

  text(numBytes: number): string {
    try {
      return utf8.decode(this.bytes(numBytes));
    } catch (error) {
      if (error instanceof PickleCut) throw error;
      throw this.refusal("text in UTF-8", "other bytes");
    }
  }

  refusal(expected: string, got: string): TroupeError {
    return torchFileError(this.#rules.path, expected, got);
  }

  #pop(): Pickled {
    const value = this.#stack.pop();
    if (value === undefined) throw this.refusal("a pickle", "one that takes more than it has");
    return value;
  }

  #byte(): number {
    return this.#view.getUint8(this.#skip(1));
  }

  #skip(numBytes: number): number {
    const at = this.#at;
    if (at + numBytes > this.#bytes.length) throw new PickleCut(this.#rules.path);
    this.#at += numBytes;
    return at;
  }

  #line(): string {
    const end = this.#bytes.indexOf(10, this.#at);
    if (end < 0) throw new PickleCut(this.#rules.path);
    const line = latin1.decode(this.#bytes.subarray(this.#at, end));
    this.#at = end + 1;
    return line;
  }
}

/** Protocol 2's opcodes by their letters in Python's pickletools. */
const opcodes: Readonly<Record<string, (reading: Unpickling) => void>> = {
  // PROTO
  "\x80": (reading) => {
    const protocol = reading.unsigned(1);
    if (protocol > 3)
      throw reading.refusal("a pickle of protocol 2, as torch.save writes", `protocol ${protocol}`);
  },
  N: (reading) => reading.push(null),
  "\x88": (reading) => reading.push(true),
  "\x89": (reading) => reading.push(false),
  J: (reading) => reading.push(reading.signed()),
  K: (reading) => reading.push(reading.unsigned(1)),
  M: (reading) => reading.push(reading.unsigned(2)),
  G: (reading) => reading.push(reading.float()),
  "\x8a": (reading) => reading.push(reading.long(reading.unsigned(1))),
  X: (reading) => reading.push(reading.text(reading.unsigned(4))),
  // Python 2's strings, and bytes of protocol 3.
  U: (reading) => reading.push(latin1.decode(reading.bytes(reading.unsigned(1)))),
  T: (reading) => reading.push(latin1.decode(reading.bytes(reading.unsigned(4)))),
  C: (reading) => reading.push(reading.bytes(reading.unsigned(1))),
  B: (reading) => reading.push(reading.bytes(reading.unsigned(4))),
  "}": (reading) => reading.push(new Map()),
  "]": (reading) => reading.push([]),
  ")": (reading) => reading.push([]),
  "(": (reading) => reading.mark(),
  t: (reading) => reading.push(reading.marked()),
  "\x85": (reading) => reading.push([reading.pop()]),
  "\x86": (reading) => reading.push([reading.pop(), reading.pop()].reverse()),
  "\x87": (reading) => reading.push([reading.pop(), reading.pop(), reading.pop()].reverse()),
  a: (reading) => reading.append([reading.pop()]),
  e: (reading) => reading.append(reading.marked()),
  s: (reading) => reading.set([reading.pop(), reading.pop()].reverse()),
  u: (reading) => reading.set(reading.marked()),
  q: (reading) => reading.keep(reading.unsigned(1)),
  r: (reading) => reading.keep(reading.unsigned(4)),
  h: (reading) => reading.recall(reading.unsigned(1)),
  j: (reading) => reading.recall(reading.unsigned(4)),
  c: (reading) => reading.global(),
  // REDUCE, and NEWOBJ.
  R: (reading) => reading.call(),
  "\x81": (reading) => reading.call(),
  // BUILD: sets an object's attributes, which are not needed.
  b: (reading) => void reading.pop(),
  Q: (reading) => reading.push(new PickledReference(reading.pop())),
};

/** The error for a file that is not a model saved by `torch.save`. */
export const torchFileError = fileErrors(
  "TORCH_FILE",
  "torch file",
  "write only the model's state_dict() with torch.save, or as safetensors",
);

const hex = (opcode: string): string => `0x${opcode.charCodeAt(0).toString(16).padStart(2, "0")}`;
