import { failedModule, type Module } from "../../../compute/nn/index.ts";
import { OpenScope } from "../../../compute/tensor/index.ts";
import { noteOrigin, TroupeError } from "../../../errors/index.ts";
import {
  type BackwardOptions,
  checkLosses,
  checkReturned,
  type ForwardResult,
  type JobConfig,
  type Losses,
  type RankContext,
  type SaveName,
} from "../../../job/index.ts";
import { checkStateName } from "../../../library/checkpoint/index.ts";
import { type DatasetFacts, disposeBatch, type TensorBatch } from "../../../library/data/index.ts";
import { type Received, toFailure } from "../../../runtime/index.ts";
import type { RankProtocol, RankStepped } from "../../protocols/index.ts";
import { directOutput } from "./direct-output.ts";
import { GrantedStep } from "./granted-step.ts";
import { LoopMicroBatch } from "./loop-micro-batch.ts";
import { loopOrder } from "./loop-order.ts";
import { MeshRank } from "./mesh-rank.ts";
import { ModelReadings } from "./model-readings.ts";
import type { ModelRunner } from "./model-runner.ts";

/** Orders that a loop takes before a step. */
const BETWEEN_STEPS = [
  "step",
  "accumulate",
  "call",
  "generate",
  "evaluate",
  "sample",
  "verdict",
  "end",
] as const;

/** Orders of a live model's step. */
const WITHIN_STEP = ["accumulate", "call", "generate", "evaluate", "update", "end"] as const;

type Order = Received<RankProtocol, (typeof BETWEEN_STEPS)[number] | "update">;

/** A granted step that is still unanswered. */
interface Granted {
  readonly order: Extract<Order, { kind: "step" | (typeof WITHIN_STEP)[number] }>;
  readonly step: GrantedStep;
}

/** A step that was made, and is answered when its turn of the loop is over. */
interface Owed {
  readonly order: Extract<Order, { kind: "step" | "accumulate" | "update" }>;
  readonly stepped: RankStepped;
}

/** Runs a job's training loop in a rank's thread: it blocks for the conductor's orders, and answers requests between steps. */
export class RankLoop extends MeshRank implements RankContext {
  readonly #runner: ModelRunner;
  readonly #readings: ModelReadings;
  #numSteps: number;
  #granted: Granted | undefined;
  #owed: Owed | undefined;
  /** The conductor's order that no step follows, once it has come. */
  #end: Extract<Order, { kind: "end" }> | undefined;
  /** Whether the loop goes through its batches itself. */
  #byBatches = false;
  #wantsStop = false;
  /** The step after which the run ends, if ranks have asked it to stop. */
  #endsAt = Number.POSITIVE_INFINITY;
  #isOver = false;
  #hasFailed: { readonly error: unknown } | undefined;

  constructor(runner: ModelRunner) {
    const { groups, metrics, randomness } = runner.model;
    super(groups, runner.rank, metrics, randomness, runner.model.reached);
    this.#runner = runner;
    this.#readings = new ModelReadings(runner);
    this.#numSteps = runner.plan.initial.step;
  }

  /** Runs the loop, or a live model's calls, to its end. An error that it throws answers its present order, or the next. */
  run(isLive: boolean): void {
    try {
      this.#receive(["ready"]).reply({});
      checkReturned(this.#loop(isLive));
      this.#leave();
    } catch (error) {
      this.#noteModule(error);
      this.#hasFailed = { error };
      this.#answerOwed();
      const order = this.#granted?.order ?? this.#end;
      this.#granted = undefined;
      order?.fail(error);
    }
  }

  /** The job's own loop, or the default one: a step trains all micro-batches of the job, or a live model's calls. */
  #loop(isLive: boolean): unknown {
    using _ = directOutput();
    const { job } = this.#runner;
    if (job.loop !== undefined && !isLive) return job.loop(this);
    for (const _ of this.steps()) {
      if (isLive) this.#makeCalledStep();
      else this.trainStep((batch) => job.loss(this.model, batch, this));
    }
    return undefined;
  }

