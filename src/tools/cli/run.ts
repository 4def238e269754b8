import { type Command, Option as Flag } from "commander";
import { readLaunch } from "../../actors/launch/index.ts";
import {
  configure,
  jobUrlOf,
  type Launched,
  RESUME_AUTO,
  Runtime,
  settingsIn,
  startedIn,
  trainingOf,
} from "../../actors/trainer/index.ts";
import { TroupeError } from "../../errors/index.ts";
import { loadJob } from "../../job/index.ts";
import {
  type CommandOptions,
  commandSchema,
  environmentOptions,
  FILE_VARIABLE,
  fileOptions,
  type Given,
  groups,
  optionsOf,
  printConfig,
  readCommand,
} from "../../job/options/index.ts";
import { openCheckpoint } from "../../library/checkpoint/index.ts";
import { printAddress } from "./dashboard.ts";
import { print, printFullErrors, setting, usage } from "./flags.ts";
import { aboutRun, takePartIn } from "./launched.ts";
import { addOptionFlags, typedOptions } from "./option-flags.ts";
import { checkRunFolder, withRunFolder } from "./run-folder.ts";
import { sinksOf } from "./sinks.ts";

const options = optionsOf(commandSchema);

/** Adds `troupe run JOB`. */
export function addRunCommand(program: Command): void {
  const command = program
    .command("run")
    .description("train a job: a module whose default export is defineJob({ … })")
    .argument("<job>", "path of the job's module");
  command.addOption(configFlag()).addOption(printFlag()).action(run);
  addOptionFlags(command, options).addOption(settingFlag());
}

/** The flag for a file of options. */
export const configFlag = () =>
  new Flag(
    "--config <file>",
    "read options from a TOML or JSON file; flags and environment variables (TROUPE_RANKS=2) win over it",
  ).helpGroup("Options:");

/** The flag that prints the options instead of training. */
export const printFlag = () =>
  new Flag(
    "--print-config",
    "print every option, its value and where it was set, as a file for --config, and train nothing",
  ).helpGroup("Options:");

/** The flag for a setting of the job. */
export function settingFlag(): Flag {
  return new Flag("--set <key=value>", "a setting of the job; may be repeated")
    .argParser(setting)
    .helpGroup(`${groups.training}:`);
}

/** Flags besides the options of the schema. */
export interface ConfigFlags {
  readonly config?: string;
  readonly set?: Readonly<Record<string, string>>;
}

/** Returns the options from the file and the environment, and the settings from flags; later ones win. */
export function givenAround({ config, set = {} }: ConfigFlags): Given[] {
  const file = config ?? process.env[FILE_VARIABLE];
  const settings = Object.entries(set).map(
    ([name, value]): Given => ({ path: ["set", name], value, origin: "flag", by: "--set" }),
  );
  return [
    ...(file === undefined ? [] : fileOptions(file, commandSchema)),
    ...environmentOptions(process.env, commandSchema),
    ...settings,
  ];
}

/** Flags of `troupe run`. */
export interface RunFlags extends ConfigFlags {
  readonly printConfig?: boolean;
}

async function run(job: string, flags: RunFlags, command: Command): Promise<void> {
  const said = [...givenAround(flags), ...typedOptions(command, options)];
  await runJob(`troupe run ${job}`, jobUrlOf(job), said, flags, command);
}

/**
 * Trains a job, or prints its options.
 * @param called - the command as typed, for the message that says how to resume
 * @param said - options, and settings of the job; later ones win
 */
export async function runJob(
  called: string,
  url: string,
  said: readonly Given[],
  flags: RunFlags,
  command: Command,
): Promise<void> {
  const launch = readLaunch(process.env);
  const { given, isNumbered } = await withRunFolder(url, said, launch === undefined);
  checkDashboard(given);
  const asked = readCommand(given);
  if (asked.runtime.debug === true) printFullErrors(command);
  const launched = launch && { launch, about: aboutRun(url, given) };
  if (flags.printConfig === true) print((await describe(url, given, asked)).trimEnd());
  else if (launched !== undefined && launched.launch.rank > 0)
    await takePartIn(launched.launch, launched.about, asked);
  else
    await train(called, url, asked, launched).catch((error: unknown) => {
      // Another process took the same folder at the same moment.
      if (!isNumbered || (error as TroupeError).code !== "CHECKPOINT_LOCKED") throw error;
      return runJob(called, url, said, flags, command);
    });
}

