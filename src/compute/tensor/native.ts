import { spawnSync } from "node:child_process";
import { existsSync } from "node:fs";
import { createRequire } from "node:module";
import { dirname, join } from "node:path";
import { fileURLToPath } from "node:url";
import { type ErrorCode, fileErrors, TroupeError } from "../../errors/index.ts";
import { whyUnsafe } from "../../errors/untrusted/index.ts";
import { schemas } from "./schemas.generated.ts";

/** The ledger's entry for a tag or for all memory. */
interface NativeUse {
  readonly liveBytes: number;
  readonly peakBytes: number;
}

/** One half of a program, in words. */
export interface ProgramHalf {
  /** Operators that a call issues without the program, those that only make views included. */
  readonly numIssued: number;
  /** Operators that a replay runs, in order: a line each, with what it gives, its name, and what it reads. */
  readonly operators: readonly string[];
}

/** A program in words. */
export interface ProgramText {
  readonly forward: ProgramHalf;
  readonly backward: ProgramHalf;
}

/** Costs of a computation on meta tensors in one thread, as if they had memory. */
export interface Metered {
  /** Bytes of the living meta tensors. */
  readonly liveBytes: number;
  /** The most bytes at once, since the beginning or the last `resetPeak`. */
  readonly peakBytes: number;
  /** Bytes of all tensors made, by size: entry `i` counts those of more than 2^(i − 1) and at most 2^i bytes. */
  readonly madeBytes: readonly number[];
  /**
   * Operations of matrix products, convolutions and attention, forward and backward: an addition and a multiplication are
   * two.
   */
  readonly flops: number;
  /** The part of {@link flops} with 16-bit operands. */
  readonly narrowFlops: number;
  /** Bytes of tensors that collectives passed around a group of ranks, an all-reduce counted twice. */
  readonly ringBytes: number;
  /** Number of those passes. */
  readonly numRings: number;
  /** Operators without a shape rule: assumed to keep all inputs and outputs for backward. */
  readonly unruled: readonly string[];
}

/**
 * The addon's functions. A handle is a positive integer that names a tensor of this thread. Where a comment mentions the
 * frame, lists and sizes are passed in `frame` and not as arguments.
 */
export interface Native {
  connect(frame: Float64Array, schemas: readonly string[], makeError: MakeError): void;
  call(operator: number): number;
  intern(text: string): number;
  schemas(namespace: string): string[];

  release(handle: number): boolean;
  /** Releases the first `count` handles in the frame. */
  releaseMany(count: number): void;
  /** Reports the tensor's memory to V8. @returns its bytes, for {@link unwatch} */
  watch(handle: number): number;
  unwatch(sizeBytes: number): void;
  liveTensors(): number;
  /** Returns the dtype's number; the frame then holds ndim and the sizes. */
  describe(handle: number): number;
  device(handle: number): string;
  item(handle: number): number;
  /** Makes a tensor with the `ndim` sizes in the frame. */
  tensor(data: ArrayBufferView, dtype: number, ndim: number): number;
  copyFrom(handle: number, data: ArrayBufferView): void;
  toTypedArray(handle: number, data: ArrayBufferView): void;
  mapFile(path: string, dtype: number, numel: number, offsetBytes: number): number;

  /** The frame holds the lists outputs, gradients (with gaps) and inputs. */
  backward(retainGraph: boolean): void;
  /** The frame holds the lists outputs, gradients (with gaps) and inputs; afterwards one handle per input (0: none). */
  grad(retainGraph: boolean, allowUnused: boolean, firstByRows: number): void;
  /** Programs: see `programs.ts`, which writes their lists to the frame. */
  canRecord(): boolean;
  beginRecording(): number;
  endForward(recording: number): string | Error;
  dropRecording(recording: number): void;
  endProgram(recording: number): number | string | Error;
  beginBackward(recording: number): void;
  endBackward(recording: number): number | string | Error;
  programDifference(one: number, other: number): string;
  improveProgram(program: number, fast: boolean): void;
  captureProgram(program: number): string;
  hasTileProducts(): boolean;
  /** Returns this thread's previous one. */
  setTileProducts(wanted: boolean): boolean;
  describeProgram(program: number): ProgramText;
  programFits(program: number): boolean;
  playForward(program: number, purpose: number): number;
  playBackward(call: number): boolean;
  dropCall(call: number): void;
  dropProgram(program: number): void;
  setGradEnabled(enabled: boolean): boolean;
  gradEnabled(): boolean;
  /** Takes the dtype's number, negative for none; returns this thread's previous one. */
  setAutocast(dtype: number): number;
  /** Returns this thread's previous one. */
  setInvariant(invariant: boolean): boolean;
  requiresGrad(handle: number): boolean;
  requiresGrad_(handle: number, flag: boolean): void;
  gradOf(handle: number): number;
  setGrad(handle: number, gradient: number): void;

