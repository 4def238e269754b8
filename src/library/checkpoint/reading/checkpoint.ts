import { numelOf } from "../../../compute/tensor/index.ts";
import { TroupeError } from "../../../errors/index.ts";
import { adapterWeightsStem } from "../format/adapter-folder.ts";
import type { Companions } from "../format/companions.ts";
import { toSafetensorsDType } from "../format/dtype.ts";
import type { LogicalTensor, Manifest, Slice, TrainerState } from "../format/manifest.ts";
import type { SafetensorsFile } from "../format/safetensors-file.ts";
import { tensorSizeBytes } from "../format/safetensors-header.ts";
import { type Box, boxesOfRun, eachCommonStretch, liesIn } from "../format/slices.ts";
import type { JsonObject } from "../format/strict-json.ts";
import type { TensorPart } from "../format/tensor-file.ts";
import { type Bytes, isBytes, sizeOf } from "../storage/bytes.ts";
import type { StoredFolder } from "../storage/storage.ts";
import { type FolderContents, openContents } from "./folder-contents.ts";

/** A box of a tensor, and its place in memory, in bytes. */
interface PlacedBox extends Box {
  readonly at: number;
}

/** Parts of an entry of a file. */
interface FilePart extends TensorPart {
  readonly file: string;
}

/**
 * A checkpoint open for reading, as logical tensors, however slices and files store them. Its manifest, the sizes of its files
 * and their headers have been checked; the bytes of tensors are checked as they are read. Owns its files until it is disposed.
 */
export class Checkpoint implements AsyncDisposable {
  /** Its folder. */
  readonly path: string;
  readonly manifest: Manifest;
  /** Size of the manifest and all files that it names. */
  readonly sizeBytes: number;
  /** The content of `config.json`. */
  readonly config: JsonObject;
  /** The content of `generation_config.json`, where there is one. */
  readonly generationConfig: JsonObject | undefined;
  /** Its tokenizer and the other files that programs read besides the weights. */
  readonly companions: Companions;
  /** Newer checkpoints that were skipped, and why. */
  readonly passedOver: readonly TroupeError[];
  readonly #files: ReadonlyMap<string, SafetensorsFile>;
  readonly #owned: AsyncDisposable;
  #readBytes = 0;

  private constructor(path: string, contents: FolderContents, passedOver: readonly TroupeError[]) {
    this.path = path;
    this.manifest = contents.manifest;
    this.sizeBytes = contents.sizeBytes;
    this.config = contents.config;
    this.generationConfig = contents.generationConfig;
    this.companions = contents.companions;
    this.#files = contents.files;
    this.#owned = contents;
    this.passedOver = passedOver;
  }

  /**
   * Opens a folder. See {@link openCheckpoint} for a run's newest one, or one by path.
   * @throws {TroupeError} `CHECKPOINT_DAMAGED` naming the file
   */
  static async open(folder: StoredFolder, passedOver: readonly TroupeError[] = []): Promise<Checkpoint> {
    const contents = await openContents(folder);
    return new Checkpoint(folder.path, contents, passedOver);
  }

  /** The trainer's state. */
  get state(): TrainerState {
    return this.manifest.state;
  }

  /** The names of all tensors, of the model and of the optimizer. */
  get names(): string[] {
    return [...this.manifest.tensors.keys()];
  }

  /** The names of the model's parameters. */
  get weights(): string[] {
    const isWeights = (file: string) => file.startsWith("model") || file.startsWith(adapterWeightsStem);
    return this.names.filter((name) => this.entry(name).slices.every(({ file }) => isWeights(file)));
  }

  /** The names of the optimizer's tensors. */
  get optimizer(): string[] {
    const weights = new Set(this.weights);
    return this.names.filter((name) => !weights.has(name));
  }

  /** Bytes read from files so far, including those read only for checksums. */
  get readBytes(): number {
    return this.#readBytes;
  }

  /** Whether there is a tensor of that name. */
  has(name: string): boolean {
    return this.manifest.tensors.has(name);
  }