/** A warning that the certificates do not protect tensors. */
const PLAIN_BYTES =
  "troupe: messages between hosts use TLS, but tensors go over Gloo unencrypted: use a private network";

async function train(
  called: string,
  url: string,
  { runtime: asked, output, set }: CommandOptions,
  launched: Launched | undefined,
): Promise<void> {
  if (asked.checkpoint?.dir !== undefined) checkRunFolder(asked.checkpoint.dir);
  await using runtime = await Runtime.spawn({ signals: true, ...asked }, launched);
  printAddress(runtime.dashboardUrl, runtime.dashboardTokenFile);
  for (const sink of await sinksOf(output, asked.checkpoint?.dir, asked.debug ?? false))
    runtime.addSink(sink);
  if (launched !== undefined && asked.hosts?.tls !== undefined) process.stderr.write(`${PLAIN_BYTES}\n`);
  const { saveError, interruptedBy, steps } = await runtime.run(url, set);
  if (saveError !== undefined)
    throw new TroupeError("CHECKPOINT_SAVE_FAILED", { relayed: saveError.message });
  if (interruptedBy === undefined) return;
  const folder = asked.checkpoint?.dir ?? "";
  throw new TroupeError("RUN_INTERRUPTED", {
    where: "run",
    expected: "the run to reach its last step",
    got: `${interruptedBy} after step ${steps}, whose state is saved in ${folder}`,
    hint: `go on with: ${called} --resume ${folder}`,
  });
}

/** Prints the options, including those that the job and the checkpoint give. */
async function describe(url: string, given: readonly Given[], asked: CommandOptions): Promise<string> {
  const job = await loadJob(url);
  const { resume: asAsked, checkpoint } = asked.runtime;
  const resume = asAsked === RESUME_AUTO ? await startedIn(checkpoint?.dir) : asAsked;
  await using checkpointed = resume === undefined ? undefined : await openCheckpoint(resume);
  const resumed = checkpointed?.state;
  const remembered = resumed === undefined ? {} : settingsIn(resumed);
  const config = configure(job, asked.set, remembered);
  // Data is opened only where the job's training asks for its facts.
  const facts = job.training.length < 2 ? { source: "" } : (await job.data(config, { seed: 0 })).facts;
  const { steps, accumulation } = await trainingOf(job, config, facts);
  const said = (origin: "job" | "checkpoint", path: readonly string[], value: unknown): Given[] =>
    value === undefined ? [] : [{ path, value, origin, by: "" }];
  const beneath = [
    ...said("job", ["steps"], steps),
    ...said("job", ["accumulation"], accumulation ?? 1),
    ...Object.entries(job.config).flatMap(([name, value]) => said("job", ["set", name], value)),
    ...Object.keys(remembered).flatMap((name) => said("checkpoint", ["set", name], config[name])),
    ...said("checkpoint", ["seed"], resumed?.seed),
  ];
  return printConfig(readCommand([...beneath, ...given]), config);
}

/** Refuses flags for a dashboard that is not on: they alone must not open a port. */
function checkDashboard(given: readonly Given[]): void {
  const isOf = (path: string) => given.find((each) => each.path.join(".") === path);
  const how = [isOf("dashboard.host"), isOf("dashboard.tokenFile")].find((each) => each?.origin === "flag");
  if (how === undefined || isOf("dashboard") !== undefined || isOf("dashboard.port") !== undefined) return;
  throw usage(`${how.by} with --dashboard`, String(how.value), "add --dashboard");
}
