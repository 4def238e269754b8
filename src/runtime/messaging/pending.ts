import type { Address } from "../protocol/address.ts";

type Outcome<T> = { readonly answer: T } | { readonly error: Error };

/** An answer that a blocking actor has asked for and not yet waited for. */
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

  /** Whether an answer or an error has been received; it moves only while the actor polls or waits. */
  get settled(): boolean {
    return this.#outcome !== undefined;
  }

  resolve(answer: T): void {
    this.#outcome ??= { answer };
  }

  reject(error: Error): void {
    this.#outcome ??= { error };
  }

  /** The answer, or a throw of the error; only once it is settled. */
  take(): T {
    const outcome = this.#outcome as Outcome<T>;
    if ("error" in outcome) throw outcome.error;
    return outcome.answer;
  }
}