  /** Returns the ref's id; the frame then holds its generation. */
  makeRef(handle: number, kind: number, owner: string): number;
  attachRef(id: number, generation: number): number;
  releaseRef(id: number, generation: number): boolean;
  releaseRefsOf(owner: string): number;
  liveRefs(): number;

  /** Returns the number of the membership in this process. */
  openCommunicator(
    backend: string,
    name: string,
    rank: number,
    size: number,
    rendezvous: string,
    deadlineMs: number,
    delayMs: number,
    status: Uint8Array | undefined,
    group: string,
    checked: boolean,
    direct: boolean,
    look: (() => void) | undefined,
  ): number;
  closeCommunicator(communicator: number): void;
  abortCommunicator(communicator: number, reason: string): void;
  abortGroup(name: string, reason: string): number;
  /** Returns the number of the work in this thread, valid until it was waited for; 0 if it is complete. */
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
  /** Returns the number of tensors; the frame then holds their handles, from index 1. */
  gatherRagged(communicator: number, input: number): number;
  /** Returns the number of the store in this process. */
  openStore(host: string, port: number, listens: boolean, timeoutMs: number): number;
  setInStore(store: number, key: string, value: string): void;
  readFromStore(store: number, key: string): string | undefined;
  addInStore(store: number, key: string, amount: number): number;
  storePort(store: number): number;
  closeStore(store: number): void;
  setHostAddress(address: string): void;
  hostAddress(): string;
  /** Maps a complete file that this process and others read and write. */
  mapShared(path: string): ArrayBuffer;
  enterSharedFolder(folder: string, processIndex: number): void;
  leaveSharedFolder(): void;
  inSharedFolder(): boolean;
  /** Makes a tensor with the `ndim` sizes in the frame. */
  emptyShared(dtype: number, ndim: number): number;
  /** Resolves with the handle of a 1-D tensor. */
  emptySharedOffThread(dtype: number, numel: number): Promise<number>;
  /** Keeps the tensors' memory until the promise resolves, even if the handles are released. */
  copyOffThread(from: number, into: number, begin: number, numel: number): Promise<void>;
  /** Makes a 1-D tensor in host memory that is pinned for the device of `like`. */
  emptyPinned(dtype: number, numel: number, like: number): number;
  /** Returns the copy for {@link followCopy} and {@link copyArrived}. */
  copyBeside(into: number, from: number): object;
  followCopy(copy: object): void;
  copyArrived(copy: object): Promise<void>;
  exportRef(id: number, generation: number): Readonly<Record<string, unknown>>;
  /** Returns the ref's id; the frame then holds its generation. */
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
  /** Starts a new count of what meta tensors of this thread would take, with the host's kernels or a GPU's. */
  startMeter(ofGpu: boolean): void;
  stopMeter(): void;
  readMeter(): Metered;
  resetMeterPeak(): void;

  /** Makes a 1-D tensor whose memory begins at a page. */
  pageAligned(dtype: number, numel: number): number;
  /** Returns the file's number. */
  openScratch(directory: string, sizeBytes: number): number;
  scratchIsDirect(file: number): boolean;
  readScratch(file: number, handle: number, offsetBytes: number): Promise<void>;
  writeScratch(file: number, handle: number, offsetBytes: number): Promise<void>;
  closeScratch(file: number): void;
  /** Returns the transfer's number, for {@link awaitScratch}. */
  beginScratch(file: number, handle: number, offsetBytes: number, write: boolean): number;
  /** Blocks until the transfer is complete. */
  awaitScratch(transfer: number, deadlineMs: number): void;

  /**
   * Creates a file with a checksum for each chunk, and reserves its bytes if their number is known. Resolves with the file's
   * number.
   */
  createSummed(path: string, chunkBytes: number, expectedBytes: number): Promise<number>;
  /** `memory` is a handle, or bytes that must not change until the promise resolves. */
  appendSummed(
    file: number,
    memory: number | Uint8Array,
    offsetBytes: number,
    sizeBytes: number,
  ): Promise<void>;
  /** Flushes the file to disk and closes it; resolves with its checksums. */
  finishSummed(file: number): Promise<Uint32Array>;
  openSummed(path: string): Promise<{ readonly file: number; readonly sizeBytes: number }>;
  /**
   * `stretches` holds for each its offset in the file, its offset in memory and its size; `sums` is empty or has one per
   * chunk. Resolves with the bytes read.
   */
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

  /** Tries to lock an open file; returns whether this process has the lock, undefined if the file system has no locks. */
  tryLock(descriptor: number): boolean | undefined;

