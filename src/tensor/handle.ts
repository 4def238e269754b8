import { native } from "./native.ts";

/** Releases what nobody released and nobody can reach any more: the net under tensors outside every scope. */
const net = new FinalizationRegistry<number>((handle) => native().release(handle));

/** The owner of one tensor in the native table: what can be disposed, and no more. {@link Tensor} adds the rest. */
export class TensorHandle implements Disposable {
  /** The tensor's number in this thread's table, 0 once disposed. For `src/tensor` and for native calls only. */
  handle: number;
  private watched = false;

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
    if (this.watched) net.unregister(this);
    this.handle = 0;
    return handle;
  }

  /** Has the tensor released when this object is collected, since no scope will do it. */
  watch(): void {
    this.watched = true;
    net.register(this, this.handle, this);
  }
}
