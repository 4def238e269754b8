import type { Batch } from "../../data/index.ts";
import type { Randomness } from "../../nn/index.ts";
import type { BlockEngine, MeshPlace, PassKey } from "../../parallel/index.ts";
import { full, hold, scope, type Tensor } from "../../tensor/index.ts";
import { type BatchSource, disposeBatch, numTokensIn } from "./batch-source.ts";
import type { Gather, ShardLink } from "./shard-link.ts";
import type { StageLink } from "./stage-link.ts";

/** What micro-batches pass through on one rank. */
export interface MicroBatchPath {
  readonly engine: BlockEngine<Gather>;
  readonly batches: BatchSource;
  readonly stages: StageLink;
  readonly shard: ShardLink;
  readonly randomness: Randomness;
  readonly place: MeshPlace;
  /** Micro-batches of one replica in one step. */
  readonly accumulation: number;
  readonly numChunks: number;
  /** The job's loss of one batch. */
  readonly lossOf: (batch: Batch) => Tensor;
}

/** What a step adds up: the losses of its micro-batches, where they are computed and told, and their tokens. */
export interface StepReport {
  readonly lossesNats: number[];
  numSamples: number;
  numTokens: number;
}

/** One rank's passes of micro-batches, forward and backward, with what comes from other stages and goes to them. */
export class MicroBatches {
  readonly #path: MicroBatchPath;
  /** Batches that are under way. */
  readonly #inUse = new Map<number, Batch>();

  constructor(path: MicroBatchPath) {
    this.#path = path;
  }

  forward(step: number, key: PassKey, report: StepReport): void {
    const { engine, stages, lossOf } = this.#path;
    const work = `step ${step}`;
    const batch = this.#batchOf(step, key.microBatch);
    const received = stages.isFirst(key.chunk) ? [] : stages.receiveActivations(work, key);
    this.#draw(key);
    scope(() => {
      const { result: loss, sent } = engine.forward(key, () => lossOf(batch), received);
      if (loss === undefined) stages.sendActivations(work, key, sent);
      else this.#report(loss.item(), batch, report);
    });
  }

  /** @param last - whether the step's gradients are whole after it */
  backward(step: number, key: PassKey, last: boolean): void {
    const { engine, stages, shard, accumulation } = this.#path;
    const work = `step ${step}`;
    const gradients = stages.isLast(key.chunk)
      ? [hold(() => full([], shard.progress.lossScale?.scale ?? 1))]
      : stages.receiveGradients(work, key);
    this.#draw(key);
    const completion = { chunk: key.microBatch === accumulation - 1, step: last };
    const answers = engine.backward(key, gradients, completion);
    for (const gradient of gradients) gradient?.dispose();
    if (!stages.isFirst(key.chunk)) stages.sendGradients(work, key, answers);
    if (key.chunk === 0) this.#letGo(key.microBatch);
  }

  /**
   * Forward through all chunks without recording.
   * @param pass - a name that all stages give it
   * @returns what `body` returns on the last stage, undefined on the others
   */
  throughChunks<R>(pass: string, body: () => R): R | undefined {
    const { engine, stages, numChunks } = this.#path;
    let result: R | undefined;
    for (let chunk = 0; chunk < numChunks; chunk++) {
      const key = { microBatch: 0, chunk };
      const received = stages.isFirst(chunk) ? [] : stages.receiveActivations(pass, key);
      const forwarded = engine.evaluateChunk(chunk, body, received);
      const { sent } = forwarded;
      if (forwarded.result === undefined) stages.sendActivations(pass, key, sent);
      else result = forwarded.result;
      for (const tensor of [...received, ...sent]) tensor.dispose();
    }
    return result;
  }

  /** Whether this rank tells the loss of its replica: one of those that compute it. */
  get reports(): boolean {
    return this.#path.place.tp === 0;
  }

  #report(lossNats: number, batch: Batch, report: StepReport): void {
    if (!this.reports) return;
    report.lossesNats.push(lossNats);
    report.numSamples += this.#path.batches.microBatchSize;
    report.numTokens += numTokensIn(batch);
  }

  /** Sets which random numbers forward draws, and backward where it computes again. */
  #draw({ microBatch }: PassKey): void {
    const { randomness, place, accumulation } = this.#path;
    randomness.microBatch = place.dp * accumulation + microBatch;
  }

  #batchOf(step: number, microBatch: number): Batch {
    const known = this.#inUse.get(microBatch);
    if (known !== undefined) return known;
    const batch = this.#path.batches.next(step, microBatch);
    this.#inUse.set(microBatch, batch);
    return batch;
  }

  #letGo(microBatch: number): void {
    const batch = this.#inUse.get(microBatch);
    this.#inUse.delete(microBatch);
    if (batch !== undefined) disposeBatch(batch);
  }
}
