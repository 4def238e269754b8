import { writeSync } from "node:fs";

/**
 * Writes this thread's standard output and error at once, until the result is disposed. A thread's streams go through its main
 * thread, which answers each piece: output of code that does not return to its event loop would appear after its end.
 */
export function directOutput(): Disposable {
  const { stdout, stderr } = process;
  const before = [stdout.write, stderr.write] as const;
  stdout.write = writerOf(1);
  stderr.write = writerOf(2);
  return {
    [Symbol.dispose]: () => {
      [stdout.write, stderr.write] = before;
    },
  };
}

/** Writes text to a descriptor at once, however full its pipe is. */
export function writeNow(descriptor: 1 | 2, text: string | Uint8Array): void {
  let rest = typeof text === "string" ? Buffer.from(text) : text;
  while (rest.length > 0) {
    try {
      rest = rest.subarray(writeSync(descriptor, rest));
    } catch (error) {
      if ((error as NodeJS.ErrnoException).code !== "EAGAIN") return; // the reader is gone
      Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, 1);
    }
  }
}

function writerOf(descriptor: 1 | 2): typeof process.stdout.write {
  return (chunk: string | Uint8Array, ...rest: unknown[]) => {
    writeNow(descriptor, chunk);
    const done = rest.find((each) => typeof each === "function");
    if (done !== undefined) queueMicrotask(() => done());
    return true;
  };
}
