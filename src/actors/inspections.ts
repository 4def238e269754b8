import { TroupeError } from "../errors.ts";
import { joinStatistics, standardDeviation } from "../parallel/index.ts";
import { type InspectedPart, matchesName } from "./inspected-part.ts";

/** A parameter after one step, and the gradient that step made it with. */
export interface ParameterSummary {
  readonly name: string;
  readonly shape: readonly number[];
  readonly std: number;
  readonly mean: number;
  readonly max: number;
  readonly min: number;
  /** Of the averaged gradient, before it is clipped; 0 where the parameter is not trained. */
  readonly gradStd: number;
  readonly gradMean: number;
}

/** Somebody wants to know of parameters. */
export interface InspectionRequest {
  readonly pattern: string;
  readonly resolve: (summaries: readonly ParameterSummary[]) => void;
  readonly reject: (reason: Error) => void;
}

/**
 * Requests to inspect a model while it is trained. They are answered by the next step that is granted, and outlive a
 * restart of the ranks.
 */
export class Inspections {
  readonly #requests = new Set<InspectionRequest>();

  /** @returns what the parameters that match are after a step, in the order of the model */
  ask(pattern: string): Promise<readonly ParameterSummary[]> {
    return new Promise((resolve, reject) => this.#requests.add({ pattern, resolve, reject }));
  }

  /** Requests that nobody has answered yet. */
  get open(): readonly InspectionRequest[] {
    return [...this.#requests];
  }

  /** @param order - names of all parameters */
  answer(
    requests: readonly InspectionRequest[],
    parts: readonly InspectedPart[],
    order: readonly string[],
  ): void {
    const summaries = summarize(parts, order);
    for (const request of requests) {
      this.#requests.delete(request);
      request.resolve(summaries.filter(({ name }) => matchesName(name, request.pattern)));
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

/** Joins what the shards know of each parameter. */
function summarize(parts: readonly InspectedPart[], order: readonly string[]): ParameterSummary[] {
  const byName = Map.groupBy(parts, ({ name }) => name);
  return order.flatMap((name) => {
    const ofName = byName.get(name);
    if (ofName === undefined) return [];
    const values = joinStatistics(ofName.map((part) => part.values));
    const gradients = ofName.flatMap(({ gradient }) => gradient ?? []);
    const gradient = joinStatistics(gradients);
    return [
      {
        name,
        shape: ofName[0]?.shape ?? [],
        std: standardDeviation(values),
        mean: values.mean,
        max: values.max,
        min: values.min,
        gradStd: gradient.count === 0 ? 0 : standardDeviation(gradient),
        gradMean: gradient.mean,
      },
    ];
  });
}
