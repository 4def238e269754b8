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

/** One storage of a device, offloaded to the host. */
export interface HostActivation {
  /** The tensors that share the storage. */
  readonly aliases: readonly Tensor[];
  readonly host: Tensor;
  /** The copy that is back on the device already, or under way. */
  returning: { readonly buffer: Tensor; readonly copy: BesideCopy } | undefined;
}

/** Smaller storages are not worth a transfer. */
const LEAST_BYTES = 64 * 1024;

/**
 * Offloads a device rank's activations to pinned host memory between forward and backward. Copies run in a stream of their
 * own, alongside the device's computation; the thread waits for none.
 */
export class HostActivations {
  /** Offloads the storage of a tensor; see `Offloader` in `src/compute/parallel/tape/offloader.ts`. */
  keep(aliases: readonly Tensor[]): HostActivation | undefined {
    const [first] = aliases;
    if (first === undefined || first.device === "cpu" || first.numel * itemBytes(first.dtype) < LEAST_BYTES)
      return undefined;
    const host = tagMemory("staging", () => hold(() => emptyPinned(first)));
    // A transposed or expanded tensor keeps its memory, which only giveMemoryUp tells.
    noGrad(() => scope(() => void copyBeside(host, first.contiguous())));
    if (giveMemoryUp(aliases)) return { aliases, host, returning: undefined };
    host.dispose();
    return undefined;
  }

  /** Begins to bring back an activation that will soon be needed. */
  expect(kept: HostActivation): void {
    if (kept.returning !== undefined) return;
    const { numel, dtype } = kept.host;
    const buffer = tagMemory("staging", () => hold(() => empty([numel], { dtype })));
    kept.returning = { buffer, copy: copyBeside(buffer, kept.host) };
  }

  /** Gives the tensors their memory back, with its contents. */
  bring(kept: HostActivation): void {
    this.expect(kept);
    const { buffer, copy } = kept.returning as NonNullable<HostActivation["returning"]>;
    const [first] = kept.aliases as [Tensor];
    takeMemoryBack(kept.aliases);
    copy.follow();
    // The result of copy_ holds the memory too, so it must not leave the scope.
    noGrad(() => scope(() => void first.view([-1]).copy_(buffer)));
    this.drop(kept);
  }

  /** Drops an activation that will not be needed. */
  drop({ host, returning }: HostActivation): void {
    returning?.buffer.dispose();
    host.dispose();
  }
}
