import { frame, putOptionalTensors, putTensors } from "./frame.ts";
import { native, type ProgramText } from "./native.ts";
import { adopt, type Tensor } from "./tensor.ts";

// Programs: operators of a piece of code, recorded once, forward and backward, and replayed by one call. Each is named by a number.

/** Whether the libtorch at hand lets operators be recorded. */
export function canRecordPrograms(): boolean {
  return native().canRecord();
}

/**
 * From here to {@link endForward} this thread's operators are recorded while they compute.
 * @param inputs - tensors that change from call to call
 * @param parameters - tensors that stay where they are
 * @param lists - that an operator of Troupe's may take, with other tensors and other lengths in each call
 */
export function beginRecording(
  inputs: readonly Tensor[],
  parameters: readonly Tensor[],
  lists: readonly (readonly Tensor[])[] = [],
): number {
  const next = putTensors(putTensors(0, inputs, "program", "inputs"), parameters, "program", "parameters");
  putLists(next, lists);
  return native().beginRecording();
}

/**
 * Ends the forward half.
 * @param results - that a replay shall give
 * @param streams - of random numbers that were drawn, in order; each replay is given others
 * @returns why no program comes of it, as an error if a line was in the way; "" if one does
 */
export function endForward(
  recording: number,
  results: readonly Tensor[],
  streams: readonly number[],
): string | Error {
  putList(putTensors(0, results, "program", "results"), streams);
  return native().endForward(recording);
}

export function dropRecording(recording: number): void {
  native().dropRecording(recording);
}

/**
 * Ends a recording that has no backward.
 * @returns the program, or why there is none
 */
export function endProgram(recording: number): number | string | Error {
  return native().endProgram(recording);
}

/**
 * Records how `walk` computes gradients, and ends the recording.
 * @param given - gradients of the results
 * @returns what `walk` gives, and the program, or why there is none
 */
export function recordBackward(
  recording: number,
  given: readonly Tensor[],
  walk: () => (Tensor | null)[],
): { readonly gradients: (Tensor | null)[]; readonly program: number | string | Error } {
  putOptionalTensors(0, given, "program", "gradients");
  native().beginBackward(recording);
  try {
    const gradients = walk();
    const made = gradients.map((gradient) => gradient ?? undefined);
    putOptionalTensors(0, made, "program", "gradients");
    return { gradients, program: native().endBackward(recording) };
  } catch (error) {
    native().dropRecording(recording);
    throw error;
  }
}

/**
 * Makes a program cheaper: what no call changes is computed once, and elementwise operators that follow each other are one pass. For one
 * that is sure and was never replayed.
 * @param fast - whether products of bfloat16 matrices are computed with what follows them, where this processor gains by it, and
 *   elementwise operators keep float32 between them, both on the CPU; that rounds less often, so bits are others. Default: false.
 */
export function improveProgram(program: number, fast = false): void {
  native().improveProgram(program, fast);
}

/**
 * From now on a device takes each half of a program's calls at once, as a graph that it captured: the same operators on memory of their
 * own, so that bits stay. Arguments are copied to that memory, and results from it. The first call is issued singly.
 * On the host nothing changes.
 * @returns why calls are not captured; "" if they are
 */
export function captureProgram(program: number): string {
  return native().captureProgram(program);
}

/** Whether this processor, with this libtorch, multiplies bfloat16 tiles, which fast programs are made of. */
export function hasTileProducts(): boolean {
  return native().hasTileProducts();
}

/**
 * Chooses whether this thread computes the gradients of an output layer with its loss over tiles too, with other bits.
 * @returns what it was before
 */
export function setTileProducts(wanted: boolean): boolean {
  return native().setTileProducts(wanted);
}

/** @returns a program's operators */
export function describeProgram(program: number): ProgramText {
  return native().describeProgram(program);
}

/** @returns how two programs differ, in words; "" if they compute the same */
export function programDifference(one: number, other: number): string {
  return native().programDifference(one, other);
}

/** Whether a program is one for inputs of these shapes, strides and dtypes. */
export function programFits(program: number, inputs: readonly Tensor[]): boolean {
  putTensors(0, inputs, "program", "inputs");
  return native().programFits(program);
}

/**
 * Replays the forward half.
 * @param leaves - which of the results shall ask for gradients
 * @param keep - whether {@link playBackward} follows
 * @param lists - as {@link beginRecording} had them
 * @returns the results, and the number of the call; 0 unless it is kept
 */
export function playForward(
  program: number,
  inputs: readonly Tensor[],
  streams: readonly number[],
  leaves: readonly boolean[],
  keep: boolean,
  lists: readonly (readonly Tensor[])[] = [],
): { readonly results: Tensor[]; readonly call: number } {
  putCall(inputs, streams, leaves, lists);
  const call = native().playForward(program, keep ? Purpose.resultsAndBackward : Purpose.results);
  const handles = Array.from(frame.subarray(0, leaves.length));
  return { results: handles.map((handle) => adopt(handle)), call };
}

/**
 * Replays the forward half for {@link playBackward} alone, if its call was not kept: what only results need is not computed again.
 * @param streams - as that call had them
 * @param lists - as {@link beginRecording} had them
 * @returns the number of the call
 */
export function playForwardAgain(
  program: number,
  inputs: readonly Tensor[],
  streams: readonly number[],
  lists: readonly (readonly Tensor[])[] = [],
): number {
  putCall(inputs, streams, [], lists);
  return native().playForward(program, Purpose.backward);
}

/** The purposes of a replay of forward, as the addon counts them. */
const Purpose = { results: 0, resultsAndBackward: 1, backward: 2 } as const;

function putCall(
  inputs: readonly Tensor[],
  streams: readonly number[],
  leaves: readonly boolean[],
  lists: readonly (readonly Tensor[])[],
): void {
  const next = putList(putTensors(0, inputs, "program", "inputs"), streams);
  putLists(putList(next, leaves.map(Number)), lists);
}

/** Memory for one of the gradients that a program gives: an element of a flat tensor, and those behind it. */
export interface GradientPlace {
  /** Its index among the gradients. */
  readonly gradient: number;
  readonly flat: Tensor;
  readonly begin: number;
}

/**
 * Replays the backward half, and releases the call.
 * @param count - the number of gradients that were recorded
 * @param places - where gradients that are products may be written; others get memory of their own
 * @returns undefined, with nothing computed, if `gradients` were recorded in another layout and elements of either share memory
 */
export function playBackward(
  call: number,
  gradients: readonly Tensor[],
  count: number,
  places: readonly GradientPlace[] = [],
): (Tensor | null)[] | undefined {
  const flats = places.map(({ flat }) => flat);
  const next = putTensors(putTensors(0, gradients, "program", "gradients"), flats, "program", "places");
  putList(
    next,
    places.flatMap(({ gradient, begin }) => [gradient, begin]),
  );
  if (!native().playBackward(call)) return undefined;
  const handles = Array.from(frame.subarray(0, count));
  return handles.map((handle) => (handle === 0 ? null : adopt(handle)));
}

/** Releases a call whose backward never comes. */
export function dropCall(call: number): void {
  native().dropCall(call);
}

export function dropProgram(program: number): void {
  native().dropProgram(program);
}

function putLists(at: number, lists: readonly (readonly Tensor[])[]): void {
  frame[at] = lists.length;
  let next = at + 1;
  for (const list of lists) next = putTensors(next, list, "program", "lists");
}

function putList(at: number, numbers: readonly number[]): number {
  frame[at] = numbers.length;
  let next = at + 1;
  for (const number of numbers) frame[next++] = number;
  return next;
}
