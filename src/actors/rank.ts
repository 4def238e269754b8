import { ModelRunner, type StageLinkProtocol } from "../engine/rank/index.ts";
import { ownerOf } from "../inspect/index.ts";
import { loadJob } from "../job/index.ts";
import type { DeclaredModel, RankEvaluated, RankPlan, RankStepped } from "../protocols/index.ts";
import { type ActorRef, defineActor } from "../runtime/index.ts";
import { chargeThreadTo, setNumThreads } from "../tensor/index.ts";
import type { CheckpointerProtocol } from "./checkpointer.ts";
import type { BatchRequest, FeederProtocol } from "./feeder.ts";
import type { ShardProtocol } from "./shard.ts";

/** One step, as the conductor grants it. Plain data. */
export interface StepOrder {
  readonly step: number;
  /** Who wants the state that follows it. */
  readonly snapshotTo?: ActorRef<CheckpointerProtocol>;
  /** Patterns of the parameters that are looked at after it. */
  readonly inspect?: readonly string[];
  /** The same, of those whose movement by its updates is looked at. */
  readonly inspectUpdates?: readonly string[];
  /** Whether tensors that the model records are looked at. */
  readonly record?: boolean;
  /** Whether the memory that each rank holds is looked at. */
  readonly ledger?: boolean;
  /** Whether the values of parameters and gradients are sorted into buckets. */
  readonly histograms?: boolean;
}

export type RankProtocol = StageLinkProtocol & {
  /** Builds the model, without memory. `peers`: every rank of the world, in order. */
  declare: { in: { plan: RankPlan; peers: readonly ActorRef<RankProtocol>[] }; out: DeclaredModel };
  /** Has the shard lay out the state of what was declared, and binds the model to it. */
  prepare: { in: Record<string, never>; out: Record<string, never> };
  /** One optimizer step; parameters of step s have seen s updates. */
  step: { in: StepOrder; out: RankStepped };
  /** Held-out loss of the parameters of `step`: this rank's share of `requests`. */
  evaluate: { in: { step: number; requests: readonly BatchRequest[] }; out: RankEvaluated };
  /** What the job's `sample` makes of the parameters of `step`; every rank computes it, so that all gather alike. */
  sample: { in: { step: number }; out: { text: string } };
};

/** What a rank is born with. */
export interface RankInit {
  readonly rank: number;
  readonly shard: ActorRef<ShardProtocol>;
  readonly feeder: ActorRef<FeederProtocol>;
}

export default defineActor<RankProtocol, RankInit>({
  lanes: { activation: "control", gradient: "control", result: "control" },
  async start(context, init) {
    let runner: ModelRunner | undefined;
    const declared = () => {
      if (runner === undefined) throw new Error("[rank] not declared");
      return runner;
    };
    return {
      handlers: {
        async declare({ plan, peers }) {
          setNumThreads(plan.numThreads);
          chargeThreadTo(ownerOf(plan.groups.run, init.rank), "activations");
          runner = new ModelRunner(context, init, plan, peers, await loadJob(plan.jobUrl));
          return runner.declared;
        },
        prepare: () => declared().prepare(),
        step: (message) => declared().step(message),
        evaluate: (message) => declared().evaluate(message.step, message.requests),
        sample: (message) => declared().sample(message.step),
        activation: (message) => declared().stages.arrived(message),
        gradient: (message) => declared().stages.arrived(message),
        result: (message) => declared().stages.arrived(message),
      },
      stop: () => runner?.leave(),
    };
  },
});
