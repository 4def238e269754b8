import {
  type BesideCopy,
  copyBeside,
  empty,
  emptyPinned,
  giveMemoryUp,
  hold,
  itemBytes,
  noGrad,
  scope,
  type Tensor,
  tagMemory,
  takeMemoryBack,
} from "../tensor/index.ts";

/** One memory of a device that is in the host's. */
export interface HostActivation {
  /** The tensors whose memory it was. */
  readonly aliases: readonly Tensor[];
  readonly host: Tensor;
  /** What came back of it already, or is about to. */
  returning: { readonly buffer: Tensor; readonly copy: BesideCopy } | undefined;
}

/** What is smaller is not worth its way. */
const LEAST_BYTES = 64 * 1024;

/**
 * Keeps what a rank on a device keeps between forward and backward in pinned memory of the host. Copies go both ways in a stream of
 * their own, beside what the device computes: the thread waits for none.
 */
export class HostActivations {
  readonly #leastBytes: number;

  /** @param options - `leastBytes`: what is smaller stays */
  constructor({ leastBytes = LEAST_BYTES }: { readonly leastBytes?: number } = {}) {
    this.#leastBytes = leastBytes;
  }

  /** Takes the memory of a tensor in; see `Offloader` in `src/compute/parallel/tape/offloader.ts`. */
  keep(aliases: readonly Tensor[]): HostActivation | undefined {
    const [first] = aliases;
    if (
      first === undefined ||
      first.device === "cpu" ||
      first.numel * itemBytes(first.dtype) < this.#leastBytes
    )
      return undefined;
    const host = tagMemory("staging", () => hold(() => emptyPinned(first)));
    copyBeside(host, first);
    if (giveMemoryUp(aliases)) return { aliases, host, returning: undefined };
    host.dispose();
    return undefined;
  }

  /** Begins to bring back what will soon be asked for. */
  expect(kept: HostActivation): void {
    if (kept.returning !== undefined) return;
    const { numel, dtype } = kept.host;
    const buffer = tagMemory("staging", () => hold(() => empty([numel], { dtype })));
    kept.returning = { buffer, copy: copyBeside(buffer, kept.host) };
  }

  /** Gives the tensors their memory back, as it was. */
  bring(kept: HostActivation): void {
    this.expect(kept);
    const { buffer, copy } = kept.returning as NonNullable<HostActivation["returning"]>;
    const [first] = kept.aliases as [Tensor];
    takeMemoryBack(kept.aliases);
    copy.follow();
    // What copy_ returns holds the memory too: it must not leave the scope.
    noGrad(() => scope(() => void first.view([-1]).copy_(buffer)));
    this.drop(kept);
  }

  /** Forgets what nobody will ask for. */
  drop({ host, returning }: HostActivation): void {
    returning?.buffer.dispose();
    host.dispose();
  }
}
