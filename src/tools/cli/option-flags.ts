import { type Command, Option as Flag } from "commander";
import { describeStandard, type Given, groups, type Option, readText } from "../../job/options/index.ts";
import { pair } from "./flags.ts";

/** Adds the flags of options, grouped by subject. */
export function addOptionFlags(command: Command, options: readonly Option[]): Command {
  for (const group of Object.keys(groups)) {
    for (const option of options) if (option.group === group) addFlags(command, option);
  }
  return command;
}

function addFlags(command: Command, option: Option): void {
  for (const [flags, help] of flagsOf(option)) {
    const flag = new Flag(flags, help).helpGroup(`${groups[option.group]}:`);
    if (isPairs(flags)) flag.argParser(pair(flags, `${flag.long} loss=skip`));
    command.addOption(flag);
  }
}

function flagsOf(option: Option): readonly (readonly [string, string])[] {
  const own = option.flag === "" ? [] : [[option.flag, helpOf(option)] as const];
  return [...own, ...Object.entries(option.also ?? {})];
}

function helpOf(option: Option): string {
  const standard = describeStandard(option);
  return standard === "" || standard === "false"
    ? option.meaning
    : `${option.meaning} (default: ${standard})`;
}

/** Whether the flag gives options by name, such as `--anomaly <what=policy>`. */
const isPairs = (flags: string) => flags.includes("=");

/** Returns the options that were given as flags. */
export function typedOptions(command: Command, options: readonly Option[]): Given[] {
  return options.flatMap((option) =>
    flagsOf(option).flatMap(([flags]) => typed(command, option, new Flag(flags))),
  );
}

function typed(command: Command, option: Option, flag: Flag): Given[] {
  const name = flag.attributeName();
  const value: unknown = command.getOptionValue(name);
  if (command.getOptionValueSource(name) !== "cli") return [];
  // Commander keeps `--events FILE` and `--no-events` under one name: false means the latter.
  if (flag.negate !== (value === false)) return [];
  const given = { origin: "flag", by: flag.long ?? "" } as const;
  if (isPairs(flag.flags))
    return Object.entries(value as Record<string, string>).map(([key, text]) => ({
      ...given,
      path: [...option.path, key],
      value: text,
    }));
  // `--dashboard` without a port turns the dashboard on.
  if (flag.optional && value === true) return [{ ...given, path: option.path.slice(0, -1), value }];
  return [
    { ...given, path: option.path, value: typeof value === "string" ? readText(option, value) : value },
  ];
}
