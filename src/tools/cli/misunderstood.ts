import type { Command, CommanderError } from "commander";
import { nearestName, type TroupeError } from "../../errors/index.ts";
import { usage } from "./flags.ts";

/** Flags of other trainers, with their counterparts here. */
const OTHER_TRAINERS: Readonly<Record<string, string>> = {
  "--batch-size": "the job's training gives batchSize; --set changes it where the job has such a setting",
  "--devices": "did you mean --ranks?",
  "--gpus": "did you mean --ranks?",
  "--learning-rate": "the job's optimizer gives it; --set changes it where the job has such a setting",
  "--lr": "the job's optimizer gives it; --set changes it where the job has such a setting",
  "--nproc-per-node": "did you mean --ranks?",
  "--num-gpus": "did you mean --ranks?",
  "--output-dir": "did you mean --checkpoint?",
  "--resume-from-checkpoint": "did you mean --resume?",
  "--save-dir": "did you mean --checkpoint?",
  "--world-size": "did you mean --ranks?",
};

/** Words commander's error about `args` as one of ours, with a suggestion from the program that could not read them. */
export function misunderstood(program: Command, args: readonly string[], error: CommanderError): TroupeError {
  const command = commandOf(program, args);
  const name = nameOf(command);
  const complaint = error.message.replace(/^error: /, "").split("\n")[0] ?? "";
  const [, quoted = ""] = /'([^']*)'/.exec(complaint) ?? [];
  switch (error.code) {
    case "commander.unknownOption":
      return usage(`an option of ${name}`, quoted, meantBy(quoted, flagsOf(command)) ?? `see ${name} --help`);
    case "commander.unknownCommand": {
      const names = command.commands.map((each) => each.name());
      const near = nearestName(quoted, names);
      return usage(
        `a command of ${name}`,
        quoted,
        near === undefined ? `there are ${names.join(", ")}` : `did you mean ${near}?`,
      );
    }
    case "commander.excessArguments": {
      const known = command.registeredArguments.map((each) => each.name().toUpperCase());
      const beyond = command.args.slice(known.length);
      const isSetting = beyond.some((each) => each.includes("="));
      const hint = isSetting
        ? "each setting has a --set of its own: --set a=1 --set b=2"
        : `see ${name} --help`;
      return usage(
        known.length === 0 ? `no argument of ${name}` : `${name} ${known.join(" ")}`,
        `also ${beyond.join(" ")}`,
        hint,
      );
    }
    default:
      return usage("a command line that can be read", complaint, `see ${name} --help`);
  }
}

/** The innermost command among the arguments. */
function commandOf(program: Command, args: readonly string[]): Command {
  const [first, ...rest] = args;
  const inner = program.commands.find(
    (each) => each.name() === first || each.aliases().includes(first ?? ""),
  );
  return inner === undefined ? program : commandOf(inner, rest);
}

function nameOf(command: Command): string {
  return command.parent === null ? command.name() : `${nameOf(command.parent)} ${command.name()}`;
}

function flagsOf(command: Command): string[] {
  return command
    .createHelp()
    .visibleOptions(command)
    .flatMap(({ long }) => long ?? []);
}

function meantBy(typed: string, flags: readonly string[]): string | undefined {
  const plain = typed.replaceAll("_", "-").replace(/=.*/, "");
  const other = OTHER_TRAINERS[plain];
  if (other !== undefined) return other;
  const meant = nearestName(plain, flags) ?? flags.find((flag) => plain.startsWith(`${flag}-`));
  return meant === undefined ? undefined : `did you mean ${meant}?`;
}
