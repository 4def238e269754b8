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
import { attachBatch, mapBatch, type Rows } from "../../../library/data/index.ts";
import type { ActorRef } from "../../../runtime/index.ts";
import { type InspectionRequest, matchesName } from "../../inspect/index.ts";
import {
  type CheckpointerProtocol,
  type HeldWeights,
  type InitialState,
  type ProgramOrder,
  type RankAccumulated,
  type RankGroup,
  type RankPlan,
  type RankStepped,
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
  evaluate(step: number, onLoss: (split: string, loss: EvaluatedLoss) => void): Promise<void>;
  /** Grants the update of a step; `ask` orders it of all ranks, `onUpdated` receives its report and its loss in nats. */
  update(
    requests: readonly InspectionRequest[],
    ask: (own: Own) => Promise<RankStepped[]>,
    onUpdated: (done: StepDone, lossNats: number) => void,
  ): Promise<void>;
}

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

  constructor(orders: CallOrders, reader: CallReader) {
    this.#orders = orders;
    this.#reader = reader;
  }

  /** Grants a call; calls that read the state alone are complete when it returns. */
  async make(call: LiveCall): Promise<void> {
    const { all } = this.#orders;
    switch (call.kind) {
      case "accumulate":
        return this.#accumulate(call);
      case "step":
        return this.#update(call, (update, own) => ofCall(call, all.ask("ranks", "update", update, own)));
      case "call":
        return this.#call(call);
      case "generate":
        return this.#generate(call);
    }
    await this.#orders.pipeline.drain();
    switch (call.kind) {
      case "evaluate":
        return this.#evaluate(call);
      case "parameters":
        return call.answer(await this.#parameters(call.in.pattern));
      case "weights":
        return call.answer(await this.#weights());
      case "load":
        return this.#load(call);
      case "save":
        return this.#save(call);
    }
  }

  /** Grants an accumulation, and the step that follows it if the script has called it already. */
  async #accumulate(call: CallOf<"accumulate">): Promise<void> {
    const { all, group, pipeline, plan, step } = this.#orders;
    const { numSamples } = call.in;
    const open = this.#open ?? { ...this.#orders.orderOf(step), numSamples, numAccumulated: 0 };
    const weight = numSamples / open.numSamples;
    this.#open = open;
    const numBefore = open.numAccumulated;
    const { requests, ...order } = this.#put(call);
    open.numAccumulated += requests.length / plan.layout.mesh.dp;
    const answer = (ranks: readonly RankAccumulated[]) => {
      group.feeder.tell("drop", { call: call.number });
      call.answer(accumulatedIn(ranks, numBefore, weight));
    };
    const { next } = this.#reader;
    if (next?.kind === "step") this.#reader.take();
    const after = this.#reader.next;
    const ahead = after?.kind === "accumulate" ? requestsOf(after, plan) : [];
    const message = { ...order, requests, weight, begin: open.message, ahead };
    if (next?.kind !== "step")
      return pipeline.add(ofCall(call, all.ask("ranks", "accumulate", message)), answer);
    await this.#update(next, async (update, own) => {
      const owned = own?.map((each) => ({ update: { ...update, ...each } }));
      const stepped = await ofCall(call, all.ask("ranks", "accumulate", { ...message, update }, owned));
      answer(stepped);
      return stepped as RankStepped[];
    });
  }

  /** @param ask - orders the update of all ranks */
  async #update(
    call: CallOf<"step">,
    ask: (update: UpdateOrder, own: Own) => Promise<RankStepped[]>,
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
    const { all, group, pipeline, step, deadlineMs } = this.#orders;
    const { numSamples } = call.in;
    const order = { ...this.#put(call), step };
    const read = all
      .ask("ranks", "call", order)
      .then(() =>
        group.feeder.ask("rows", { step, split: splitOf(call.number), numSamples }, { deadlineMs }),
      );
    await pipeline.add(ofCall(call, read), ({ rows }) => {
      group.feeder.tell("drop", { call: call.number });
      call.answer(attachBatch(rows, "cpu") as Rows);
    });
  }

  async #generate(call: CallOf<"generate">): Promise<void> {
    const { all, pipeline, step } = this.#orders;
    const made = all.ask("ranks", "generate", { ...call.in, step, call: call.number });
    await pipeline.add(ofCall(call, made), (answers) => call.answer(answers.flatMap(({ texts }) => texts)));
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

  /** Gives the feeder the batch of a call. */
  #put(call: CallOfProgram): ProgramOrder {
    const { plan, group } = this.#orders;
    const { feeder } = group;
    const { program, args, batch } = call.in;
    const requests = requestsOf(call, plan);
    feeder.tell("put", {
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

/** The work of a call. @throws {FailedCall} its error */
function ofCall<T>(call: LiveCall, work: Promise<T>): Promise<T> {
  return work.catch((error: unknown) => {
    throw new FailedCall(call, error);
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