  /** Takes the first `count` handles in the frame. */
  giveMemoryUp(count: number): boolean;
  takeMemoryBack(count: number): void;
  /** Makes a 1-D tensor. */
  emptyPaged(dtype: number, numel: number): number;
  vacate(handle: number): void;
  occupy(handle: number): void;
  /** Takes the first `count` handles in the frame. */
  markOffloaded(count: number, offloaded: boolean): void;
  sharesMemory(one: number, other: number): boolean;

  /** Throws if this process does not have the device. */
  deviceNumber(name: string): number;
  deviceCount(kind: string): number;
  /** Returns this thread's previous one. */
  setDefaultDevice(device: number): number;
  enterDevice(device: number): void;
  /** Returns a new handle, of the same tensor if it is on the device already. */
  toDevice(handle: number, device: number): number;
  /** Returns 0 for a thread without a device. */
  sayPlace(): number;
  followPlace(place: number): void;
  /** Returns the number for {@link endReading}. */
  beginReading(handle: number): number;
  /** Returns a handle of the elements in host memory. Call it once. */
  endReading(reading: number): number;

  setNumThreads(count: number): void;
  bindThread(processors: readonly number[]): void;
  numThreads(): number;
  nativeInfo(): NativeInfo;
  selfTest(): { readonly matmul: boolean; readonly gloo: boolean };
}

/** Facts about the addon's build and its machine. */
export interface NativeInfo {
  /** libtorch's version, such as "2.13.0". */
  readonly torch: string;
  /** Whether Gloo is built in. */
  readonly gloo: boolean;
  /** Whether Troupe's CUDA kernels are built in, even if there is no GPU. */
  readonly cuda: boolean;
  /** The instruction set that Troupe's own kernels use. */
  readonly capability: "amx" | "avx512" | "avx2" | "scalar";
  /** How bfloat16 matrices are multiplied: by libtorch, or by float32 panels if the processor has no bfloat16 products. */
  readonly bfloat16Products: "libtorch" | "float32 panels";
  /** Threads that an operator may use in this JavaScript thread. */
  readonly numThreads: number;
}

type MakeError = (code: ErrorCode, message: string, fields: Readonly<Record<string, unknown>>) => TroupeError;

/**
 * The argument frame. It holds the arguments of an operator before {@link Native.call} and the results after it. One per
 * thread, shared with the addon. No user code may run between writing it and the call.
 */
export const frame = new Float64Array(1 << 14);

let loaded: Native | undefined;

/**
 * Returns the addon of this thread, loaded at the first call.
 * @throws {TroupeError} `NATIVE_UNAVAILABLE` if it is not built or cannot be loaded
 */
export function native(): Native {
  loaded ??= load();
  return loaded;
}

/** Returns the addon if this thread has loaded it. */
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
  const addon = requireAddon(path);
  addon.connect(
    frame,
    schemas,
    (code, message, fields) => new TroupeError(code, { relayed: message, fields }),
  );
  return addon;
}

/**
 * Paths of the addon and of the library beside it that makes Node a server that forks (native/fork_server.c). Undefined where there is
 * none, where another user could have changed it, and with CUDA: no GPU has shown that a fork computes on it.
 */
export function forkSupport(): { readonly library: string; readonly addon: string } | undefined {
  const addon = addonPath();
  const library = join(dirname(addon), "fork-server.so");
  const forks = existsSync(library) && whyUnsafe(library) === undefined && !native().nativeInfo().cuda;
  return forks ? { library, addon } : undefined;
}

const builtAddon = fileURLToPath(new URL("../../../build/troupe.node", import.meta.url));
const setUp = fileURLToPath(new URL("../../../scripts/build-native.mjs", import.meta.url));

function addonPath(): string {
  return process.env.TROUPE_ADDON ?? builtAddon;
}

/**
 * Gets the addon at the first use of the package or a clone. That takes seconds, or minutes where it is compiled; progress goes to
 * standard error.
 */
function makeAddon(path: string): void {
  if (path === builtAddon) runSetUp();
  if (existsSync(path)) return;
  throw unavailable(path, "the built addon", "none");
}

function runSetUp(): void {
  spawnSync(process.execPath, [setUp], { stdio: ["ignore", 2, 2] });
}

function requireAddon(path: string): Native {
  const reason = whyUnsafe(path);
  if (reason !== undefined)
    throw unavailable(path, "an addon that no other user could have made or changed", reason);
  const load = () => createRequire(import.meta.url)(path);
  try {
    try {
      return load();
    } catch (cause) {
      // Its libtorch may have gone, or become another version, since it was chosen.
      if (path !== builtAddon) throw cause;
      runSetUp();
      return load();
    }
  } catch (cause) {
    const reason = cause instanceof Error ? cause.message : String(cause);
    throw unavailable(path, "an addon that can be loaded", reason, { cause });
  }
}

const unavailable = fileErrors("NATIVE_UNAVAILABLE", "native", "run `npx troupe doctor`", "at");
