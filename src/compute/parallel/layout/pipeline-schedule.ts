import { TroupeError } from "../../../errors/index.ts";

/**
 * The order in which a stage runs its micro-batches. "gpipe": all forwards, then all backwards. "1f1b": forwards only until the
 * pipe is full, then one forward, one backward. "interleaved": 1F1B over several chunks a stage. @see Huang et al. 2019,
 * "GPipe"; Narayanan et al. 2021, "Efficient Large-Scale Language Model Training on GPU Clusters Using Megatron-LM"
 */
export type ScheduleName = "gpipe" | "1f1b" | "interleaved";

/** One pass of one micro-batch through one chunk of a stage. */
export interface PipelineAction {
  readonly kind: "forward" | "backward";
  readonly microBatch: number;
  /** Index of the stage's chunk; chunk c of stage s is number c · numStages + s along the model. */
  readonly chunk: number;
}

/** The pipeline that a schedule is made for. */
export interface PipelineShape {
  readonly numStages: number;
  readonly numMicroBatches: number;
  /** Chunks of the model on each stage; 1 unless interleaved. */
  readonly numChunks: number;
}

/**
 * The actions of a stage in one step, in order. Each forward first receives from the chunk before it along the model and then
 * sends to the chunk after it, each backward the other way round; sends do not wait. Every chunk takes its micro-batches in
 * order, both ways and under every schedule, so that gradients are summed alike.
 * @param stage - from 0
 * @throws {TroupeError} `PIPELINE_SCHEDULE` if the schedule does not exist for that shape
 */
export function pipelineSchedule(
  name: ScheduleName,
  stage: number,
  shape: PipelineShape,
): readonly PipelineAction[] {
  checkShape(name, stage, shape);
  const { numMicroBatches, numChunks } = shape;
  const numPasses = numMicroBatches * numChunks;
  const numAhead = Math.min(numPasses, forwardsAhead(name, stage, shape));
  const actions: PipelineAction[] = [];
  for (let pass = 0; pass < numAhead; pass++) actions.push(forward(pass, shape));
  for (let pass = 0; pass < numPasses; pass++) {
    if (pass + numAhead < numPasses) actions.push(forward(pass + numAhead, shape));
    actions.push(backward(pass, shape));
  }
  return actions;
}

/**
 * Forwards before the first backward, without the one that is paired with it. A stage runs ahead by as many as the first
 * micro-batch takes to come back; interleaved, that is twice the way and all chunks but the last.
 */
function forwardsAhead(name: ScheduleName, stage: number, shape: PipelineShape): number {
  const { numStages, numMicroBatches, numChunks } = shape;
  const toTheEnd = numStages - stage - 1;
  switch (name) {
    case "gpipe":
      return numMicroBatches;
    case "1f1b":
      return toTheEnd;
    case "interleaved":
      return toTheEnd * 2 + (numChunks - 1) * numStages;
  }
}

/** Passes go through the chunks in groups of `numStages` micro-batches: a group through chunk a, then through b, ... */
function forward(pass: number, { numStages, numChunks }: PipelineShape): PipelineAction {
  const group = Math.floor(pass / (numStages * numChunks));
  const chunk = Math.floor(pass / numStages) % numChunks;
  const microBatch = numChunks === 1 ? pass : group * numStages + (pass % numStages);
  return { kind: "forward", microBatch, chunk };
}

/** Backward goes through the micro-batches in the same order, and through the chunks from the last to the first. */
function backward(pass: number, shape: PipelineShape): PipelineAction {
  const { microBatch, chunk } = forward(pass, shape);
  return { kind: "backward", microBatch, chunk: shape.numChunks - 1 - chunk };
}

function checkShape(name: ScheduleName, stage: number, shape: PipelineShape): void {
  const { numStages, numMicroBatches, numChunks } = shape;
  const counts = { numStages, numMicroBatches, numChunks };
  for (const [count, value] of Object.entries(counts)) {
    if (!Number.isSafeInteger(value) || value < 1) throw refusal(`${count} ≥ 1`, value, counts);
  }
  if (!Number.isSafeInteger(stage) || stage < 0 || stage >= numStages)
    throw refusal(`a stage from 0 to ${numStages - 1}`, stage, counts);
  if (name !== "interleaved") {
    if (numChunks > 1) throw refusal(`one chunk a stage for ${name}`, numChunks, counts, "use interleaved");
    return;
  }
  if (numChunks === 1) throw refusal("two chunks a stage or more for interleaved", 1, counts, "use 1f1b");
  if (numMicroBatches % numStages === 0) return;
  const below = Math.floor(numMicroBatches / numStages) * numStages;
  const nearest = [below, below + numStages].filter((count) => count > 0).join(" or ");
  throw refusal(
    `micro-batches in multiples of ${numStages} stages`,
    numMicroBatches,
    counts,
    `use ${nearest}`,
  );
}

function refusal(
  expected: string,
  got: number,
  fields: Readonly<Record<string, unknown>>,
  hint?: string,
): TroupeError {
  return new TroupeError("PIPELINE_SCHEDULE", { where: "pipeline", expected, got: `${got}`, hint, fields });
}
