import type { TroupeEventBody } from "../../../job/events/index.ts";
import type { Scores } from "../../../library/data/index.ts";
import type { BatchRequest, RankGroup, RankPlan, RunSchedule } from "../../protocols/index.ts";
import type { Broadcast } from "../relay/index.ts";
import type { BestStates } from "./best-states.ts";
import { type EvaluatedLoss, Evaluation, evaluationOrders } from "./evaluation.ts";
import type { Pipeline } from "./pipeline.ts";
import type { StepReport } from "./step-report.ts";

/** The parts of a conductor that evaluate. */
export interface EvaluatorOptions {
  readonly schedule: RunSchedule;
  readonly group: RankGroup;
  readonly plan: RankPlan;
  readonly all: Broadcast;
  readonly pipeline: Pipeline;
  /** Its clock does not count evaluations. */
  readonly report: StepReport;
  readonly best: BestStates | undefined;
  readonly emit: (event: TroupeEventBody) => void;
  /** The longest wait for the dataset's scores. */
  readonly deadlineMs: number;
  /** Returns the last step of the run, as far as is known: later states are not reported. */
  readonly lastStep: () => number;
}

/** Has the ranks of one generation measure the state between two steps, and reports each split's loss and scores. */
export class Evaluator {
  readonly #options: EvaluatorOptions;
  #lossNats: number | undefined;

  constructor(options: EvaluatorOptions) {
    this.#options = options;
  }

  /** The last loss of the first split, in nats; undefined before any. */
  get lossNats(): number | undefined {
    return this.#lossNats;
  }

  /** Grants the evaluation of the state after `step` updates. @param onLoss - called with the loss of each split */
  async evaluate(step: number, onLoss = (_split: string, _loss: EvaluatedLoss) => {}): Promise<void> {
    const splits = Map.groupBy(this.#options.schedule.evaluation, ({ split }) => split);
    for (const [split, batches] of splits)
      await this.#evaluateSplit(step, split, batches, (loss) => onLoss(split, loss));
  }

  async #evaluateSplit(
    step: number,
    split: string,
    batches: readonly BatchRequest[],
    onLoss: (loss: EvaluatedLoss) => void,
  ): Promise<void> {
    const { group, all, pipeline, report, lastStep } = this.#options;
    const evaluation = new Evaluation();
    const orders = evaluationOrders(batches, group.ranks.length);
    for (const requests of orders) {
      const work = all.ask("ranks", "evaluate", { step, requests });
      const isLast = requests === orders.at(-1);
      // A rank answers once its rows have arrived: after all answers, all rows are there.
      const scored = work.then(async (shares) => ({
        shares,
        atMs: performance.now(),
        metrics: isLast && step <= lastStep() ? await this.#scores(step, split, batches) : undefined,
      }));
      await pipeline.add(scored, ({ shares, metrics, atMs }) => {
        if (step > lastStep()) return;
        evaluation.add(shares);
        // The ranks go on while the dataset scores.
        report.restartClock(atMs);
        if (!isLast) return;
        this.#report(step, split, evaluation.loss, metrics);
        onLoss(evaluation.loss);
      });
    }
  }

  /** The dataset's scores of the ranks' predictions of a split; undefined if the job predicts nothing. */
  async #scores(step: number, split: string, batches: readonly BatchRequest[]): Promise<Scores | undefined> {
    const { schedule, group, plan, deadlineMs } = this.#options;
    if (!schedule.predicts) return undefined;
    const { generation } = plan;
    const numSamples = batches.reduce((total, request) => total + request.numSamples, 0);
    return group.feeder.ask("score", { generation, step, split, numSamples }, { deadlineMs });
  }

  #report(step: number, split: string, evaluated: EvaluatedLoss, metrics: Scores | undefined): void {
    const { schedule, best, emit } = this.#options;
    const isFirst = split === schedule.evaluation[0]?.split;
    if (isFirst) this.#lossNats = evaluated.lossNats;
    const named = metrics && { metrics };
    const standing = isFirst ? best?.note(step, { ...evaluated, ...named }) : undefined;
    const verdict = standing && { isBest: standing.isBest };
    emit({ kind: "evaluation.finished", step, split, ...evaluated, ...named, ...verdict });
  }
}
