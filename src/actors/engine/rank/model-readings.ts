import { evaluating, type Module, wrapForward } from "../../../compute/nn/index.ts";
import { hold, moveRef, scope, Tensor } from "../../../compute/tensor/index.ts";
import { describeValue, TroupeError } from "../../../errors/index.ts";
import { valuesOf } from "../../../job/index.ts";
import { disposeBatch, type Rows, type Tokenizer, tokenizerFromSpec } from "../../../library/data/index.ts";
import { type GeneratedText, type GenerativeModel, generateTexts } from "../../../library/models/index.ts";
import type { Pending } from "../../../runtime/index.ts";
import {
  type BatchRequest,
  type EvaluatedBatch,
  type RankEvaluated,
  type RankProtocol,
  type RowRefs,
  sentTo,
} from "../../protocols/index.ts";
import type { WeighedBatch } from "./batch-source.ts";
import type { ModelRunner } from "./model-runner.ts";

/** Work of a rank's model besides training: evaluation, prediction, samples. */
export class ModelReadings {
  readonly #runner: ModelRunner;
  /** Predictions on their way to the feeder. */
  readonly #underWay: Pending<Record<string, never>>[] = [];
  #tokenizer: Tokenizer | undefined;

  constructor(runner: ModelRunner) {
    this.#runner = runner;
  }

