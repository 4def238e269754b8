import { numelOf } from "../../compute/tensor/index.ts";
import { TroupeError } from "../../errors/index.ts";
import { type Box, isDType, type SafetensorsDType, tensorSizeBytes } from "../../library/checkpoint/index.ts";
import { checkSlice, fullBox, overlap, SliceWriter } from "./slice.ts";
import type { StagingArea } from "./staging.ts";

/** The file of a checkpoint that a tensor is written to: model weights, or optimizer state. */
export type TensorGroup = "weights" | "optimizer";

/** A complete tensor that waits to be written. Plain data; its bytes start at `begin` in `memory`, which other tensors may share. */
export interface StagedTensor {
  readonly group: TensorGroup;
  readonly name: string;
  readonly dtype: SafetensorsDType;
  readonly shape: readonly number[];
  readonly memory: SharedArrayBuffer;
  readonly begin: number;
  readonly sizeBytes: number;
}

/** Description of a tensor, from any sender. */
export type TensorFacts = Pick<StagedTensor, "group" | "name" | "dtype" | "shape">;

interface Entry extends StagedTensor {
  /** Slices that have arrived or are arriving; they do not overlap. */
  readonly slices: Set<Box>;
  /** Number of elements that have arrived. */
  numFilled: number;
}

/** A slice that is arriving: append all its bytes, then call `end`; without it the slice does not count. */
export interface ComingSlice {
  readonly missingBytes: number;
  append(bytes: Uint8Array): void;
  end(): void;
  /** Drops the slice, so that it can be sent again. */
  abandon(): void;
}

const maxNumTensors = 1_000_000;
const maxRank = 16;
const maxNumSlices = 4096;
const maxNameLength = 512;

/** Tensors of one step as they arrive, complete or in slices, from one or several senders. */
export class StagedSave {
  readonly step: number;
  readonly area: StagingArea;
  readonly #entries = new Map<string, Entry>();

  constructor(step: number, area: StagingArea) {
    this.step = step;
    this.area = area;
  }

  /**
   * Starts receiving a slice of a tensor, after checking its description; the first slice allocates the complete tensor.
   * @param sizeBytes - number of bytes that will arrive
   * @param slice - default: the complete tensor
   * @throws {TroupeError} `CHECKPOINT_SLICE` if it is not a tensor, differs from earlier descriptions, has another size, or overlaps
   *   an earlier slice; `CHECKPOINT_STAGING` if there is no room
   */
  receive(facts: TensorFacts, sizeBytes: number, slice: Box = fullBox(facts.shape)): ComingSlice {
    const { name, dtype, shape } = facts;
    const itemBytes = this.#check(facts);
    checkSlice(name, shape, slice);
    const expectedBytes = numelOf(slice.shape) * itemBytes;
    const expected = `${expectedBytes} bytes for ${dtype}[${slice.shape}]`;
    if (sizeBytes !== expectedBytes)
      throw refusal(name, expected, `${sizeBytes}`, "row-major and little-endian");
    const entry = this.#entries.get(name) ?? this.#add(facts);
    const { slices, memory, begin } = entry;
    if (slices.size === maxNumSlices)
      throw refusal(name, `at most ${maxNumSlices} slices`, "more", "send larger ones");
    const again = `[${slice.shape}] at [${slice.offset}] again`;
    if ([...slices].some((other) => overlap(slice, other)))
      throw refusal(name, "each element once", again, "send each slice once");
    const target = new Uint8Array(memory, begin, entry.sizeBytes);
    const writer = new SliceWriter(target, shape, slice, itemBytes);
    slices.add(slice);
    return {
      get missingBytes() {
        return writer.missingBytes;
      },
      append: (bytes) => writer.append(bytes),
      end: () => {
        entry.numFilled += numelOf(slice.shape);
      },
      abandon: () => void slices.delete(slice),
    };
  }

  /** Adds a slice with all its bytes. @throws {TroupeError} as {@link receive} */
  put(facts: TensorFacts, bytes: Uint8Array, slice?: Box): void {
    const coming = this.receive(facts, bytes.length, slice);
    coming.append(bytes);
    coming.end();
  }

