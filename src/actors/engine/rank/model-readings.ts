import { evaluating, wrapForward } from "../../../compute/nn/index.ts";
import type { BlockEngine, MeshPlace } from "../../../compute/parallel/index.ts";
import { scope, Tensor } from "../../../compute/tensor/index.ts";
import { type Job, valuesOf } from "../../../job/index.ts";
import { disposeBatch, type TensorBatch } from "../../../library/data/index.ts";
import type { BatchRequest, EvaluatedBatch, RankEvaluated, RankPlan } from "../../protocols/index.ts";
import type { BatchSource } from "./batch-source.ts";
import type { MicroBatches } from "./micro-batches.ts";
import type { PredictionLink } from "./prediction-link.ts";
import type { RankModel } from "./rank-model.ts";
import type { Gather } from "./shard-link.ts";
import type { StageLink } from "./stage-link.ts";

/** What a model is read with. */
export interface ReadModel {
  readonly plan: RankPlan;
  readonly job: Job;
  readonly model: RankModel;
  readonly place: MeshPlace;
  readonly engine: BlockEngine<Gather>;
  readonly batches: BatchSource;
  readonly stages: StageLink;
  readonly microBatches: MicroBatches;
  readonly predictions: PredictionLink;
}

/** What a rank's model computes without being trained. Each is a pass that the runner has begun. */
export class ModelReadings {
  readonly #read: ReadModel;

  constructor(read: ReadModel) {
    this.#read = read;
  }

  /** Held-out loss of this replica's share of the batches: every `dp`-th. */
  evaluate(step: number, requests: readonly BatchRequest[]): RankEvaluated {
    const { plan, job, model, place, batches: source, microBatches } = this.#read;
    const { dp, ep } = plan.layout.mesh;
    const batches: EvaluatedBatch[] = [];
    evaluating(model.module, () => {
      for (let first = 0; first < requests.length; first += dp) {
        const request = requests[first + place.dp];
        // Replicas that have nothing of their own left compute along where experts are shared, and tell nothing.
        if (request === undefined && ep === 1) break;
        const { batch, ...counts } = source.fetch(request ?? (requests[first] as BatchRequest));
        scope(() => {
          const pass = passOf("evaluate", step, requests[first] as BatchRequest);
          const losses = microBatches.throughChunks(pass, () => model.lossesOf(batch));
          if (losses === undefined || !microBatches.reports || request === undefined) return;
          const values = losses instanceof Tensor ? losses.item() : valuesOf(losses);
          batches.push({ losses: values, ...counts });
        });
        if (job.predict !== undefined) this.#predict(step, batch, requests[first] as BatchRequest, request);
        disposeBatch(batch);
      }
    });
    this.#read.predictions.settle();
    return { batches };
  }

  /** @param request - whose rows are sent; none where others only compute along */
  #predict(step: number, batch: TensorBatch, first: BatchRequest, request: BatchRequest | undefined): void {
    const { job, model, microBatches, predictions } = this.#read;
    scope(() => {
      const pass = passOf("predict", step, first);
      const rows = microBatches.throughChunks(pass, () => job.predict?.(model.module, batch));
      if (rows !== undefined && microBatches.reports && request !== undefined)
        predictions.send(step, request, rows);
    });
  }

  /** What the job shows of its model. */
  sample(step: number): { text: string } {
    const { plan, job, model, engine } = this.#read;
    const { config, facts } = plan.job;
    const { seed } = plan.training;
    const restore = plan.layout.mesh.pp > 1 ? this.#stageForward(step) : () => {};
    try {
      const text = evaluating(model.module, () =>
        engine.evaluate(() => scope(() => job.sample?.(model.module, { config, facts, seed }))),
      );
      return { text: text ?? "" };
    } finally {
      restore();
    }
  }

  /** Lets every call of the model pass through all stages and give its result on each of them. */
  #stageForward(step: number): () => void {
    const { model, stages, microBatches } = this.#read;
    let numCalls = 0;
    return wrapForward(model.module, (forward, inputs) => {
      const pass = `sample ${step} ${numCalls++}`;
      const result = microBatches.throughChunks(pass, () => forward(...inputs));
      if (result === undefined) return stages.receiveResult(pass) as never;
      stages.sendResult(pass, result);
      return result as never;
    });
  }
}

/** Several orders of one step may be under way between stages: a pass is named by what it reads. */
function passOf(work: "evaluate" | "predict", step: number, { split, position }: BatchRequest): string {
  return `${work} ${step} ${split} ${position}`;
}
