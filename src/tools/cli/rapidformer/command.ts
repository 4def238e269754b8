import { type Command, Option as CommandFlag } from "commander";
import { jobUrlOf, pythonScript } from "../../../actors/trainer/index.ts";
import { fileFailure } from "../../../errors/index.ts";
import { maxFileBytes, readBoundedTextSync } from "../../../errors/untrusted/index.ts";
import { commandSchema, type Given, optionsOf } from "../../../job/options/index.ts";
import { jobModules, flags as rapidformerFlags } from "../../../job/rapidformer/index.ts";
import { print, quoted, usage } from "../flags.ts";
import { addOptionFlags, typedOptions } from "../option-flags.ts";
import { configFlag, givenAround, printFlag, type RunFlags, runJob, settingFlag } from "../run.ts";
import { readListing } from "./listing.ts";
import { argvOf, parse, type TypedFlags } from "./parse.ts";
import { launchVariables, settle } from "./settle.ts";

const options = optionsOf(commandSchema);

/** The command with Rapidformer's own name. */
const RAPIDFORMER = "rapidformer";

type Work = "finetune" | "pretrain";

/**
 * Adds `troupe finetune` and `troupe pretrain`, which take Rapidformer's flags as well as those of `troupe run`, and
 * `troupe rapidformer`, whose `--task` chooses between them.
 */
export function addRapidformerCommands(program: Command): void {
  add(program, "finetune", "fine-tune a model by name on data by name, or a template of your own");
  add(program, "pretrain", "train a model on indexed data, or a template of your own");
  add(
    program,
    RAPIDFORMER,
    "either, as Rapidformer's own command line asks for it, or a script with one in it",
  );
}

/**
 * Replaces `rapidformer SCRIPT` by the command in that script, with later arguments after its own, and applies the
 * variables that it exports.
 * @throws {TroupeError} `USAGE` unless the script has exactly one rapidformer command
 */
export function withListing(args: readonly string[], environment: NodeJS.ProcessEnv): readonly string[] {
  const [command, file = "", ...others] = args;
  if (command !== RAPIDFORMER || file === "" || file.startsWith("-")) return args;
  if (/\.pyc?$/.test(file)) throw pythonScript(file);
  let text: string;
  try {
    text = readBoundedTextSync(file, maxFileBytes.settings);
  } catch (cause) {
    throw usage(
      `a script of rapidformer at ${file}, or flags`,
      fileFailure(cause),
      "see troupe rapidformer --help",
    );
  }
  const listing = readListing(text, environment);
  const found = listing.commands.filter(([name = ""]) => /(^|\/)rapidformer(\.mjs)?$/.test(name));
  const [words, second] = found;
  if (words === undefined || second !== undefined)
    throw usage(
      `one rapidformer command in ${file}`,
      `${found.length}`,
      "a listing exports variables and runs it",
    );
  Object.assign(environment, listing.environment);
  return [RAPIDFORMER, ...words.slice(1), ...others];
}

interface Flags extends RunFlags {
  readonly printArgv?: boolean;
}

function add(program: Command, name: Work | typeof RAPIDFORMER, description: string): void {
  const command = program
    .command(name)
    .description(description)
    .usage("[Rapidformer's flags] [options]")
    .addHelpText("after", () => `\n${helpOfFlags()}`)
    .addOption(configFlag())
    .addOption(printFlag())
    .addOption(
      new CommandFlag(
        "--print-argv",
        "print Rapidformer's flags as they were read, and train nothing",
      ).helpGroup("Options:"),
    )
    // Flags that the runtime does not know are Rapidformer's; unknown ones are refused there.
    .allowUnknownOption()
    .allowExcessArguments()
    .action(async (flags: Flags) => {
      const own = command.options.map(({ long }) => long ?? "");
      if (command.args.some((word) => word !== "" && word.trim() === ""))
        process.stderr.write(
          "troupe: the shell ended this command at a backslash with a comment behind it; `rapidformer FILE` reads the script as it is meant\n",
        );
      const typed = parse(command.args, own);
      if (flags.printArgv === true) print(argvOf(typed).map(quoted).join(" "));
      else await train(name, typed, flags, command);
    });
  addOptionFlags(command, options).addOption(settingFlag());
}

async function train(
  name: Work | typeof RAPIDFORMER,
  typed: TypedFlags,
  flags: Flags,
  command: Command,
): Promise<void> {
  const others = [...givenAround(flags), ...typedOptions(command, options)];
  Object.assign(process.env, launchVariables(process.env));
  const tell = (line: string) => process.stderr.write(`${line}\n`);
  const { given, userScript, notices } = await settle(typed, others, process.env, tell);
  const byTask = typed.get("--task") === "pretraining" ? "pretrain" : "finetune";
  const url =
    userScript === undefined
      ? String(jobModules[name === RAPIDFORMER ? byTask : name])
      : jobUrlOf(userScript);
  if (flags.printConfig !== true) for (const notice of notices) tell(notice);
  const said = [...below(given), ...below(others), ...above(given), ...above(others)];
  await runJob(`troupe ${name} ${argvOf(typed).map(quoted).join(" ")}`, url, said, flags, command);
}

/** Flags win over files and variables, in both sets of options. */
const above = (given: readonly Given[]) => given.filter(({ origin }) => origin === "flag");
const below = (given: readonly Given[]) => given.filter(({ origin }) => origin !== "flag");

function helpOfFlags(): string {
  const shown = rapidformerFlags.filter(({ isShown }) => isShown);
  const lines = shown.map(({ flag, takes, meaning }) => {
    const value = takes === "nothing" ? "" : ` <${typeof takes === "string" ? takes : "word"}>`;
    return `  ${`${flag}${value}`.padEnd(40)}  ${meaning}`;
  });
  const heading = "Rapidformer's flags; Megatron-LM's of 2022 are known too (docs/reference/rapidformer.md):";
  return `${heading}\n${lines.join("\n")}\n`;
}
