import type { InspectionRequest, Inspections } from "../../inspect/index.ts";
import type { RunSchedule, StepOrder } from "../../protocols/index.ts";
import type { BestStates } from "./best-states.ts";

/** A step's order, with the inspections that the step answers. */
export interface OrderedStep {
  readonly requests: readonly InspectionRequest[];
  readonly message: StepOrder;
}

/** Parts of {@link StepOrders}. */
export interface StepOrdersOptions {
  readonly schedule: RunSchedule;
  readonly inspections: Inspections;
  /** Says by which factor learning rates are reduced. */
  readonly best: BestStates | undefined;
}

/** Writes the orders of one generation's steps. A request for an inspection goes with the next order that is written. */
export class StepOrders {
  readonly #options: StepOrdersOptions;
  readonly #asked = new Set<InspectionRequest>();

  constructor(options: StepOrdersOptions) {
    this.#options = options;
  }

  /** @param step - counted from 0 */
  next(step: number): OrderedStep {
    const { schedule, best } = this.#options;
    const requests = this.#newRequests();
    const patterns = (kind: InspectionRequest["of"]) =>
      requests.flatMap(({ of, pattern }) => (of === kind ? pattern : []));
    const { rateFactor = 1 } = best?.at(step) ?? {};
    const message = {
      step,
      ...(rateFactor !== 1 && { rateFactor }),
      inspect: patterns("parameters"),
      inspectUpdates: patterns("updates"),
      record: requests.some(({ of }) => of === "tensors"),
      recordValues: requests.flatMap(({ values, pattern }) => (values ? pattern : [])),
      ledger: requests.some(({ of }) => of === "memory") || (step + 1) % schedule.memoryEverySteps === 0,
      histograms: (step + 1) % schedule.histogramsEverySteps === 0,
    };
    return { requests, message };
  }

  /** Requests whose steps are not made go with later orders, except for those that the next step answers. */
  rewind(ofNext: readonly InspectionRequest[]): void {
    for (const request of this.#options.inspections.open)
      if (!ofNext.includes(request)) this.#asked.delete(request);
  }

  #newRequests(): InspectionRequest[] {
    const requests = this.#options.inspections.open.filter((request) => !this.#asked.has(request));
    for (const request of requests) this.#asked.add(request);
    return requests;
  }
}
