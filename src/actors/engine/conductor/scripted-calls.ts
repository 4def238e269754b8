import { MASTER, wordsOf } from "../../../compute/parallel/index.ts";
import {
  attach,
  hold,
  numelOf,
  shareRef,
  type Tensor,
  type TensorRef,
} from "../../../compute/tensor/index.ts";
import { TroupeError } from "../../../errors/index.ts";
import { LOSS } from "../../../job/index.ts";
import { attachBatch, disposeBatch, mapBatch, type Rows } from "../../../library/data/index.ts";
import type { GeneratedText } from "../../../library/models/index.ts";
import { ActorDown, type ActorRef, fromFailure } from "../../../runtime/index.ts";
import { type InspectionRequest, matchesName } from "../../inspect/index.ts";
import {
  type CheckpointerProtocol,
  type HeldWeights,
  type InitialState,
  type NotMade,
  type ProgramOrder,
  type RankAccumulated,
  type RankGroup,
  type RankPlan,
  type RankProtocol,
  type RankStepped,
  type RowRefs,
  type StateEntry,
  type StepOrder,
  sentTo,
  splitOf,
  type UpdateOrder,
} from "../../protocols/index.ts";
import { pieceOf } from "../../state/saving/index.ts";
import type { Broadcast } from "../relay/index.ts";
import { type CallLog, type CallReader, FailedCall, type LiveCall, LoadedState } from "./call-log.ts";
import { accumulatedIn, type CallOfProgram, requestsOf } from "./call-orders.ts";
import type { EvaluatedLoss } from "./evaluation.ts";
import type { Pipeline } from "./pipeline.ts";
import type { BegunSave, SaveReasons } from "./saving.ts";
import type { StepDone } from "./step-report.ts";

type Own = readonly Partial<UpdateOrder>[] | undefined;

/** The parts of a conductor that a script's calls use. */
export interface CallOrders {
  readonly calls: CallLog;
  readonly plan: RankPlan;
  readonly group: RankGroup;
  readonly all: Broadcast;
  readonly pipeline: Pipeline;
  readonly checkpointer: ActorRef<CheckpointerProtocol> | undefined;
  readonly deadlineMs: number;
  /** Number of steps granted. */
  readonly step: number;
  /** Returns the order of a step that begins, with the inspections that it answers. */
  orderOf(step: number): { readonly requests: readonly InspectionRequest[]; readonly message: StepOrder };
  /** Returns the tensors of the state after `step` updates, as a save has them. */
  entriesAt(step: number): readonly StateEntry[];
  /** Saves the state after `step` updates, with none under way. */
  saveNow(step: number, reasons: SaveReasons): Promise<BegunSave | undefined>;
  /** Finds the state in a folder. @throws {TroupeError} if it is not the model's */
  load(folder: string): Promise<InitialState>;
  /** Makes a step of weights that are given. */
  take(weights: HeldWeights<Tensor>): Promise<void>;
  evaluate(step: number, onLoss: (split: string, loss: EvaluatedLoss) => void): Promise<void>;
  /** Whether an error is that of a program, the data or an option of a call: not of a lost actor, or a slow one. */
  isOfCode(error: unknown): boolean;
  /**
   * Grants the update of a step.
   * @param ask - orders it of all ranks, with each rank's own part; gives undefined if they make nothing of it
   * @param onUpdated - receives its report and its loss in nats
   */
  update(
    requests: readonly InspectionRequest[],
    ask: (own: Own) => Promise<RankStepped[] | undefined>,
    onUpdated: (done: StepDone, lossNats: number) => void,
  ): Promise<void>;
  /**
   * Takes back the grants after `step` steps, which no rank has begun.
   * @param requests - inspections of the step that is granted next; those of later ones are asked again
   */
  rewind(step: number, requests: readonly InspectionRequest[]): void;
}

/** An accumulation whose program has thrown on all ranks, before anything had changed: they carry out nothing since. */
interface Halt {
  readonly call: LiveCall;
  readonly error: unknown;
  /** The step as it was before the call. */
  readonly open: OpenStep;
}

