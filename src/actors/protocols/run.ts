import type { EndReason, ErrorReport } from "../../job/events/index.ts";
import type { BestRule } from "../../job/index.ts";
import type { ModelTexts } from "../../library/checkpoint/index.ts";
import type { ActorRef } from "../../runtime/index.ts";
import type { BatchRequest, FeederProtocol } from "./feeder.ts";
import type { RankProtocol } from "./rank.ts";
import type { ShardProtocol } from "./shard.ts";
import type { SliceWriterProtocol } from "./slice-writer.ts";

/** The actors of one generation of the rank group, in rank order. */
export interface RankGroup {
  readonly ranks: readonly ActorRef<RankProtocol>[];
  readonly shards: readonly ActorRef<ShardProtocol>[];
  readonly feeder: ActorRef<FeederProtocol>;
  /** Writers of each rank's share of a save, on the rank's host; empty where the checkpointer writes everything. */
  readonly writers: readonly ActorRef<SliceWriterProtocol>[];
}

/** The conductor's schedule: what happens after which step. Plain data. */
export interface RunSchedule {
  readonly steps: number;
  readonly evaluateEverySteps: number;
  /** Batches of one evaluation, split after split, dealt to the ranks in turn; empty: no evaluations. */
  readonly evaluation: readonly BatchRequest[];
  /** How states are ranked by their evaluations; left out: they are not. */
  readonly best?: BestRule | undefined;
  /** Whether the dataset scores the model's predictions in evaluations. */
  readonly predicts: boolean;
  readonly saving: SavingRules;
  /** How often each rank reports the memory that it holds. Infinity: never. */
  readonly memoryEverySteps: number;
  /** How often histograms of parameters and gradients are made. Infinity: never. */
  readonly histogramsEverySteps: number;
  readonly sample: boolean;
}

/** Result of a run. */
export interface RunResult {
  /** Steps made in all; fewer than planned where the run was asked to save and end early. */
  readonly steps: number;
  /** Loss of the last step, mean over all ranks; NaN where no step was made. */
  readonly lossNats: number;
  /** Last loss of the first evaluated split; undefined without an evaluation. */
  readonly evaluationLossNats: number | undefined;
  readonly sample: string | undefined;
  /** Why the job ended the run before its last planned step, if it did. */
  readonly endedBy?: EndReason | undefined;
  /** The signal that ended the run early, if one did. */
  readonly interruptedBy?: string;
  /** Why the last save failed, if it did: the final state is then not on the disk. */
  readonly saveError: ErrorReport | undefined;
}

/** When a run's state is saved, and where to. Plain data. */
export interface SavingRules {
  /** Steps between saves to the disk; Infinity: only at the end. undefined: nothing goes to the disk. */
  readonly everySteps: number | undefined;
  /** Whether hosts that cannot see the folder may keep their ranks' shares on disks of their own. */
  readonly mayBeApart?: boolean;
  /** Steps between copies that stay in memory; undefined: none stays. */
  readonly inMemoryEverySteps: number | undefined;
  /** How a save that falls due while another is under way is handled: training waits for the other, or it is skipped. */
  readonly whenBusy: "wait" | "skip";
  /** The most that one save may copy. */
  readonly maxStagedBytes: number;
  /** Texts of the folder whose weights the run began with, if it began with any. */
  readonly begunFrom?: ModelTexts | undefined;
  /** Texts of a delta's folders. */
  readonly adapter?: ModelTexts["adapter"];
}
