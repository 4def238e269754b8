import { TroupeError } from "../../errors/index.ts";
import type { HeldMemory, InspectedUpdate } from "../protocols/index.ts";
import { checkPattern } from "./inspected-part.ts";
import type { RecordedSummary, TensorSummary } from "./tensor-summary.ts";

/** The findings of an inspected step. */
export interface Findings {
  /** Parameters that a request's pattern matches, in the order of the model. */
  readonly parameters: readonly TensorSummary[];
  /** Movement of parameters that a request's pattern matches, in the order of the model. */
  readonly updates: readonly InspectedUpdate[];
  /** Tensors that the model's code has recorded, along the model. */
  readonly tensors: readonly RecordedSummary[];
  /** In rank order. */
  readonly memory: readonly HeldMemory[];
}

/** A request for findings. */
export interface InspectionRequest {
  readonly of: keyof Findings;
  /** Pattern of names. */
  readonly pattern: string;
  /** Whether the numbers of recorded tensors are wanted beside their statistics. */
  readonly values: boolean;
  readonly resolve: (findings: Findings) => void;
  readonly reject: (reason: Error) => void;
}

/** Requests to inspect a run while it makes steps. The next granted step answers them; they outlive a restart of the ranks. */
export class Inspections {
  readonly #requests = new Set<InspectionRequest>();
  #isClosed = false;

  /**
   * @returns a step's findings; other kinds than `of` may be empty
   * @throws {TroupeError} `OPTION` for a pattern that cannot be read; `INSPECTION_OVER` if no step follows
   */
  async ask(of: keyof Findings, pattern: string, values = false): Promise<Findings> {
    if (this.#isClosed) throw over();
    checkPattern(pattern);
    return await new Promise((resolve, reject) =>
      this.#requests.add({ of, pattern, values, resolve, reject }),
    );
  }

  get open(): readonly InspectionRequest[] {
    return [...this.#requests];
  }

  answer(requests: readonly InspectionRequest[], findings: Findings): void {
    for (const request of requests) {
      this.#requests.delete(request);
      request.resolve(findings);
    }
  }

  /** Ends the run: rejects all requests, present and future. */
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
