import { TroupeError } from "../errors.ts";
import { matchesName } from "./inspected-part.ts";
import type { TensorSummary } from "./tensor-summary.ts";

/** What can be looked at: a model's parameters, or the tensors that its code records. */
export type Inspected = "parameters" | "tensors";

/** Somebody wants to know of some of them. */
export interface InspectionRequest {
  readonly of: Inspected;
  readonly pattern: string;
  readonly resolve: (summaries: readonly TensorSummary[]) => void;
  readonly reject: (reason: Error) => void;
}

/**
 * Requests to inspect a model while it is trained. They are answered by the next step that is granted, and outlive a
 * restart of the ranks.
 */
export class Inspections {
  readonly #requests = new Set<InspectionRequest>();

  /** @returns those that match, in the order of the model, as a step leaves them */
  ask(of: Inspected, pattern: string): Promise<readonly TensorSummary[]> {
    return new Promise((resolve, reject) => this.#requests.add({ of, pattern, resolve, reject }));
  }

  /** Requests that nobody has answered yet. */
  get open(): readonly InspectionRequest[] {
    return [...this.#requests];
  }

  /** A step has been looked at for these requests. */
  answer(
    requests: readonly InspectionRequest[],
    parameters: readonly TensorSummary[],
    tensors: readonly TensorSummary[],
  ): void {
    for (const request of requests) {
      this.#requests.delete(request);
      const all = request.of === "parameters" ? parameters : tensors;
      request.resolve(all.filter(({ name }) => matchesName(name, request.pattern)));
    }
  }

  /** The run has ended: whoever waits is told so. */
  close(): void {
    for (const { reject } of this.#requests) {
      reject(new TroupeError("INSPECTION_OVER", "[inspect] expected a step to come: got the end of the run"));
    }
    this.#requests.clear();
  }
}