  #makeCalledStep(): void {
    const { order: first, step } = this.#granted as Granted;
    for (let order = first as Received<RankProtocol, (typeof WITHIN_STEP)[number]>; ; ) {
      this.#granted = { order, step };
      if (order.kind === "end") {
        this.#drop(order, step);
        return;
      }
      if (order.kind === "call" || order.kind === "generate") this.#read(order, true);
      else if (order.kind === "evaluate")
        order.reply(this.#readings.evaluate(order.message.step, order.message.requests, true));
      else {
        const update = order.kind === "update" ? order.message : order.message.update;
        if (update !== undefined) step.update(update);
        if (order.kind !== "accumulate") step.handOn();
        else if (!this.#accumulate(step, order)) {
          if (!step.isBegun) {
            step[Symbol.dispose]();
            this.#granted = undefined;
            return;
          }
          order = this.#end ?? this.#receive(WITHIN_STEP);
          continue;
        }
        if (update !== undefined) {
          this.#answer(step);
          return;
        }
        (order as Extract<Order, { kind: "accumulate" }>).reply(step.losses);
      }
      order = this.#receive(WITHIN_STEP);
    }
  }

  /** Ends the loop within a step, which is not made. */
  #drop(end: Extract<Order, { kind: "end" }>, step: GrantedStep): void {
    this.#runner.engine.abandon();
    step[Symbol.dispose]();
    this.#granted = undefined;
    this.#end = end;
  }

  /** Carries out a call that reads. An error of the job's is the answer, where the rank can go on after it. */
  #read(order: Extract<Order, { kind: "call" | "generate" }>, isWithin: boolean): void {
    try {
      if (order.kind === "call") order.reply(this.#readings.call(order.message, isWithin));
      else order.reply(this.#readings.generate(order.message, isWithin));
    } catch (error) {
      if (!this.#canGoOn) throw error;
      this.#noteModule(error);
      order.reply({ notMade: true, failure: toFailure(error) });
      // Ranks that compute together would take the next call's tensors for this one's.
      this.#receive(["goOn"]);
    }
  }

  /** Whether the ranks can agree on going on: stages wait for what a stage that has failed does not send. */
  get #canGoOn(): boolean {
    const { layout, groups } = this.#runner.plan;
    return layout.mesh.pp === 1 && new Set(groups.hosts).size < 2;
  }

  /** @returns whether it was made; if not, nothing has changed, and orders since then are passed over */
  #accumulate(step: GrantedStep, order: Extract<Order, { kind: "accumulate" }>): boolean {
    const { program, args, requests, weight, update, ahead = [] } = order.message;
    const { model, place, plan, batches } = this.#runner;
    const size = requests.length / plan.layout.mesh.dp;
    const shareOf = (all: typeof requests) => all.slice(place.dp * size, (place.dp + 1) * size);
    batches.expect([...shareOf(requests), ...shareOf(ahead)]);
    const lossesOf = (batch: TensorBatch) => {
      const losses = model.run(program, batch, args);
      checkLosses(losses, program);
      return losses;
    };
    const part = {
      first: step.isBegun ? step.numMicroBatches : 0,
      size,
      isLast: update !== undefined,
      requests: shareOf(requests),
      program,
      weight,
    };
    try {
      step.train(lossesOf, part);
      return true;
    } catch (error) {
      if (!this.#canGoOn || step.isPartBegun) throw error;
      this.#noteModule(error);
      step.undo(part);
      batches.passOver(part.requests.slice(1));
      order.reply({ notMade: true, failure: toFailure(error) });
      this.#passOver();
      return false;
    }
  }

  /** Carries out no order until the ranks have agreed to go on, or the end comes. */
  #passOver(): void {
    for (;;) {
      const order = this.#receive([...WITHIN_STEP, "goOn"]);
      if (order.kind === "goOn") return;
      if (order.kind === "end") {
        this.#end = order;
        return;
      }
      if (order.kind === "evaluate") order.reply({ batches: [] });
      else order.reply({ notMade: true });
    }
  }

  /** Ends the work of a loop that has returned: granted steps are not made, inspections answered with the present state. */
  #leave(): void {
    this.#isOver = true;
    const granted = this.#granted;
    this.#granted = undefined;
    if (this.#end === undefined) this.#runner.shard.ref.tell("left", { step: this.#numSteps });
    this.#at?.abandon();
    granted?.step[Symbol.dispose]();
    if (granted?.order.kind === "step") granted.order.reply({ left: this.#numSteps });
    if (this.#end === undefined) this.#next();
    this.#end?.reply({});
  }

  #noteModule(error: unknown): void {
    const module = failedModule(error, this.model);
    if (module !== undefined) noteOrigin(error, { module });
  }

  /** @throws the loop's error: it is over, and makes no step */
  refuse(): never {
    if (this.#hasFailed !== undefined) throw this.#hasFailed.error;
    throw loopOrder("an order while the loop runs", "one after its end", "this is a fault of the runtime");
  }

  get config(): JobConfig {
    return this.#runner.plan.job.config;
  }

  get facts(): DatasetFacts {
    return this.#runner.plan.job.facts;
  }

  get model(): Module {
    return this.#runner.model.module;
  }

  get accumulation(): number {
    return this.#runner.numMicroBatches(this.numSteps);
  }

  get microBatch(): number {
    return this.#microBatch;
  }

  get isLastMicroBatch(): boolean {
    return this.#microBatch === this.#numMicroBatches - 1;
  }

  override get numSteps(): number {
    return this.#numSteps;
  }

  *batches(): Generator<TensorBatch> {
    this.#refusePipeline("rank.batches()");
    for (const _ of this.steps()) {
      this.#byBatches = true;
      // Read now: from `step()` on it is the next step's, which may differ.
      this.#numMicroBatches = this.accumulation;
      for (let at = 0; at < this.#numMicroBatches; at++) yield* this.#turn(at);
      this.#byBatches = false;
      this.#microBatch = 0;
      this.#numMicroBatches = 1;
      if (this.#granted !== undefined)
        throw loopOrder(
          "rank.step() before the next batch",
          "none",
          "call it at the end of each turn of the loop",
        );
    }
  }

  *steps(): Generator<number> {
    if (this.#granted !== undefined)
      throw loopOrder(
        "rank.step() in the turn that was left",
        "another loop over steps without it",
        "end the turn before leaving rank.batches()",
      );
    for (let step = this.#next(); step !== undefined; step = this.#next()) {
      yield step;
      if (this.#granted !== undefined && !this.#byBatches)
        throw loopOrder("rank.trainStep(…) in each step", "none", "call it once in each turn of the loop");
    }
  }

  forward<R extends ForwardResult>(body: () => R): R {
    this.#refusePipeline("rank.forward");
    return this.#microBatchAt("rank.forward").forward(body);
  }

  backward(loss: ForwardResult, options: BackwardOptions = {}): void {
    this.#refusePipeline("rank.backward");
    this.#microBatchAt("rank.backward").backward(loss, options);
  }

  step(): void {
    this.#refusePipeline("rank.step");
    const step = this.#stepAt("rank.step");
    if (!this.#at?.isTrained)
      throw loopOrder(
        "rank.backward before rank.step()",
        "none on this batch",
        "walk a loss backwards first",
      );
    this.#at.end();
    if (!this.isLastMicroBatch) return;
    step.handOn();
    this.#answer(step);
  }

  trainStep(
    body: (batch: never) => Losses,
    { measure }: { readonly measure?: (() => Readonly<Record<string, number>>) | undefined } = {},
  ): void {
    if (measure !== undefined) this.#refusePipeline("a measure");
    const step = this.#stepAt("rank.trainStep");
    if (this.#byBatches)
      throw loopOrder(
        "rank.trainStep in a loop over rank.steps()",
        "one over rank.batches()",
        "it goes through the micro-batches itself",
      );
    step.train(body as (batch: TensorBatch) => Losses);
    this.#answer(step, measure);
  }

  *read(
    split: string,
    ranges: Iterable<{ readonly position: number; readonly numSamples: number }>,
  ): Generator<TensorBatch> {
    for (const range of ranges) {
      const { batch } = this.#runner.batches.fetch({ split, ...range });
      try {
        using _ = new OpenScope();
        yield batch;
      } finally {
        disposeBatch(batch);
      }
    }
  }

  save({ as, metric }: SaveName = {}): void {
    const refuse = (expected: string, hint: string) =>
      new TroupeError("OPTION", { where: "rank.save", expected, got: "none", hint });
    if (!this.#runner.plan.isSaved)
      throw refuse("a folder to save to", "--checkpoint DIR, or checkpoint of Runtime.spawn");
    if (as !== undefined) checkStateName("rank.save", as);
    if (metric !== undefined && as === undefined)
      throw refuse("a name for the state that has a metric", 'rank.save({ as: "best", metric })');
    const named = as !== undefined && { named: { as, metric } };
    this.#receive(["wanted"]).reply({ step: this.#numSteps, ...named });
    this.#receive(["heard"]);
  }

  stop(): void {
    this.#wantsStop = true;
  }

  evaluate<R>(body: () => R): R {
    if (this.#granted !== undefined) return this.#runner.evaluateBody(body);
    return this.#runner.measure(this.#numSteps, body);
  }

  #microBatch = 0;
  /** The micro-batch that the loop goes through itself. */
  #at: LoopMicroBatch | undefined;
  /** Micro-batches that the loop goes through in the present step. */
  #numMicroBatches = 1;

  /** One turn of a loop over batches: tensors that it makes are released after it. */
  *#turn(microBatch: number): Generator<TensorBatch> {
    const step = this.#stepAt("rank.batches()");
    this.#microBatch = microBatch;
    using _ = new OpenScope();
    const at = new LoopMicroBatch(step, this.#runner, microBatch);
    this.#at = at;
    yield at.batch;
    if (!at.isTrained)
      throw loopOrder(
        "rank.backward of a loss of each batch",
        "the next batch without one",
        "walk a loss of it backwards",
      );
    at.end();
  }

  /** Blocks until the next step is granted; answers other requests meanwhile. @returns undefined if none follows */
  #next(): number | undefined {
    // A loop that returned a promise is refused, and may still go on.
    if (this.#hasFailed !== undefined) throw this.#hasFailed.error;
    this.#answerOwed();
    for (;;) {
      if (this.#end !== undefined) return undefined;
      if (!this.#isOver && this.#numSteps >= this.#endsAt) return undefined;
      const order = this.#receive(BETWEEN_STEPS);
      if (order.kind === "verdict") {
        this.#endsAt = order.message.step;
        continue;
      }
      if (order.kind === "step" && this.#isOver) {
        order.reply({ left: this.#numSteps });
        continue;
      }
      if (order.kind === "step" || order.kind === "accumulate") {
        const granted = order.kind === "step" ? order.message : order.message.begin;
        this.#at = undefined;
        this.#runner.begin(granted.step, "step");
        this.#granted = { order, step: new GrantedStep(this.#runner, granted) };
        return granted.step;
      }
      if (order.kind === "end") {
        this.#end = order;
        return undefined;
      }
      try {
        if (order.kind === "call" || order.kind === "generate") this.#read(order, false);
        else if (order.kind === "sample") order.reply(this.#readings.sample(order.message.step));
        else if (this.#isOver && order.message.step > this.#numSteps) order.reply({ batches: [] });
        else order.reply(this.#readings.evaluate(order.message.step, order.message.requests));
      } catch (error) {
        this.#noteModule(error);
        order.fail(error);
        throw error;
      }
    }
  }

  #answer(step: GrantedStep, measure?: () => Readonly<Record<string, number>>): void {
    const granted = this.#granted;
    const stepped = step.end();
    step[Symbol.dispose]();
    this.#numSteps = step.index + 1;
    const measured = measure === undefined ? {} : this.#runner.measure(this.#numSteps, measure);
    const metrics = Object.entries(measured).map(([name, value]) => ({ name, sum: value, weight: 1 }));
    this.#granted = undefined;
    const order = granted?.order as Owed["order"] | undefined;
    if (order === undefined) return;
    this.#owed = { order, stepped: { ...stepped, metrics: [...stepped.metrics, ...metrics] } };
  }

  /** Answers the step of the turn that is over; if the loop has asked the run to stop, blocks until its last step is known. */
  #answerOwed(): void {
    const owed = this.#owed;
    if (owed === undefined) return;
    this.#owed = undefined;
    const wantsStop = this.#wantsStop;
    this.#wantsStop = false;
    owed.order.reply({ ...owed.stepped, ...(wantsStop && { wantsStop }) });
    if (wantsStop) this.#endsAt = this.#receive(["verdict"]).message.step;
  }

  #receive<K extends Order["kind"] | "ready" | "wanted" | "heard" | "goOn">(
    kinds: readonly K[],
  ): Received<RankProtocol, K> {
    return this.#runner.context.receive(kinds, { deadlineMs: Number.POSITIVE_INFINITY });
  }

  #stepAt(call: string): GrantedStep {
    if (this.#granted !== undefined) return this.#granted.step;
    throw loopOrder(
      `${call} in a turn of the loop`,
      "a call between two steps",
      "each step is answered once; call it inside `for (const batch of rank.batches())`",
    );
  }

  #microBatchAt(call: string): LoopMicroBatch {
    this.#stepAt(call);
    if (this.#at !== undefined && !this.#at.isOver) return this.#at;
    throw loopOrder(`${call} on a batch of rank.batches()`, "none at hand", "call it inside the loop");
  }

  #refusePipeline(call: string): void {
    if (this.axes.pp.size === 1) return;
    throw new TroupeError("PIPELINE_LOOP", {
      where: "loop",
      expected: "a pipeline to be trained by rank.trainStep(body) in a loop over rank.steps()",
      got: `${call} with ${this.axes.pp.size} stages`,
      hint: "a stage knows neither the batch's loss nor its gradient by itself",
    });
  }
}
