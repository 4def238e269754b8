import { spawnSync } from "node:child_process";
import { existsSync } from "node:fs";
import { createRequire } from "node:module";
import { fileURLToPath } from "node:url";
import { type ErrorCode, TroupeError } from "../../errors/index.ts";
import { whyUnsafe } from "../../errors/untrusted/index.ts";
import { schemas } from "./schemas.generated.ts";

/** What the ledger says of a tag or of all memory. */
interface NativeUse {
  readonly liveBytes: number;
  readonly peakBytes: number;
}

/** What was computed on tensors without memory would have taken, by the thread that computed it. */
export interface Metered {
  /** Bytes of the tensors without memory that are there. */
  readonly liveBytes: number;
  /** The most of them at once, since the beginning or the last `resetPeak`. */
  readonly peakBytes: number;
  /** Bytes of all that were made, by size: at `i` of those of more than 2^(i − 1) bytes and at most 2^i. */
  readonly madeBytes: readonly number[];
  /** Of matrix products, convolutions and attention, forward and backward: an addition and a multiplication are two. */
  readonly flops: number;
  /** Of these, of operands of 16 bits. */
  readonly narrowFlops: number;
  /** Bytes of whole tensors that went round a group of ranks, an all-reduce counted twice. */
  readonly ringBytes: number;
  /** How often something went round. */
  readonly numRings: number;
  /** Operators without a rule of shapes: taken to keep all that they are given and give. */
  readonly unruled: readonly string[];
}

/**
 * The addon's functions about tensors. A handle is a positive integer that names a tensor of this thread. Where a
 * comment speaks of the frame, lists and sizes are passed in `frame` and not as arguments.
 */
export interface Native {
  connect(frame: Float64Array, schemas: readonly string[], makeError: MakeError): void;
  call(operator: number): number;
  intern(text: string): number;
  schemas(namespace: string): string[];

  release(handle: number): boolean;
  /** The first `count` handles in the frame. */
  releaseMany(count: number): void;
  /** Tells V8 of the tensor's memory. @returns its bytes, for {@link unwatch} */
  watch(handle: number): number;
  unwatch(sizeBytes: number): void;
  liveTensors(): number;
  /** The dtype's number; the frame then holds ndim and the sizes. */
  describe(handle: number): number;
  device(handle: number): string;
  item(handle: number): number;
  /** A new tensor with the `ndim` sizes in the frame. */
  tensor(data: ArrayBufferView, dtype: number, ndim: number): number;
  copyFrom(handle: number, data: ArrayBufferView): void;
  toTypedArray(handle: number, data: ArrayBufferView): void;
  mapFile(path: string, dtype: number, numel: number, offsetBytes: number): number;

  /** The frame holds the lists outputs, gradients (with gaps) and inputs. */
  backward(retainGraph: boolean): void;
  /** The frame holds the lists outputs, gradients (with gaps) and inputs; afterwards one handle per input (0: none). */
  grad(retainGraph: boolean, allowUnused: boolean): void;
  setGradEnabled(enabled: boolean): boolean;
  gradEnabled(): boolean;
  /** The dtype's number, negative for none; @returns what it was before, in this thread */
  setAutocast(dtype: number): number;
  requiresGrad(handle: number): boolean;
  requiresGrad_(handle: number, flag: boolean): void;
  gradOf(handle: number): number;
  setGrad(handle: number, gradient: number): void;

  /** The ref's id; the frame then holds its generation. */
  makeRef(handle: number, kind: number, owner: string): number;
  attachRef(id: number, generation: number): number;
  releaseRef(id: number, generation: number): boolean;
  releaseRefsOf(owner: string): number;
  liveRefs(): number;

