import { ModelRunner } from "../engine/rank/index.ts";
import { ownerOf } from "../inspect/index.ts";
import { loadJob } from "../job/index.ts";
import type { RankInit, RankProtocol } from "../protocols/index.ts";
import { defineActor } from "../runtime/index.ts";
import { chargeThreadTo, setNumThreads } from "../tensor/index.ts";

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
          setNumThreads(plan.execution.threadsPerRank);
          chargeThreadTo(ownerOf(plan.layout.groups.run, init.rank), "activations");
          runner = new ModelRunner(context, init, plan, peers, await loadJob(plan.job.url));
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