/** Answers of all ranks, or the error of a program that has thrown on some; undefined if they carry out nothing. */
type Made<T> =
  | { readonly answers: readonly T[] }
  | { readonly error: unknown; readonly isOfAll: boolean }
  | undefined;

/** The least time, in ms, that other ranks have for their answers once one has failed: they may wait for it. */
const GRACE_MS = 1_000;

/** A step that a script accumulates. */
interface OpenStep {
  readonly message: StepOrder;
  readonly requests: readonly InspectionRequest[];
  /** Samples of its first batch: others weigh as much more as they are larger. */
  readonly numSamples: number;
  /** Micro-batches of each replica. */
  numAccumulated: number;
}

type CallOf<K extends LiveCall["kind"]> = Extract<LiveCall, { kind: K }>;

/** Makes a script's calls on the ranks, one after the other, and answers them. */
export class ScriptedCalls {
  readonly #orders: CallOrders;
  readonly #reader: CallReader;
  /** The step that the script accumulates, if it has begun. */
  #open: OpenStep | undefined;
  #halt: Halt | undefined;
  /** Calls whose batches the feeder has. */
  readonly #put = new Set<number>();
  /** Calls that are made, and whose batches the feeder still keeps. */
  readonly #made: number[] = [];

  constructor(orders: CallOrders, reader: CallReader) {
    this.#orders = orders;
    this.#reader = reader;
  }

  /** Whether the ranks carry out nothing until {@link goOn}. */
  get isHalted(): boolean {
    return this.#halt !== undefined;
  }

  /** Leaves the failed accumulation out, and has the ranks go on with the calls after it. @returns whether they had halted */
  async goOn(): Promise<boolean> {
    if (this.#halt === undefined) return false;
    const { pipeline, calls, group } = this.#orders;
    // All that was granted since then is answered: it was not made.
    await pipeline.drain();
    const { call, error, open } = this.#halt;
    this.#halt = undefined;
    this.#open = open;
    calls.refuse(call, error);
    this.#reader.rewind(call);
    this.#orders.rewind(call.step, open.requests);
    this.#drop(call.number);
    for (const rank of group.ranks) rank.tell("goOn", {});
    return true;
  }

  /** Has the feeder drop the batches of calls that are made. Done before the next one is put: then that wakes it once. */
  dropMade(): void {
    for (const call of this.#made.splice(0)) {
      this.#put.delete(call);
      this.#drop(call);
    }
  }

  #drop(call: number): void {
    const { group, plan } = this.#orders;
    group.feeder.tell("drop", { generation: plan.generation, call });
  }