  /** A number that names the membership in this process. */
  openCommunicator(
    backend: string,
    name: string,
    rank: number,
    size: number,
    rendezvous: string,
    deadlineMs: number,
    delayMs: number,
    told: Uint8Array | undefined,
    group: string,
    checked: boolean,
    direct: boolean,
  ): number;
  closeCommunicator(communicator: number): void;
  abortCommunicator(communicator: number, reason: string): void;
  abortGroup(name: string, reason: string): number;
  /** A number that names the work in this thread until it was waited for; 0 when it is complete. */
  issueCollective(
    communicator: number,
    kind: number,
    output: number,
    input: number,
    reduction: number,
    peer: number,
    outputSplits: readonly number[],
    inputSplits: readonly number[],
  ): number;
  waitWork(work: number): void;
  awaitWork(work: number): Promise<void>;
  workDone(work: number): boolean;
  /** How many tensors; the frame then holds their handles, from place 1 on. */
  gatherRagged(communicator: number, input: number): number;
  /** A number that names the store in this process. */
  openStore(host: string, port: number, listens: boolean, timeoutMs: number): number;
  setInStore(store: number, key: string, value: string): void;
  readFromStore(store: number, key: string): string | undefined;
  addInStore(store: number, key: string, amount: number): number;
  storePort(store: number): number;
  closeStore(store: number): void;
  setHostAddress(address: string): void;
  hostAddress(): string;
  /** The whole file, which this process and others read and write. */
  mapShared(path: string): ArrayBuffer;
  enterSharedFolder(folder: string, processIndex: number): void;
  leaveSharedFolder(): void;
  inSharedFolder(): boolean;
  /** A new tensor with the `ndim` sizes in the frame. */
  emptyShared(dtype: number, ndim: number): number;
  /** The handle of a flat one. */
  emptySharedOffThread(dtype: number, numel: number): Promise<number>;
  /** The tensors' memory is theirs until the promise is fulfilled, handles or not. */
  copyOffThread(from: number, into: number, begin: number, numel: number): Promise<void>;
  /** A new 1-D tensor of the host that the device of `like` copies from and to by itself. */
  emptyPinned(dtype: number, numel: number, like: number): number;
  /** What the two below take. */
  copyBeside(into: number, from: number): object;
  followCopy(copy: object): void;
  copyArrived(copy: object): Promise<void>;
  exportRef(id: number, generation: number): Readonly<Record<string, unknown>>;
  /** The ref's id; the frame then holds its generation. */
  importRef(exported: Readonly<Record<string, unknown>>): number;

  memory(): NativeUse & {
    readonly residentBytes: number;
    readonly tags: Readonly<Record<string, NativeUse>>;
  };
  allocationTag(name: string): number;
  setAllocationTag(tag: number): number;
  resetPeakMemory(): void;
  cudaMemory(index: number): { freeBytes: number; totalBytes: number; heldBytes: number; liveBytes: number };
  releaseCachedMemory(): void;
  /** This thread counts anew what tensors without memory would take: of the host's kernels, or of a GPU's. */
  startMeter(ofGpu: boolean): void;
  stopMeter(): void;
  readMeter(): Metered;
  resetMeterPeak(): void;

  /** A new 1-D tensor that begins on a page of memory. */
  pageAligned(dtype: number, numel: number): number;
  /** The file's number. */
  openScratch(directory: string, sizeBytes: number): number;
  scratchIsDirect(file: number): boolean;
  readScratch(file: number, handle: number, offsetBytes: number): Promise<void>;
  writeScratch(file: number, handle: number, offsetBytes: number): Promise<void>;
  closeScratch(file: number): void;
  /** A transfer's number, for {@link awaitScratch}. */
  beginScratch(file: number, handle: number, offsetBytes: number, write: boolean): number;
  /** Blocks. */
  awaitScratch(transfer: number, deadlineMs: number): void;

  /** A new file with a checksum for each chunk, and room for its bytes where they are known: its number. */
  createSummed(path: string, chunkBytes: number, expectedBytes: number): Promise<number>;
  /** `memory`: a handle, or bytes; they must not change until the promise is fulfilled. */
  appendSummed(
    file: number,
    memory: number | Uint8Array,
    offsetBytes: number,
    sizeBytes: number,
  ): Promise<void>;
  /** Brings it to the disk and closes it: its checksums. */
  finishSummed(file: number): Promise<Uint32Array>;
  openSummed(path: string): Promise<{ readonly file: number; readonly sizeBytes: number }>;
  /** `stretches`: where each begins in the file, in memory, and its size; `sums`: none, or one a chunk. @returns bytes read */
  readSummed(
    file: number,
    stretches: Float64Array,
    memory: number | Uint8Array,
    chunkBytes: number,
    sums: Uint32Array,
    what: string,
  ): Promise<number>;
  dropSummed(file: number): void;
  crc32c(bytes: Uint8Array, before: number, byTable: boolean): number;

  /** Whether the open file is locked by this process now; undefined where its file system knows no locks. */
  tryLock(descriptor: number): boolean | undefined;

  /** Of the first `count` handles in the frame. */
  giveMemoryUp(count: number): boolean;
  takeMemoryBack(count: number): void;
  /** A new 1-D tensor. */
  emptyPaged(dtype: number, numel: number): number;
  vacate(handle: number): void;
  occupy(handle: number): void;
  /** Of the first `count` handles in the frame. */
  markOffloaded(count: number, away: boolean): void;
  sharesMemory(one: number, other: number): boolean;

