import type { Randomness } from "../../../compute/nn/index.ts";
import type { BlockEngine, MeshPlace, PassKey } from "../../../compute/parallel/index.ts";
import { full, hold, type LateNumber, readLater, scope, Tensor } from "../../../compute/tensor/index.ts";
import { type Losses, weighLosses, weighValues } from "../../../job/index.ts";
import { disposeBatch, type TensorBatch } from "../../../library/data/index.ts";
import type { BatchSource, WeighedBatch } from "./batch-source.ts";
import type { Gather, ShardLink } from "./shard-link.ts";
import type { StageLink } from "./stage-link.ts";
import type { StepMetrics } from "./step-metrics.ts";

/** What micro-batches pass through on one rank. */
export interface MicroBatchPath {
  readonly engine: BlockEngine<Gather>;
  readonly batches: BatchSource;
  readonly stages: StageLink;
  readonly shard: ShardLink;
  readonly randomness: Randomness;
  readonly place: MeshPlace;
  /** Micro-batches of one replica in a step. */
  readonly microBatchesAt: (step: number) => number;
  readonly numChunks: number;
  readonly metrics: StepMetrics;
}

/** A loss as a step's end tells it and, while a device may still compute it, as the device has it: the report's to release. */
export interface ReportedLoss {
  readonly nats: LateNumber;
  /** float64 [1] */
  readonly onDevice: Tensor | undefined;
}

/** What a step adds up of its micro-batches, where their losses are computed and told. */
export interface StepReport {
  /** Each weighed by its share. */
  readonly losses: ReportedLoss[];
  /** The same by name, where losses have names; each waits for its values. */
  readonly namedLosses: (() => Readonly<Record<string, number>>)[];
  /** The losses of a rank that does not report them, for comparison: they must have the same bits as the reporting rank's. */
  readonly witnesses: LateNumber[];
  /** How many labels count in each micro-batch, where the data was looked at for that. */
  readonly numCounted: number[];
  numSamples: number;
  /** Undefined where they are not counted. */
  numTokens: number | undefined;
}

/** One rank's passes of micro-batches, forward and backward, with what comes from other stages and goes to them. */
export class MicroBatches {
  readonly #path: MicroBatchPath;
  /** Batches that are under way. */
  readonly #inUse = new Map<number, WeighedBatch>();

  constructor(path: MicroBatchPath) {
    this.#path = path;
  }

  /** @param lossesOf - the losses of one batch */
  forward(step: number, key: PassKey, lossesOf: (batch: TensorBatch) => Losses, report: StepReport): void {
    const { engine, stages } = this.#path;
    const work = `step ${step}`;
    const batch = this.#batchOf(step, key.microBatch);
    const received = stages.isFirst(key.chunk) ? [] : stages.receiveActivations(work, key);
    this.#draw(step, key);
    this.#path.metrics.begin(batch.weight);
    scope(() => {
      let losses: Losses | undefined;
      const weighed = () => {
        losses = lossesOf(batch.batch);
        return weighLosses(losses, batch.weight);
      };
      const { result: loss, sent } = engine.forward(key, weighed, received);
      if (loss === undefined) stages.sendActivations(work, key, sent);
      else this.report(lossOf(loss), namedValues(losses as Losses), batch, report);
    });
  }

  /** @param last - whether the step's gradients are whole after it */
  backward(step: number, key: PassKey, last: boolean): void {
    const { engine, stages, shard, microBatchesAt } = this.#path;
    const work = `step ${step}`;
    const gradients = stages.isLast(key.chunk)
      ? [hold(() => full([], shard.progress.lossScale?.scale ?? 1))]
      : stages.receiveGradients(work, key);
    this.#draw(step, key);
    const completion = { chunk: key.microBatch === microBatchesAt(step) - 1, step: last };
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

  /**
   * Adds what a micro-batch came to, where this rank tells it.
   * @param loss - of the losses together, weighed by their share
   * @param named - each of them as it is, where they have names
   */
  report(
    loss: ReportedLoss,
    named: (() => Readonly<Record<string, number>>) | undefined,
    batch: WeighedBatch,
    report: StepReport,
  ): void {
    if (!this.reports) {
      loss.onDevice?.dispose();
      report.witnesses.push(loss.nats);
      return;
    }
    report.losses.push(loss);
    if (batch.numCounted !== undefined) report.numCounted.push(batch.numCounted);
    if (named !== undefined) report.namedLosses.push(() => weighValues(named(), batch.weight));
    report.numSamples += batch.numSamples;
    report.numTokens = batch.numTokens === undefined ? undefined : (report.numTokens ?? 0) + batch.numTokens;
  }

  /** Sets which random numbers forward draws, and backward where it computes again. */
  #draw(step: number, { microBatch }: PassKey): void {
    const { randomness, place, microBatchesAt } = this.#path;
    randomness.microBatch = place.dp * microBatchesAt(step) + microBatch;
  }

  #batchOf(step: number, microBatch: number): WeighedBatch {
    const known = this.#inUse.get(microBatch);
    if (known !== undefined) return known;
    const batch = this.#path.batches.next(step, microBatch);
    this.#inUse.set(microBatch, batch);
    return batch;
  }

  #letGo(microBatch: number): void {
    const batch = this.#inUse.get(microBatch);
    this.#inUse.delete(microBatch);
    if (batch !== undefined) disposeBatch(batch.batch);
  }
}

/** The values of losses that have names, once they are known. */
export function namedValues(losses: Losses): (() => Record<string, number>) | undefined {
  if (losses instanceof Tensor) return undefined;
  const late = Object.entries(losses).map(([name, loss]) => [name, readLater(loss)] as const);
  return () => Object.fromEntries(late.map(([name, value]) => [name, value()]));
}

/** A loss for the report, a scalar of any floating dtype. */
function lossOf(loss: Tensor): ReportedLoss {
  const isOnDevice = loss.device !== "cpu" && loss.device !== "meta";
  const onDevice = isOnDevice ? hold(() => loss.detach().to("float64").view([1])) : undefined;
  return { nats: readLater(loss), onDevice };
}