  /** Adds a complete tensor, which `write` copies into memory. @throws {TroupeError} as {@link receive} */
  fill(facts: TensorFacts, write: (buffer: SharedArrayBuffer, byteOffset: number) => void): void {
    const coming = this.receive(facts, tensorSizeBytes(facts.dtype, facts.shape) ?? 0);
    const { memory, begin } = this.#entries.get(facts.name) as Entry;
    write(memory, begin);
    coming.end();
  }

  /** Returns the tensors. @throws {TroupeError} `CHECKPOINT_INCOMPLETE` naming incomplete ones */
  complete(): StagedTensor[] {
    const entries = [...this.#entries.values()];
    const incomplete = entries
      .filter(({ shape, numFilled }) => numFilled < numelOf(shape))
      .map(({ name }) => name);
    if (incomplete.length > 0 || entries.length === 0) {
      const some = incomplete.length === 0 ? "no tensor at all" : incomplete.slice(0, 4).join(", ");
      throw new TroupeError("CHECKPOINT_INCOMPLETE", {
        where: "checkpoint service",
        expected: `every element of every tensor of step ${this.step}`,
        got: `${some}${incomplete.length > 0 ? ` in part, ${incomplete.length} in all` : ""}`,
        hint: "send the missing slices",
        fields: { step: this.step, tensors: incomplete.slice(0, 100) },
      });
    }
    return entries.map(({ slices: _, numFilled: __, ...tensor }) => tensor);
  }

  /**
   * @returns bytes of one element
   * @throws {TroupeError} `CHECKPOINT_SLICE` for a description that is invalid or differs from earlier ones
   */
  #check(facts: TensorFacts): number {
    const { name, dtype, shape } = facts;
    checkName(name);
    const isShape = shape.length <= maxRank && shape.every((size) => Number.isSafeInteger(size) && size >= 0);
    const sizeBytes = isShape && isDType(dtype) ? tensorSizeBytes(dtype, shape) : undefined;
    const itemBytes = isDType(dtype) ? tensorSizeBytes(dtype, [1]) : undefined;
    const got = describe(facts);
    if (sizeBytes === undefined || itemBytes === undefined) {
      const expected = "a dtype of at least one byte and a shape of at most 16 counts";
      throw refusal(name, expected, got, "F32 and 4,8 for instance");
    }
    const known = this.#entries.get(name);
    if (known === undefined || describe(known) === got) return itemBytes;
    throw refusal(name, `${describe(known)}, as before`, got, "the same dtype and shape in all its slices");
  }

  #add(facts: TensorFacts): Entry {
    const { group, name, dtype, shape } = facts;
    if (this.#entries.size === maxNumTensors)
      throw refusal(name, `at most ${maxNumTensors} tensors`, "more", "save fewer");
    const sizeBytes = tensorSizeBytes(dtype, shape) ?? 0;
    const { buffer: memory, begin } = this.area.take(sizeBytes);
    const slices = new Set<Box>();
    const entry = { group, name, dtype, shape, memory, begin, sizeBytes, slices, numFilled: 0 };
    this.#entries.set(name, entry);
    return entry;
  }
}

const describe = ({ group, dtype, shape }: TensorFacts): string => `${dtype}[${shape}] of the ${group}`;

function checkName(name: string): void {
  const fits =
    name.length >= 1 && name.length <= maxNameLength && name.isWellFormed() && !/\p{Cc}/u.test(name);
  if (fits && name !== "__metadata__" && name !== "__proto__") return;
  const shown = name.slice(0, 40);
  const expected = `a name of 1 to ${maxNameLength} printable characters`;
  throw refusal(shown, expected, JSON.stringify(shown), "rename it");
}

function refusal(name: string, expected: string, got: string, advice: string): TroupeError {
  return new TroupeError("CHECKPOINT_SLICE", {
    where: "checkpoint service",
    expected: `${expected} of tensor ${JSON.stringify(name)}`,
    got,
    hint: advice,
    fields: { tensor: name },
  });
}