  /** Throws where this process has no such device. */
  deviceNumber(name: string): number;
  deviceCount(kind: string): number;
  /** @returns the one before, in this thread */
  setDefaultDevice(device: number): number;
  enterDevice(device: number): void;
  /** A handle, of the same tensor where it is there already. */
  toDevice(handle: number, device: number): number;
  /** 0 for a thread without a device. */
  sayPlace(): number;
  followPlace(place: number): void;
  /** The number of what {@link endReading} waits for. */
  beginReading(handle: number): number;
  /** A handle of the elements, in host memory; once. */
  endReading(reading: number): number;

  /** The functions from here to `touch` are for tests of the pretend device. Of every schedule from now on. */
  simSeed(seed: number): void;
  simStatistics(): {
    readonly lateOperators: number;
    readonly readBacks: number;
    readonly hostWaits: number;
  };
  /** This thread goes on in that stream, 0 the default one. @returns the number of the one before */
  simStream(stream: number): number;
  /** @returns the number of an event behind all that the stream was given */
  simRecord(): number;
  /** The stream goes on behind it. */
  simBlock(event: number): void;
  /** The stream uses the tensor's memory. */
  simUse(handle: number): void;
  simSynchronize(): void;
  /** A copy that is not waited for. */
  copyLate(handle: number, from: number): void;
  /** The first byte, read by the CPU wherever it lies. */
  touch(handle: number): number;

  setNumThreads(count: number): void;
  bindThread(processors: readonly number[]): void;
  numThreads(): number;
  nativeInfo(): NativeInfo;
  selfTest(): { readonly matmul: boolean; readonly gloo: boolean };
}

/** What the addon was built with and runs on. */
export interface NativeInfo {
  /** libtorch's version, such as "2.13.0". */
  readonly torch: string;
  readonly cxxAbi: "cxx11" | "pre-cxx11";
  /** Whether processes can talk through Gloo. */
  readonly gloo: boolean;
  /** Whether it has Troupe's kernels for CUDA, with a GPU at hand or without. */
  readonly cuda: boolean;
  /** The instruction set that Troupe's own kernels use. */
  readonly capability: "avx512" | "avx2" | "scalar";
  /** What multiplies bfloat16 matrices: libtorch, or, where the processor has no such products, float32 panels. */
  readonly bfloat16Products: "libtorch" | "float32 panels";
  /** Threads that an operator may use in this JavaScript thread. */
  readonly numThreads: number;
}

type MakeError = (code: ErrorCode, message: string, fields: Readonly<Record<string, unknown>>) => TroupeError;

/**
 * The argument frame: arguments of an operator before {@link Native.call}, results after it. Shared with the addon, one per
 * thread. No user code may run between writing it and the call.
 */
export const frame = new Float64Array(1 << 14);

let loaded: Native | undefined;

/**
 * The addon of this thread, loaded at the first call.
 * @throws {TroupeError} `NATIVE_UNAVAILABLE` when it is not built or cannot be loaded
 */
export function native(): Native {
  loaded ??= load();
  return loaded;
}

/** The addon where this thread has loaded it. */
export function loadedNative(): Native | undefined {
  return loaded;
}

/** Loads the addon now instead of at the first tensor. The main thread does so before it spawns threads that compute. */
export function loadNative(): void {
  native();
}

function load(): Native {
  const path = addonPath();
  if (!existsSync(path)) makeAddon(path);
  const reason = whyUnsafe(path);
  if (reason !== undefined)
    throw unavailable(path, "an addon that no other user could have made or changed", reason);
  const addon = requireAddon(path);
  addon.connect(
    frame,
    schemas,
    (code, message, fields) => new TroupeError(code, { relayed: message }, { fields }),
  );
  return addon;
}

const builtAddon = fileURLToPath(new URL("../../../build/troupe.node", import.meta.url));
const setUp = fileURLToPath(new URL("../../../scripts/build-native.mjs", import.meta.url));

function addonPath(): string {
  return process.env.TROUPE_ADDON ?? builtAddon;
}

/** The first use of the package, or of a clone, builds it, which takes minutes: what is done is said on standard error. */
function makeAddon(path: string): void {
  if (path === builtAddon) spawnSync(process.execPath, [setUp], { stdio: ["ignore", 2, 2] });
  if (existsSync(path)) return;
  throw unavailable(path, "the built addon", "none");
}

function requireAddon(path: string): Native {
  try {
    return createRequire(import.meta.url)(path);
  } catch (cause) {
    const reason = cause instanceof Error ? cause.message : String(cause);
    throw unavailable(path, "an addon that can be loaded", reason, cause);
  }
}

function unavailable(path: string, expected: string, got: string, cause?: unknown): TroupeError {
  return new TroupeError(
    "NATIVE_UNAVAILABLE",
    { where: "native", expected: `${expected} at ${path}`, got, hint: "run `npx troupe doctor`" },
    { fields: { path }, ...(cause === undefined ? {} : { cause }) },
  );
}