  /** Returns the manifest's entry for a tensor. @throws {TroupeError} `CHECKPOINT_TENSOR` where there is none */
  entry(name: string): LogicalTensor {
    const tensor = this.manifest.tensors.get(name);
    if (tensor !== undefined) return tensor;
    throw this.#wrongTensor(
      name,
      "a tensor of that name",
      `others (${this.names.slice(0, 3).join(", ")}, ...)`,
    );
  }

  /**
   * Reads a tensor, or a box of it, row-major.
   * @param into - memory of the box's size; a tensor must have the stored dtype. Its content is undefined until the
   * promise is fulfilled
   * @returns `into`
   * @throws {TroupeError} `CHECKPOINT_DAMAGED` naming file, tensor and offset; `CHECKPOINT_TENSOR` for an unknown
   * tensor or invalid box
   */
  async read<T extends Bytes>(name: string, into: T, box?: Box): Promise<T> {
    const { shape } = this.entry(name);
    const wanted = box ?? { offset: shape.map(() => 0), shape };
    if (!liesIn(wanted, shape))
      throw this.#wrongTensor(name, `a box within [${shape}]`, `[${wanted.shape}] at [${wanted.offset}]`);
    if (!isBytes(into)) throw this.#wrongTensor(name, "a Tensor or a Uint8Array to read into", nameOf(into));
    this.#checkTarget(name, into, numelOf(wanted.shape) * sizeOfItem(this.entry(name).dtype));
    await this.#readBoxes(name, [{ ...wanted, at: 0 }], into);
    return into;
  }

  /**
   * Reads part of a tensor's bytes, in row-major order of the complete tensor.
   * @param offsetBytes - start of the part, at an element's first byte
   * @param into - memory of the part's size
   * @returns `into`
   * @throws as {@link read}
   */
  async readRange<T extends Bytes>(name: string, offsetBytes: number, into: T): Promise<T> {
    await this.readStretches(name, Float64Array.of(offsetBytes, 0, sizeOf(into)), into);
    return into;
  }

  /**
   * Reads parts of a tensor, each to its own place; nearby parts of a file are read together.
   * @param stretches - three numbers each, in bytes: start in the tensor (row-major), start in `into`, size; multiples
   * of an element
   * @throws as {@link read}
   */
  async readStretches(name: string, stretches: Float64Array, into: Bytes): Promise<void> {
    await this.readParts([{ name, stretches }], into);
  }

  /**
   * Reads parts of several tensors into one memory, each as with {@link readStretches}; nearby parts of a file are read together.
   */
  async readParts(parts: readonly TensorPart[], into: Bytes): Promise<void> {
    await this.#readFiles(
      parts.flatMap((part) => this.#inFiles(part, into)),
      into,
    );
  }

  /** Closes the files. */
  async [Symbol.asyncDispose](): Promise<void> {
    await this.#owned[Symbol.asyncDispose]();
  }

  /** Reads boxes from the slices that contain them. */
  async #readBoxes(name: string, boxes: readonly PlacedBox[], into: Bytes): Promise<void> {
    const { dtype, shape, slices } = this.entry(name);
    const itemBytes = sizeOfItem(dtype);
    if (!Number.isInteger(itemBytes) && boxes.some((box) => numelOf(box.shape) < numelOf(shape)))
      throw this.#wrongTensor(
        name,
        `the complete tensor, as an element of ${dtype} is not a multiple of a byte`,
        "a part",
      );
    await this.#readFiles(partsIn(slices, boxes, itemBytes), into);
  }

  /** Finds the places of a tensor's parts in files. */
  #inFiles({ name, stretches }: TensorPart, into: Bytes): FilePart[] {
    const { dtype, shape, slices } = this.entry(name);
    const itemBytes = sizeOfItem(dtype);
    this.#checkTarget(name, into);
    const sizeBytes = numelOf(shape) * itemBytes;
    for (let i = 0; i < stretches.length; i += 3) {
      const [begin, size] = [stretches[i]!, stretches[i + 2]!];
      const whole = Number.isInteger(begin / itemBytes) && Number.isInteger(size / itemBytes);
      if (whole && begin >= 0 && size >= 0 && begin + size <= sizeBytes) continue;
      throw this.#wrongTensor(
        name,
        `complete elements within ${sizeBytes} bytes`,
        `${size} from ${begin} on`,
      );
    }
    const [only] = slices;
    if (slices.length === 1 && only !== undefined) return [{ file: only.file, name: only.entry, stretches }];
    const boxes: PlacedBox[] = [];
    for (let i = 0; i < stretches.length; i += 3) {
      let at = stretches[i + 1]!;
      for (const box of boxesOfRun(shape, stretches[i]! / itemBytes, stretches[i + 2]! / itemBytes)) {
        boxes.push({ ...box, at });
        at += numelOf(box.shape) * itemBytes;
      }
    }
    return partsIn(slices, boxes, itemBytes);
  }

  async #readFiles(parts: readonly FilePart[], into: Bytes): Promise<void> {
    const ofFiles = Map.groupBy(parts, ({ file }) => file);
    const reads = [...ofFiles].map(([file, ofFile]) => this.#fileOf(file).readParts(ofFile, into));
    // An error is thrown once all reads have ended, so that no memory is written afterwards.
    for (const count of await Promise.allSettled(reads)) {
      if (count.status === "rejected") throw count.reason;
      this.#readBytes += count.value;
    }
  }

  #fileOf(name: string): SafetensorsFile {
    const file = this.#files.get(name);
    if (file !== undefined) return file;
    const host = this.manifest.files.get(name)?.host ?? "";
    throw new TroupeError("CHECKPOINT_ELSEWHERE", {
      where: "checkpoint",
      expected: `${name} in ${this.path}`,
      got: `none: ${host} keeps it on a disk of its own`,
      hint: `troupe checkpoint join ${this.path} FOLDER, a copy of that host's folder`,
      fields: { path: `${this.path}/${name}`, host },
    });
  }

  #checkTarget(name: string, into: Bytes, sizeBytes = sizeOf(into)): void {
    const got = sizeOf(into);
    if (got !== sizeBytes) throw this.#wrongTensor(name, `memory for ${sizeBytes} bytes`, `${got}`);
    if (into instanceof Uint8Array) return;
    const tensor = "tensor" in into ? into.tensor : into;
    const { dtype } = this.entry(name);
    if (toSafetensorsDType(tensor.dtype) === dtype) return;
    throw this.#wrongTensor(name, `a tensor of its dtype, ${dtype}`, tensor.dtype);
  }

  #wrongTensor(name: string, expected: string, got: string): TroupeError {
    return new TroupeError("CHECKPOINT_TENSOR", {
      where: "checkpoint",
      expected: `${expected} for ${JSON.stringify(name)} in ${this.path}`,
      got,
      fields: { path: this.path, tensor: name },
    });
  }
}

/** Names the type of a wrong argument, for callers without type checks. */
function nameOf(value: unknown): string {
  if (!ArrayBuffer.isView(value)) return value === undefined ? "none" : typeof value;
  return `a ${value.constructor.name}, whose bytes are new Uint8Array(array.buffer)`;
}

/** The stretches that boxes share with each slice of a tensor. */
function partsIn(slices: readonly Slice[], boxes: readonly PlacedBox[], itemBytes: number): FilePart[] {
  return slices.flatMap((slice) => {
    const stretches: number[] = [];
    for (const box of boxes)
      eachCommonStretch(slice, box, (inSlice, inBox, count) => {
        stretches.push(inSlice * itemBytes, box.at + inBox * itemBytes, count * itemBytes);
      });
    const { file, entry: name } = slice;
    return stretches.length === 0 ? [] : [{ file, name, stretches: Float64Array.from(stretches) }];
  });
}

const sizeOfItem = (dtype: LogicalTensor["dtype"]): number => (tensorSizeBytes(dtype, [8]) ?? 0) / 8;
