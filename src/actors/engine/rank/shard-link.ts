import type { OptimizerProgress } from "../../../compute/optim/index.ts";
import { BusyTime, type ShardPort } from "../../../compute/parallel/index.ts";
import { moveRef, type Tensor } from "../../../compute/tensor/index.ts";
import {
  type ActorContext,
  type ActorRef,
  type AskOptions,
  type CollectiveLine,
  type Pending,
  systemClock,
} from "../../../runtime/index.ts";
import { reportActivity } from "../../inspect/index.ts";
import { type Gathered, type ShardProtocol, sentTo } from "../../protocols/index.ts";

/** A gather under way. */
export interface Gather {
  readonly step: number;
  readonly block: number;
  readonly startedAtMs: number;
  readonly answer: Pending<Gathered>;
}

/** Gradients of up to so many elements leave together: reducing one takes less time than a message of its own. */
const MOST_TOGETHER = 2 ** 16;

/** Options of {@link ShardLink}. */
export interface ShardLinkOptions {
  readonly deadlineMs: number;
  /** Whether to report when the computation of each block goes on. */
  readonly trace: boolean;
  /** Blocks whose parameters have memory only while pinned. */
  readonly paged: ReadonlySet<number>;
  /** Shows gathers and reductions to others. */
  readonly line: CollectiveLine | undefined;
}

/** An engine's access to the shard: messages, and blocking waits that are counted as exposed communication. */
export class ShardLink implements ShardPort<Gather> {
  readonly #context: Pick<ActorContext<unknown>, "request" | "wait" | "emit">;
  readonly ref: ActorRef<ShardProtocol>;
  readonly #options: ShardLinkOptions;
  readonly #asking: AskOptions;
  #numGathers = 0;
  #numReductions = 0;
  #step = 0;
  #gathering = new BusyTime();
  #exposedMs = 0;
  #progress: OptimizerProgress = { numUpdates: 0 };

  constructor(
    context: Pick<ActorContext<unknown>, "request" | "wait" | "emit">,
    ref: ActorRef<ShardProtocol>,
    options: ShardLinkOptions,
  ) {
    this.#context = context;
    this.ref = ref;
    this.#options = options;
    this.#asking = { deadlineMs: options.deadlineMs, lazy: true };
  }

  /** Begins `step`, and its counts. */
  begin(step: number): void {
    this.#step = step;
    this.#gathering = new BusyTime();
    this.#exposedMs = 0;
  }

  /** Milliseconds since {@link begin} in which the computation stood still, and in which gathers were under way. */
  get measured(): { readonly exposedMs: number; readonly gatherMs: number } {
    return { exposedMs: this.#exposedMs, gatherMs: this.#gathering.totalMs };
  }

  /** The optimizer's progress before this step, from the last answer to a gather. */
  get progress(): OptimizerProgress {
    return this.#progress;
  }

  start(block: number): Gather {
    this.#options.line?.enter("gather", `block ${block}`, ++this.#numGathers);
    return {
      step: this.#step,
      block,
      startedAtMs: systemClock.now(),
      // A gather that runs ahead is followed by the wait for an earlier one.
      answer: this.#context.request(this.ref, "gather", { step: this.#step, block }, this.#asking),
    };
  }

  wait({ step, block, startedAtMs, answer }: Gather): void {
    const beginMs = systemClock.now();
    const { gatheredAtMs, progress } = this.#context.wait(answer);
    this.#progress = progress;
    const endMs = systemClock.now();
    this.#exposedMs += endMs - beginMs;
    if (this.#options.trace) {
      reportActivity(this.#context, "wait", { step, block }, beginMs);
      reportActivity(this.#context, "compute", { step, block }, endMs);
    }
    this.#gathering.add(startedAtMs, gatheredAtMs > beginMs ? endMs : gatheredAtMs);
  }

  /** On one host gathered parameters are the shards' own memory: blocks that are not paged stay where they are. */
  release(block: number): void {
    if (this.#options.paged.has(block)) this.ref.tell("release", { block });
  }

  /** Waits until ranks that exchange activations have begun this step, with the same frozen. @throws `PARAMETER_TRAINABLE` */
  agree(): void {
    this.#context.wait(this.#context.request(this.ref, "agree", { step: this.#step }, this.#options));
  }

  reduce(block: number, gradient: Tensor): void {
    this.#options.line?.enter("reduce", `block ${block}`, ++this.#numReductions);
    const lazy = gradient.numel <= MOST_TOGETHER;
    const ref = moveRef(gradient, sentTo(this.ref));
    this.ref.tell("reduce", { step: this.#step, block, gradient: ref }, { lazy });
  }
}
