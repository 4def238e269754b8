import type { Address } from "../protocol/address.ts";

type Outcome<T> = { readonly answer: T } | { readonly error: Error };

/** The answer to a question that a blocking actor has sent; `wait` blocks for it. */
export class Pending<T> {
  readonly target: Address;
  readonly kind: string;
  /** On the process's clock. */
  readonly deadlineMs: number;
  #outcome: Outcome<T> | undefined;

  constructor(target: Address, kind: string, deadlineMs: number) {
    this.target = target;
    this.kind = kind;
    this.deadlineMs = deadlineMs;
  }

  /** Whether an answer or an error has been received. It changes only while the actor polls or waits. */
  get settled(): boolean {
    return this.#outcome !== undefined;
  }

  resolve(answer: T): void {
    this.#outcome ??= { answer };
  }

  reject(error: Error): void {
    this.#outcome ??= { error };
  }

  /** Returns the answer or throws the error. Call it only once settled. */
  take(): T {
    const outcome = this.#outcome as Outcome<T>;
    if ("error" in outcome) throw outcome.error;
    return outcome.answer;
  }
}
