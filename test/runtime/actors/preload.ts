import { forkSupport, mapShared } from "../../../src/compute/tensor/index.ts";
import type { Codec, ProcessSupport } from "../../../src/runtime/index.ts";

/** A value that cannot be cloned as it is: it lives in one thread and is known elsewhere by its number. */
export class Handle {
  readonly #id: number;

  constructor(id: number) {
    this.#id = id;
  }

  get id(): number {
    return this.#id;
  }
}

/** Messages that were passed for release in this thread. */
export const released: unknown[] = [];

export const codecs: readonly Codec[] = [
  {
    tag: "handle",
    accepts: (value) => value instanceof Handle,
    encode: (value) => (value as Handle).id,
    decode: (data) => new Handle(data as number),
  },
];

/** These actors send no tensors: all that their processes share is credit counters and status boards. */
export const processes: ProcessSupport = { mapFile: mapShared, forks: forkSupport };

export function onUndelivered(message: unknown): void {
  released.push(message);
}
