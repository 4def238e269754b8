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
  /** Who writes each rank's share of a save where the rank lives; none where the checkpointer writes all. */
  readonly writers: readonly ActorRef<SliceWriterProtocol>[];
}

/** What the conductor follows: what happens after which step. Plain data. */
export interface RunSchedule {
  readonly steps: number;
  readonly evaluateEverySteps: number;
  /** Batches of one evaluation, split after split, each dealt to the ranks in turn; none: nothing is evaluated. */
  readonly evaluation: readonly BatchRequest[];
  /** How states are compared by their evaluations, where they are. */
  readonly best?: BestRule | undefined;
  /** Whether the dataset scores what the model predicts of them. */
  readonly predicts: boolean;
  readonly saving: SavingRules;
  /** How often it is told what each rank holds. Infinity: never. */
  readonly memoryEverySteps: number;
  /** How often the values of parameters and gradients are sorted into buckets. Infinity: never. */
  readonly histogramsEverySteps: number;
  readonly sample: boolean;
}

/** What one run came to. */
export interface RunResult {
  /** Made in all; fewer than planned where the run was told to save and end before its last. */
  readonly steps: number;
  /** Loss of the last step, mean over all ranks; NaN where no step was made. */
  readonly lossNats: number;
  /** Last loss of the first split that is evaluated, where there was an evaluation. */
  readonly evaluationLossNats: number | undefined;
  readonly sample: string | undefined;
  /** Why it ended before its last planned step, where the job itself ended it. */
  readonly endedBy?: EndReason | undefined;
  /** The signal that let it end before its last step, where one did. */
  readonly interruptedBy?: string;
  /** Why the last save failed, if it did: the run's end is not on the disk then. */
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
  /** What becomes of a save that falls due while one is under way: training waits for that one, or it is left out. */
  readonly whenBusy: "wait" | "skip";
  /** The most that one save may copy. */
  readonly maxStagedBytes: number;
  /** What the folder says whose weights the run began with, where it began with any. */
  readonly begunFrom?: ModelTexts | undefined;
  /** What the folders of a delta say. */
  readonly adapter?: ModelTexts["adapter"];
}
