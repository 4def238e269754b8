import { readFileSync } from "node:fs";
import { Command, CommanderError } from "commander";
import { framesOf, ownFrames, TroupeError } from "../../errors/index.ts";
import { describeError, reportError } from "../../job/events/index.ts";
import { addChatCommand } from "./chat.ts";
import { addCheckpointCommand } from "./checkpoint/command.ts";
import { addDashboardCommand } from "./dashboard.ts";
import { addDoctorCommand } from "./doctor.ts";
import { addExportCommand } from "./export.ts";
import { checkPrinted, printsFullErrors } from "./flags.ts";
import { addGenerateCommand } from "./generate.ts";
import { addInspectCommand } from "./inspect.ts";
import { addLaunchCommand } from "./launch.ts";
import { misunderstood } from "./misunderstood.ts";
import { addPlanCommand } from "./plan.ts";
import { addPreprocessCommand } from "./preprocess.ts";
import { addRapidformerCommands, withListing } from "./rapidformer/command.ts";
import { addRunCommand } from "./run.ts";
import { addServeCommand } from "./serve.ts";

/** Exit codes of the command line. `interrupted`: a signal has ended the run, its state is saved (EX_TEMPFAIL, sysexits.h). */
export const exitCodes = { done: 0, failed: 1, usage: 2, interrupted: 75 } as const;

/**
 * Runs the command line: `troupe run JOB …`, `troupe launch SCRIPT`, `troupe plan JOB …`, `troupe inspect --graph JOB`, `troupe checkpoint …`,
 * `troupe dashboard PATH`, `troupe export FOLDER`, `troupe generate FOLDER`, `troupe chat FOLDER`, `troupe serve JOB`,
 * `troupe preprocess`, `troupe doctor`.
 * @param args - the arguments after the program's name
 * @returns the exit code, once everything that it started has ended
 */
export async function main(args: readonly string[]): Promise<number> {
  const program = new Command("troupe")
    .description("Trains big models with actors: every rank, shard and checkpoint writer is one.")
    .version(version())
    .exitOverride()
    // The error is printed below, in our form.
    .configureOutput({ outputError: () => {} });
  // A reader that closes the pipe (`| head`), or a full disk, must not end the work.
  for (const stream of [process.stdout, process.stderr])
    if (stream.listenerCount("error") === 0) stream.on("error", () => {});
  addRunCommand(program);
  addLaunchCommand(program);
  addRapidformerCommands(program);
  addPlanCommand(program);
  addInspectCommand(program);
  addCheckpointCommand(program);
  addDashboardCommand(program);
  addExportCommand(program);
  addGenerateCommand(program);
  addChatCommand(program);
  addServeCommand(program);
  addPreprocessCommand(program);
  addDoctorCommand(program);
  try {
    await program.parseAsync([...withListing(args, process.env)], { from: "user" });
    await checkPrinted();
    return exitCodes.done;
  } catch (error) {
    const debug = printsFullErrors(program) || args.includes("--debug");
    if (!(error instanceof CommanderError)) return report(firstOf(error), debug);
    if (error.exitCode === 0) return exitCodes.done;
    // A command without its subcommand has shown its help.
    if (error.code === "commander.help") return exitCodes.usage;
    return report(misunderstood(program, args, error), debug);
  }
}

/** The error that came first: `await using` of a script wraps it where disposing throws too. */
function firstOf(error: unknown): unknown {
  return error instanceof SuppressedError ? firstOf(error.suppressed) : error;
}

function report(error: unknown, debug: boolean): number {
  const code = error instanceof TroupeError ? error.code : undefined;
  // An error without a code of ours, from our own files, is a bug: only its frames show where.
  const isOurs = code === undefined && ownFrames(framesOf((error as Error | undefined)?.stack)).length === 0;
  // A wrong argument has no place in a file.
  const isTyped = code !== undefined && USAGE_CODES.has(code) && !JOB_CODES.has(code) && !debug;
  const text = isTyped
    ? (error as Error).message
    : describeError(reportError(error), { debug: debug || isOurs });
  process.stderr.write(`troupe: ${text}\n`);
  if (code === "RUN_INTERRUPTED") return exitCodes.interrupted;
  return code !== undefined && USAGE_CODES.has(code) ? exitCodes.usage : exitCodes.failed;
}

/** Usage errors that a job's own code may also throw: for these the code's lines are shown. */
// biome-ignore format: a list
const JOB_CODES: ReadonlySet<string> = new Set([
  "LAYOUT", "ZERO_LEVEL", "JOB_CONFIG", "JOB_INVALID", "TENSOR_PLAN", "OPTIMIZER_OPTION", "DATA_INVALID",
]);

/** Errors in the arguments, found before anything ran. */
// biome-ignore format: a list
const USAGE_CODES: ReadonlySet<string> = new Set([
  ...JOB_CODES,
  "USAGE", "OPTION", "LAUNCH_VARIABLES", "CHECKPOINT_LOCKED", "CHECKPOINT_MISSING", "CHECKPOINT_OPTION",
  "CHECKPOINT_TAKEN", "CHECKPOINT_SERVE", "MODEL_SERVE", "CONVERT", "S3_UNAVAILABLE", "DASHBOARD_SOURCE",
  "DASHBOARD_PORT", "ACCESS_TOKEN", "RECOMPUTE_PART", "RESUME_MISMATCH", "CONFIG_FILE", "DEVICE_UNAVAILABLE", "SINK",
  "DATA_UNREADABLE", "DATA_MISSING", "DATA_EMPTY", "DATA_TOO_SHORT", "GENERATE_OPTION", "TOKENIZER_INVALID",
  "HUGGING_FACE_FOLDER", "HUB", "HUB_CHECKSUM", "HUB_UNREACHABLE", "ARGUMENTS",
  // Not such an error, but 1 from `checkpoint verify` means damage, and its findings were not printed.
  "OUTPUT_LOST",
]);

function version(): string {
  const text = readFileSync(new URL("../../../package.json", import.meta.url), "utf8");
  return (JSON.parse(text) as { version: string }).version;
}
