import { fileURLToPath } from "node:url";
import type { Command } from "commander";
import { readLaunch } from "../../actors/launch/index.ts";
import { jobUrlOf, leadLaunch, takeLaunch } from "../../actors/trainer/index.ts";
import { TroupeError } from "../../errors/index.ts";
import { commandSchema, environmentOptions, optionsOf, readCommand } from "../../job/options/index.ts";
import { aboutRun, takePartIn } from "./launched.ts";
import { addOptionFlags, typedOptions } from "./option-flags.ts";

const NAMES = ["hosts", "hostDeadlineSeconds", "hostSilenceSeconds", "graceSeconds"];

/** Options of how hosts find and trust each other; the script gives the others. */
const options = optionsOf(commandSchema).filter(({ path: [name = ""] }) => NAMES.includes(name));

/** Adds `troupe launch SCRIPT`. */
export function addLaunchCommand(program: Command): void {
  const command = program
    .command("launch")
    .description(
      "run a script on the first of several hosts that a launcher has started; the others take part",
    )
    .argument("<script>", "path of a module that spawns a runtime")
    .argument("[args...]", "the script's own arguments")
    .action(launch);
  addOptionFlags(command, options);
}

async function launch(script: string, args: readonly string[], _: object, command: Command): Promise<void> {
  const url = jobUrlOf(script);
  const said = [
    ...environmentOptions(process.env, commandSchema).filter(({ path: [name = ""] }) => NAMES.includes(name)),
    ...typedOptions(command, options),
  ];
  const asked = readCommand(said);
  const launch = readLaunch(process.env);
  const about = `${aboutRun(url, said)}, arguments ${JSON.stringify(args)}`;
  if (launch !== undefined && launch.rank > 0) return await takePartIn(launch, about, asked);
  const evaluated = Promise.withResolvers<void>();
  if (launch !== undefined)
    leadLaunch({
      launched: { launch, about, script: evaluated.promise },
      options: { signals: true, ...asked.runtime },
    });
  process.argv.splice(1, process.argv.length, fileURLToPath(url), ...args);
  try {
    await import(url);
  } finally {
    evaluated.resolve();
  }
  if (takeLaunch() !== undefined)
    throw new TroupeError("USAGE", {
      where: "launch",
      expected: `${script} to spawn a runtime`,
      got: "none",
      hint: "await Runtime.spawn(…) at the top level of the script",
    });
}
