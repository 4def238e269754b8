import { native } from "./native.ts";

/** Releases tensors outside every scope that were not disposed and are no longer reachable. */
const net = new FinalizationRegistry<{ readonly handle: number; readonly sizeBytes: number }>((lost) => {
  native().release(lost.handle);
  native().unwatch(lost.sizeBytes);
});

/** Owns one tensor in the native table and can dispose it. {@link Tensor} adds the rest. */
export class TensorHandle implements Disposable {
  /** Number of the tensor in this thread's table, 0 once disposed. For `src/compute/tensor` and native calls only. */
  handle: number;
  /** Bytes reported to V8, -1 while a scope owns the tensor. */
  private watchedBytes = -1;

  constructor(handle: number) {
    this.handle = handle;
  }

  /** Whether the tensor was released: by `dispose`, by its scope, or because it moved to another thread. */
  get disposed(): boolean {
    return this.handle === 0;
  }

  /** Releases the tensor now. Its memory is freed when nothing else (a view, the autograd graph) holds it. Idempotent. */
  dispose(): void {
    const handle = this.forget();
    if (handle !== 0) native().release(handle);
  }

  [Symbol.dispose](): void {
    this.dispose();
  }

  /** Gives up the handle without releasing the tensor, which the caller owns from now on. */
  forget(): number {
    const handle = this.handle;
    this.handle = 0;
    this.unwatch();
    return handle;
  }

  /** Undoes {@link watch}. */
  unwatch(): void {
    if (this.watchedBytes < 0) return;
    net.unregister(this);
    native().unwatch(this.watchedBytes);
    this.watchedBytes = -1;
  }

  /** Releases the tensor when this object is garbage-collected, because no scope will. */
  watch(): void {
    const sizeBytes = native().watch(this.handle);
    this.watchedBytes = sizeBytes;
    net.register(this, { handle: this.handle, sizeBytes }, this);
  }
}
