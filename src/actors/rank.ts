import { chargeThreadTo, type Device, enterDevice, setNumThreads } from "../compute/tensor/index.ts";
import { loadJob } from "../job/index.ts";
import { defineActor } from "../runtime/index.ts";
import { bindRank } from "./bind-rank.ts";
import { ModelRunner, RankLoop } from "./engine/rank/index.ts";
import { ownerOf } from "./inspect/index.ts";
import type { RankInit, RankProtocol } from "./protocols/index.ts";

export default defineActor<RankProtocol, RankInit>({
  lanes: { activation: "control", gradient: "control", result: "control" },
  async start(context, init) {
    let runner: ModelRunner | undefined;
    let loop: RankLoop | undefined;
    const declared = () => {
      if (runner === undefined) throw new Error("[rank] not declared");
      return runner;
    };
    // The loop takes its orders itself; orders that find none running are refused with its reason.
    const refuse = () => {
      if (loop === undefined) throw new Error("[rank] expected its loop to be begun: it was not");
      return loop.refuse();
    };
    return {
      handlers: {
        async declare({ plan, peers }) {
          bindRank(init.rank, plan.execution, plan.groups);
          setNumThreads(plan.execution.threadsPerRank);
          enterDevice(plan.execution.devices[init.rank] as Device);
          chargeThreadTo(ownerOf(plan.groups.run, init.rank), "activations");
          const job = await loadJob(plan.job.url);
          runner = new ModelRunner(context, init, plan, peers, job);
          loop = new RankLoop(runner);
          return runner.model.declared;
        },
        prepare: () => declared().prepare(),
        train: ({ isLive }) => loop?.run(isLive),
        ready: refuse,
        step: refuse,
        accumulate: refuse,
        update: refuse,
        call: refuse,
        generate: refuse,
        evaluate: refuse,
        sample: refuse,
        wanted: refuse,
        // A loop that failed has no use for them.
        verdict: () => {},
        goOn: () => {},
        heard: () => {},
        end: refuse,
        activation: (message) => declared().stages.arrived(message),
        gradient: (message) => declared().stages.arrived(message),
        result: (message) => declared().stages.arrived(message),
      },
      stop: () => runner?.model[Symbol.dispose](),
    };
  },
});