  /** Held-out loss of this replica's share of the batches: every `dp`-th. */
  evaluate(step: number, requests: readonly BatchRequest[], isWithin = false): RankEvaluated {
    const { job, model, reportsLosses } = this.#runner;
    if (!isWithin) this.#runner.begin(step, "evaluate");
    const batches: EvaluatedBatch[] = [];
    this.#readShare(requests, ({ batch, ...counts }, first, request) => {
      scope(() => {
        const losses = this.#throughChunks(passOf("evaluate", step, first), () => model.lossesOf(batch));
        if (losses === undefined || !reportsLosses || request === undefined) return;
        const values = losses instanceof Tensor ? losses.item() : valuesOf(losses);
        batches.push({ losses: values, ...counts });
      });
      const { predict } = job;
      if (predict !== undefined)
        this.#send("predict", passOf("predict", step, first), () => predict(model.module, batch), request);
    });
    return { batches };
  }

  /** Sends the rows of a program for this replica's share of the batches. @param isWithin - whether the step is under way */
  call(
    { step, program, args, requests }: RankProtocol["call"]["in"],
    isWithin: boolean,
  ): Record<string, never> {
    if (!isWithin) this.#runner.begin(step, `call ${program}`);
    this.#readShare(requests, ({ batch }, first, request) => {
      const rows = () => this.#runner.model.run(program, batch, args) as Rows;
      this.#send(program, passOf("call", step, first), rows, request);
    });
    return {};
  }

  /**
   * Reads this replica's share of held-out batches: every `dp`-th.
   * @param read - `first`: the first replica's request of a turn; `request`: its own, undefined to only compute along
   */
  #readShare(
    requests: readonly BatchRequest[],
    read: (batch: WeighedBatch, first: BatchRequest, request: BatchRequest | undefined) => void,
  ): void {
    const { plan, model, place, batches } = this.#runner;
    const { dp, ep } = plan.layout.mesh;
    evaluating(model.module, () => {
      for (let at = 0; at < requests.length; at += dp) {
        const first = requests[at] as BatchRequest;
        const request = requests[at + place.dp];
        // Replicas without batches left compute along if experts are shared, and report nothing.
        if (request === undefined && ep === 1) break;
        const fetched = batches.fetch(request ?? first);
        try {
          read(fetched, first, request);
        } catch (error) {
          // Other ranks may have read them: they are kept until all have.
          batches.passOver(this.#readAfter(requests, at));
          throw error;
        } finally {
          disposeBatch(fetched.batch);
        }
      }
    });
    for (const arrived of this.#underWay.splice(0)) this.#runner.context.wait(arrived);
  }

  /** This replica's batches after those at place `at`. */
  #readAfter(requests: readonly BatchRequest[], at: number): readonly BatchRequest[] {
    const { plan, place } = this.#runner;
    const { dp, ep } = plan.layout.mesh;
    const firsts = requests.flatMap((request, index) =>
      index > at && index % dp === 0 ? [[index, request] as const] : [],
    );
    return firsts.flatMap(([index, first]) => requests[index + place.dp] ?? (ep === 1 ? [] : first));
  }

  /**
   * @param by - the job's function
   * @param request - the one whose rows are sent; undefined to only compute along
   */
  #send(by: string, pass: string, predict: () => Rows, request: BatchRequest | undefined): void {
    scope(() => {
      const rows = this.#throughChunks(pass, predict);
      if (rows !== undefined && this.#runner.reportsLosses && request !== undefined)
        this.#sendRows(by, request, rows);
    });
  }

  /** @throws {TroupeError} `PREDICTIONS` unless they are tensors by name, with one row for each of the batch's samples */
  #sendRows(by: string, { split, position, numSamples }: BatchRequest, rows: Rows): void {
    const { context, feeder, plan, model } = this.#runner;
    if (rows instanceof Tensor) throw refuse(by, "rows by name, as in { logits }", "a Tensor");
    const named = Object.entries(rows);
    // Before any is sent: the feeder would keep a part of them for ever.
    for (const [name, tensor] of named) checkRows(by, name, tensor, numSamples);
    const refs: [string, RowRefs[string]][] = named.map(([name, tensor]) => {
      // A row may be a part of the batch, or of a tensor that the model keeps.
      const copy = hold(() => tensor.detach().clone());
      return [name, moveRef(copy, sentTo(feeder))];
    });
    const { generation, execution } = plan;
    const { deadlineMs } = execution;
    const part = { generation, step: model.randomness.step, split, position, rows: Object.fromEntries(refs) };
    this.#underWay.push(context.request(feeder, "predicted", part, { deadlineMs }));
  }

  sample(step: number): { text: string } {
    const { plan, job, model, engine } = this.#runner;
    this.#runner.begin(step, "sample");
    const { config, facts } = plan.job;
    const { seed } = plan.training;
    const text = this.#throughStages(`sample ${step}`, () =>
      evaluating(model.module, () =>
        engine.evaluate(() => scope(() => job.sample?.(model.module, { config, facts, seed }))),
      ),
    );
    return { text: text ?? "" };
  }

  /** Texts for this replica's share of the prompts. @param isWithin - whether the step is under way */
  generate(
    { step, call, prompts, options }: RankProtocol["generate"]["in"],
    isWithin: boolean,
  ): { texts: readonly GeneratedText[] } {
    const { plan, model, engine, place } = this.#runner;
    const spec = plan.job.facts.tokenizer;
    this.#tokenizer ??= spec && tokenizerFromSpec(spec);
    const { dp, ep } = plan.layout.mesh;
    if (!isWithin) this.#runner.begin(step, "generate");
    // Replicas that share experts compute along, each all of it.
    const size = ep > 1 ? prompts.length : Math.ceil(prompts.length / dp);
    const firstPrompt = ep > 1 ? 0 : place.dp * size;
    const share = prompts.slice(firstPrompt, firstPrompt + size);
    const written = { ...options, firstPrompt, ...(this.#tokenizer && { tokenizer: this.#tokenizer }) };
    const write = () => generateTexts(model.module as GenerativeModel & Module, share, written);
    // Replicas write until their own texts end, so all of them gather the same blocks once before.
    const texts = this.#throughStages(`generate ${call}`, () =>
      engine.holding(() => (share.length === 0 ? [] : engine.evaluate(() => scope(write)))),
    );
    const isReported = place.tp === 0 && place.pp === 0 && (ep === 1 || place.dp === 0);
    return { texts: isReported ? texts : [] };
  }

  /** Runs `body`, in which every call of the model passes through all stages and returns its result on each of them. */
  #throughStages<R>(work: string, body: () => R): R {
    const { model, stages, plan } = this.#runner;
    if (plan.layout.mesh.pp === 1) return body();
    let numCalls = 0;
    const restore = wrapForward(model.module, (forward, inputs) => {
      const pass = `${work} ${numCalls++}`;
      const result = this.#throughChunks(pass, () => forward(...inputs));
      if (result === undefined) return stages.receiveResult(pass) as never;
      stages.sendResult(pass, result);
      return result as never;
    });
    try {
      return body();
    } finally {
      restore();
    }
  }

  /** Runs a forward through all chunks, unrecorded, as `pass` on all stages. @returns the result, on the last stage alone */
  #throughChunks<R>(pass: string, body: () => R): R | undefined {
    const { engine, stages, plan } = this.#runner;
    let result: R | undefined;
    for (let chunk = 0; chunk < plan.layout.chunks; chunk++) {
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
}

/** Several orders of one step may be under way between stages: a pass is named by the samples it reads. */
function passOf(
  work: "evaluate" | "predict" | "call",
  step: number,
  { split, position }: BatchRequest,
): string {
  return `${work} ${step} ${split} ${position}`;
}

function checkRows(by: string, name: string, tensor: unknown, numSamples: number): void {
  if (!(tensor instanceof Tensor)) throw refuse(by, `"${name}" to be a tensor`, describeValue(tensor));
  const { shape } = tensor;
  if (shape[0] === numSamples) return;
  throw new TroupeError("PREDICTIONS", {
    where: by,
    expected: `"${name}" to have a row for each of ${numSamples} samples`,
    got: `shape [${shape}]`,
    hint: "keep the batch's samples in dim 0",
    fields: { name, numSamples, shape: [...shape] },
  });
}

function refuse(by: string, expected: string, got: string): TroupeError {
  return new TroupeError("PREDICTIONS", { where: by, expected, got, fields: { got } });
}