  /** Grants a call; calls that read the state alone are complete when it returns. */
  async make(call: LiveCall): Promise<void> {
    const { all } = this.#orders;
    switch (call.kind) {
      case "accumulate":
        return this.#accumulate(call);
      case "step":
        return this.#update(call, async (update, own) => {
          const answers = await ofCall(call, all.ask("ranks", "update", update, own));
          if (!answers.some(isNotMade)) return answers as RankStepped[];
          this.#refuseSave(own);
          return undefined;
        });
      case "call":
        return this.#call(call);
      case "generate":
        return this.#generate(call);
    }
    await this.#orders.pipeline.drain();
    // It is read again from the log.
    if (this.isHalted) return;
    switch (call.kind) {
      case "evaluate":
        return this.#evaluate(call);
      case "parameters":
        return this.#parameters(call.in.pattern).then(call.answer, this.#refuser(call));
      case "weights":
        return this.#weights().then(call.answer, this.#refuser(call));
      case "load":
        return this.#load(call);
      case "take":
        return this.#take(call);
      case "save":
        return this.#save(call);
    }
  }

  /** Grants an accumulation, and the step that follows it if the script has called it already. */
  async #accumulate(call: CallOf<"accumulate">): Promise<void> {
    const { pipeline, plan, step } = this.#orders;
    const { numSamples } = call.in;
    const begun = this.#open ?? { ...this.#orders.orderOf(step), numSamples, numAccumulated: 0 };
    const open = begun.numAccumulated > 0 ? begun : { ...begun, numSamples };
    const before = { ...open };
    const weight = numSamples / open.numSamples;
    this.#open = open;
    const numBefore = open.numAccumulated;
    const { requests, ...order } = this.#orderOf(call);
    open.numAccumulated += requests.length / plan.layout.mesh.dp;
    const made = async (message: RankProtocol["accumulate"]["in"], own?: Own) => {
      const owned = own?.map((each) => ({ update: { ...message.update, ...each } }));
      const outcome = await this.#ask<RankAccumulated>(call, "accumulate", message, owned);
      if (outcome === undefined) this.#refuseSave(own);
      else if ("answers" in outcome) return outcome.answers;
      else {
        const { error, isOfAll } = outcome;
        // Some ranks have added to their gradients, or keep a state of this step.
        if (!isOfAll || own !== undefined) throw new FailedCall(call, error);
        this.#halt ??= { call, error, open: before };
        this.#orders.calls.wake();
      }
      return undefined;
    };
    const answer = (ranks: readonly RankAccumulated[] | undefined) => {
      if (ranks === undefined) return;
      this.#made.push(call.number);
      call.answer(accumulatedIn(ranks, numBefore, weight));
    };
    const { next } = this.#reader;
    if (next?.kind === "step") this.#reader.take();
    const after = this.#reader.next;
    // The feeder gets its batch now: while the model is paused, a question for it would wait past its deadline.
    const ahead = after?.kind === "accumulate" ? this.#orderOf(after).requests : [];
    const message = { ...order, requests, weight, begin: open.message, ahead };
    if (next?.kind !== "step") return pipeline.add(ofCall(call, made(message)), answer);
    await this.#update(next, async (update, own) => {
      const stepped = await ofCall(call, made({ ...message, update }, own));
      answer(stepped);
      return stepped as RankStepped[] | undefined;
    });
  }

  /** @param ask - orders the update of all ranks */
  async #update(
    call: CallOf<"step">,
    ask: (update: UpdateOrder, own: Own) => Promise<RankStepped[] | undefined>,
  ): Promise<void> {
    const { requests } = this.#open as OpenStep;
    this.#open = undefined;
    const step = this.#orders.step + 1;
    const { learningRate } = call.in;
    await this.#orders.update(
      requests,
      (own) => ask({ learningRate }, own),
      ({ ranks: [rank], shards: [shard] }, lossNats) =>
        call.answer({
          step,
          lossNats,
          learningRate: rank?.learningRate ?? Number.NaN,
          gradientNorm: shard?.gradientNorm ?? Number.NaN,
          skipped: shard?.skipped ?? false,
        }),
    );
  }

  async #call(call: CallOf<"call">): Promise<void> {
    const { pipeline, step } = this.#orders;
    const order = { ...this.#orderOf(call), step };
    const read = async () => {
      const made = await this.#ask(call, "call", order);
      if (made === undefined) return undefined;
      if ("error" in made) this.#forgetRows(call, step);
      return "error" in made ? made : this.#rows(call, step, call.in.numSamples);
    };
    await pipeline.add(ofCall(call, read()), (reply) => {
      if (reply === undefined) return;
      this.#made.push(call.number);
      if ("error" in reply) call.refuse(reply.error);
      else call.answer(attachBatch(reply.rows, "cpu") as Rows);
    });
  }

  /** Has the feeder drop the rows of replicas that have sent theirs. */
  #forgetRows(call: LiveCall, step: number): void {
    this.#rows(call, step, 0).then(
      ({ rows }) => disposeBatch(attachBatch(rows, "cpu")),
      () => {}, // they do not make up a batch
    );
  }

  /** Takes the rows that a call's program has predicted from the feeder. */
  #rows({ number }: LiveCall, step: number, numSamples: number): Promise<{ readonly rows: RowRefs }> {
    const { group, plan, deadlineMs } = this.#orders;
    const rows = { generation: plan.generation, step, split: splitOf(number), numSamples };
    return group.feeder.ask("rows", rows, { deadlineMs });
  }

  async #generate(call: CallOf<"generate">): Promise<void> {
    const { pipeline, step } = this.#orders;
    const order = { ...call.in, step, call: call.number };
    const made = this.#ask<{ readonly texts: readonly GeneratedText[] }>(call, "generate", order);
    await pipeline.add(ofCall(call, made), (made) => {
      if (made === undefined) return;
      if ("error" in made) call.refuse(made.error);
      else call.answer(made.answers.flatMap(({ texts }) => texts));
    });
  }

  /**
   * Orders a call of all ranks, and agrees with them on what has become of it. Ranks whose program has thrown wait; where the call
   * reads, they go on here.
   * @throws the error of a program if other ranks do not answer: they may wait for the rank that has failed
   */
  async #ask<T extends object>(
    { kind }: LiveCall,
    order: "accumulate" | "call" | "generate",
    message: RankProtocol[typeof order]["in"],
    own?: readonly object[],
  ): Promise<Made<T>> {
    const { all, group, isOfCode } = this.#orders;
    const beginMs = performance.now();
    const late = Promise.withResolvers<never>();
    let timer: NodeJS.Timeout | undefined;
    const onAnswer = (answer: object) => {
      if (timer !== undefined || !isNotMade(answer) || answer.failure === undefined) return;
      const error = fromFailure(answer.failure);
      if (!isOfCode(error)) late.reject(error);
      timer = setTimeout(() => late.reject(error), Math.max(GRACE_MS, 2 * (performance.now() - beginMs)));
    };
    try {
      const asked = all.ask("ranks", order, message, own, onAnswer);
      const answers: readonly object[] = await Promise.race([asked, late.promise]);
      const failures = answers.map((answer) => (isNotMade(answer) ? answer.failure : undefined));
      const failure = failures.find((each) => each !== undefined);
      if (failure === undefined) return answers.some(isNotMade) ? undefined : { answers: answers as T[] };
      const isOfAll = failures.every((each) => each !== undefined);
      for (const [rank, each] of failures.entries())
        if (kind !== "accumulate" && each !== undefined) group.ranks[rank]?.tell("goOn", {});
      return { error: fromFailure(failure), isOfAll };
    } finally {
      clearTimeout(timer);
    }
  }

  /** An update that is not made keeps no state: its save would wait for it. @throws {FailedCall} if it was to be saved */
  #refuseSave(own: Own): void {
    if (own !== undefined && this.#halt !== undefined)
      throw new FailedCall(this.#halt.call, this.#halt.error);
  }

  async #evaluate(call: CallOf<"evaluate">): Promise<void> {
    const { pipeline, step } = this.#orders;
    const losses: Record<string, EvaluatedLoss> = {};
    const evaluated = this.#orders.evaluate(step, (split, loss) => {
      losses[split] = loss;
    });
    await ofCall(
      call,
      evaluated.then(() => pipeline.drain()),
    );
    call.answer(losses);
  }

  async #save(call: CallOf<"save">): Promise<void> {
    const { named } = call.in;
    const save = await this.#orders.saveNow(this.#orders.step, { isAsked: true, isPresent: true, named });
    const saved = await save?.outcome;
    if (saved?.kind === "saved") call.answer(saved.state);
    else if (saved?.kind === "failed") call.refuse(saved.error);
  }

  async #parameters(pattern: string): Promise<Rows> {
    const isWanted = ({ parameter, dtype }: StateEntry) =>
      dtype === undefined && matchesName(parameter, pattern);
    const { tensors } = await this.#read(isWanted);
    const read = Object.entries(tensors).map(([name, { shape, values }]) => {
      const value = hold(() => values.view(shape));
      values.dispose();
      return [name, value] as const;
    });
    return Object.fromEntries(read);
  }

  /** Refuses a call that reads where the copy is lost alone: its checkpointer starts again, and the ranks live on. */
  #refuser({ refuse }: LiveCall): (error: unknown) => void {
    return (error) => {
      const isDown = error instanceof ActorDown && error.down.actor === this.#orders.checkpointer?.name;
      const isLost = error instanceof TroupeError && error.code === "MEMORY_COPY_LOST";
      if (!isDown && !isLost) throw error;
      refuse(error);
    };
  }

  #weights(): Promise<HeldWeights<Tensor>> {
    return this.#read(() => true);
  }

  /** Reads masters of the present state from its copy in memory, which is made now unless it is there. */
  async #read(isWanted: (entry: StateEntry) => boolean): Promise<HeldWeights<Tensor>> {
    const { step, deadlineMs } = this.#orders;
    const checkpointer = this.#orders.checkpointer as ActorRef<CheckpointerProtocol>;
    const kept = async () => (await checkpointer.ask("kept", {}, { deadlineMs })).state;
    let state = await kept();
    if (state?.step !== step) {
      await (await this.#orders.saveNow(step, { isRead: true, isPresent: true }))?.outcome;
      state = await kept();
    }
    const entries = this.#orders.entriesAt(step).filter((entry) => entry.kind === MASTER && isWanted(entry));
    const wanted = entries.map(({ kind, parameter, shape, dtype }) => {
      const numel = dtype === undefined ? numelOf(shape) : wordsOf({ shape, dtype });
      return { kind, pieces: [pieceOf(parameter, shape, numel)] };
    });
    const { values } = await checkpointer.ask("restore", { step, wanted, owner: "" }, { deadlineMs });
    const read = entries.map(({ parameter, shape }, index) => {
      const held = hold(() => attach(values[index]?.[0] as TensorRef));
      const own = hold(() => held.clone());
      held.dispose();
      return [parameter, { shape, values: own }] as const;
    });
    return { step, progress: state?.progress ?? { numUpdates: step }, tensors: Object.fromEntries(read) };
  }

  /** Ends this generation: the next begins with the loaded state, which counts as made by a step. */
  async #load(call: CallOf<"load">): Promise<void> {
    const { step, calls } = this.#orders;
    const { folder } = call.in;
    let initial: InitialState;
    try {
      initial = await this.#orders.load(folder);
    } catch (error) {
      if (!calls.isOpen(call)) throw gone(folder, step, error);
      // Nothing was done for it.
      calls.refuse(call, error);
      this.#reader.step = step;
      return;
    }
    throw new LoadedState(call, { ...initial, step: step + 1 } as InitialState);
  }

  async #take(call: CallOf<"take">): Promise<void> {
    const { step, calls } = this.#orders;
    let weights: HeldWeights<Tensor>;
    try {
      weights = await call.in.weights;
    } catch (error) {
      // The model that was to give them has ended.
      calls.refuse(call, error);
      this.#reader.step = step;
      return;
    }
    await this.#orders.take(weights);
    call.answer({ step: step + 1 });
  }

  /** Gives the feeder the batch of a call, once. */
  #orderOf(call: CallOfProgram): ProgramOrder {
    const { plan, group } = this.#orders;
    const { feeder } = group;
    const { program, args, batch } = call.in;
    const requests = requestsOf(call, plan);
    const { size } = this.#put;
    if (this.#put.add(call.number).size === size) return { program, args, requests };
    this.dropMade();
    feeder.tell("put", {
      generation: plan.generation,
      call: call.number,
      batch:
        "range" in batch
          ? batch
          : { tensors: mapBatch(batch.samples, (tensor) => shareRef(tensor, sentTo(feeder))) },
      isCounted: program === LOSS,
      requests,
    });
    return { program, args, requests };
  }
}

const isNotMade = (answer: object): answer is NotMade => "notMade" in answer;

/** The work of a call. @throws {FailedCall} its error */
function ofCall<T>(call: LiveCall, work: Promise<T>): Promise<T> {
  return work.catch((error: unknown) => {
    throw error instanceof FailedCall ? error : new FailedCall(call, error);
  });
}

/** The error of a state that must be loaded again, and cannot be. */
function gone(folder: string, step: number, cause: unknown): TroupeError {
  return new TroupeError("CALLS_LOST", {
    where: "model",
    expected: `to load ${folder} again, as after step ${step}`,
    got: `"${(cause as Error).message}"`,
    hint: "a rank has died since then, and the state that was loaded is kept there alone",
    cause,
  });
}
