import { mapShared } from "../../../src/compute/tensor/index.ts";

/** Words that a test shares with actors, whichever thread or process they live in, by the path of a file. */
export function mapWords(path: string): Int32Array {
  return new Int32Array(mapShared(path));
}

/** Blocks this thread until a test opens the gate. */
export function waitAtGate(path: string): void {
  const gate = mapWords(path);
  // No word wakes a thread of another process: look every millisecond.
  const nobody = new Int32Array(new SharedArrayBuffer(4));
  while (Atomics.load(gate, 0) === 0) Atomics.wait(nobody, 0, 0, 1);
}
