import { TroupeError } from "../../errors/index.ts";
import type { HeldMemory, InspectedUpdate } from "../protocols/index.ts";
import type { RecordedSummary, TensorSummary } from "./tensor-summary.ts";

/** What a step that is looked at tells. */
export interface Findings {
  /** Those that somebody's pattern matches, in the order of the model. */
  readonly parameters: readonly TensorSummary[];
  /** How those that somebody's pattern matches were moved, in the order of the model. */
  readonly updates: readonly InspectedUpdate[];
  /** What the model's code has recorded, along the model. */
  readonly tensors: readonly RecordedSummary[];
  /** In rank order. */
  readonly memory: readonly HeldMemory[];
}

/** Somebody wants to know. */
export interface InspectionRequest {
  readonly of: keyof Findings;
  /** Of the parameters' names. */
  readonly pattern: string;
  /** Whether the numbers of recorded tensors are wanted beside their statistics. */
  readonly values: boolean;
  readonly resolve: (findings: Findings) => void;
  readonly reject: (reason: Error) => void;
}

/**
 * Requests to inspect a run while it makes steps. They are answered by the next step that is granted, and outlive a
 * restart of the ranks.
 */
export class Inspections {
  readonly #requests = new Set<InspectionRequest>();
  #isClosed = false;

  /**
   * @returns what the step finds; of the other kinds it may have looked at nothing
   * @throws {TroupeError} `INSPECTION_OVER` where no step comes any more
   */
  ask(of: keyof Findings, pattern: string, values = false): Promise<Findings> {
    if (this.#isClosed) return Promise.reject(over());
    return new Promise((resolve, reject) => this.#requests.add({ of, pattern, values, resolve, reject }));
  }

  /** Requests that nobody has answered yet. */
  get open(): readonly InspectionRequest[] {
    return [...this.#requests];
  }

  /** A step has been looked at for these requests. */
  answer(requests: readonly InspectionRequest[], findings: Findings): void {
    for (const request of requests) {
      this.#requests.delete(request);
      request.resolve(findings);
    }
  }

  /** The run has ended: whoever waits is told so, and whoever asks from now on. */
  close(): void {
    this.#isClosed = true;
    for (const { reject } of this.#requests) reject(over());
    this.#requests.clear();
  }
}

function over(): TroupeError {
  return new TroupeError("INSPECTION_OVER", {
    where: "inspect",
    expected: "a step to come",
    got: "the end of the run",
  });
}
