import { native } from "./native.ts";

/** Releases what nobody released and nobody can reach any more: the net under tensors outside every scope. */
const net = new FinalizationRegistry<{ readonly handle: number; readonly sizeBytes: number }>((lost) => {
  native().release(lost.handle);
  native().unwatch(lost.sizeBytes);
});

/** The owner of one tensor in the native table: what can be disposed, and no more. {@link Tensor} adds the rest. */
export class TensorHandle implements Disposable {
  /** The tensor's number in this thread's table, 0 once disposed. For `src/compute/tensor` and for native calls only. */
  handle: number;
  /** Bytes that V8 was told of, -1 while a scope answers for them. */
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

  /** Gives up the handle without releasing it: the caller answers for it from now on. */
  forget(): number {
    const handle = this.handle;
    this.handle = 0;
    this.unwatch();
    return handle;
  }

  /** Takes the net away that {@link watch} has spread. */
  unwatch(): void {
    if (this.watchedBytes < 0) return;
    net.unregister(this);
    native().unwatch(this.watchedBytes);
    this.watchedBytes = -1;
  }

  /** Has the tensor released when this object is collected, since no scope will do it. */
  watch(): void {
    const sizeBytes = native().watch(this.handle);
    this.watchedBytes = sizeBytes;
    net.register(this, { handle: this.handle, sizeBytes }, this);
  }
}
