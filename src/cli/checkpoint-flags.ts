import type { Command } from "commander";
import type { CheckpointOptions } from "../trainer/index.ts";
import { bytes, number } from "./flags.ts";

/** What of a run is saved, as a command line says it. */
export interface CheckpointFlags {
  readonly checkpoint?: string;
  readonly checkpointEvery?: number;
  readonly checkpointWhenBusy?: "wait" | "skip";
  readonly checkpointKeepLast?: number;
  readonly checkpointKeepEvery?: number;
  readonly checkpointInMemoryEvery?: number;
  readonly checkpointMaxStaged?: number;
}

/** Adds the flags to a command that trains. */
export function addCheckpointFlags(command: Command): Command {
  return command
    .option(
      "--checkpoint <dir>",
      "where checkpoints go, a folder or s3://BUCKET/PREFIX (default: runs/<job>)",
    )
    .option("--checkpoint-every <n>", "steps between checkpoints (default: 500)", number)
    .option(
      "--checkpoint-when-busy <what>",
      "what training does when one falls due while another is being saved: wait for that, or skip (default: wait)",
    )
    .option("--checkpoint-keep-last <k>", "keep the newest k checkpoints only (default: all)", number)
    .option("--checkpoint-keep-every <n>", "of older ones, keep those of every nth step", number)
    .option(
      "--checkpoint-in-memory-every <n>",
      "steps between copies that stay in memory, to go back to after a loss (default: none)",
      number,
    )
    .option("--checkpoint-max-staged <size>", "refuse a run whose saves would copy more, such as 8GB", bytes);
}

/** @param directory - where checkpoints go, where the flags do not say */
export function checkpointOf(flags: CheckpointFlags, directory: string): CheckpointOptions {
  const given = Object.entries({
    everySteps: flags.checkpointEvery,
    whenBusy: flags.checkpointWhenBusy,
    keepLast: flags.checkpointKeepLast,
    keepEverySteps: flags.checkpointKeepEvery,
    inMemoryEverySteps: flags.checkpointInMemoryEvery,
    maxStagedBytes: flags.checkpointMaxStaged,
  }).filter(([, value]) => value !== undefined);
  return { dir: flags.checkpoint ?? directory, ...Object.fromEntries(given) };
}
