import { join } from "node:path";
import type { Command } from "commander";
import { readLaunch } from "../../actors/launch/index.ts";
import { jobUrlOf, Runtime } from "../../actors/trainer/index.ts";
import { commandSchema, optionsOf, readCommand } from "../../job/options/index.ts";
import { isS3 } from "../../library/s3-client.ts";
import { ModelServer } from "../service/index.ts";
import { printAddress } from "./dashboard.ts";
import { usage } from "./flags.ts";
import { nextSignal } from "./next-signal.ts";
import { addOptionFlags, typedOptions } from "./option-flags.ts";
import { type ConfigFlags, configFlag, givenAround, settingFlag } from "./run.ts";
import { checkRunFolder, withRunFolder } from "./run-folder.ts";
import { addPlaceFlags, checkPlace, type PlaceFlags } from "./serving-place.ts";
import { sinksOf } from "./sinks.ts";

const options = optionsOf(commandSchema);

/** Adds `troupe serve JOB`. */
export function addServeCommand(program: Command): void {
  const command = addPlaceFlags(
    program
      .command("serve")
      .description("open a job's model and let other programs on this machine call it, over HTTP")
      .argument("<job>", "path of the job's module"),
    "FOLDER/.token, in the folder of the checkpoints",
  );
  command.addOption(configFlag()).action(serve);
  addOptionFlags(command, options).addOption(settingFlag());
}

/**
 * Serves until a signal, or until the model cannot go on; the state is saved at the end.
 * @throws the error that ended the model
 */
async function serve(job: string, flags: ConfigFlags & PlaceFlags, command: Command): Promise<void> {
  checkPlace(flags);
  if (readLaunch(process.env) !== undefined)
    throw usage("troupe serve to run on one host", "several", "its ranks may be processes");
  const url = jobUrlOf(job);
  const said = [...givenAround(flags), ...typedOptions(command, options)];
  const { runtime: asked, output, set } = readCommand((await withRunFolder(url, said, true)).given);
  const dir = asked.checkpoint?.dir;
  if (dir !== undefined) checkRunFolder(dir);
  const tokenFile = tokenFileOf(flags, dir);
  // Listens before there is anything to save: a signal during set-up also ends the model in order.
  using end = nextSignal();
  await using runtime = await Runtime.spawn(asked);
  printAddress(runtime.dashboardUrl, runtime.dashboardTokenFile);
  for (const sink of await sinksOf(output, dir, asked.debug ?? false)) runtime.addSink(sink);
  const failed = Promise.withResolvers<"failed">();
  // Frozen copies of the model, which have names, may fail: it goes on.
  runtime.on("run.failed", ({ model }) => {
    if (model === undefined) failed.resolve("failed");
  });
  await using model = await runtime.open(url, set);
  await using server = await ModelServer.listen(model, runtime, {
    socket: flags.socket,
    port: flags.port,
    tokenFile,
  });
  const token = tokenFile === undefined ? "" : `, token in ${tokenFile}`;
  process.stderr.write(`troupe: serving ${job} at ${server.address}${token}\n`);
  // A client has heard of the error, so disposing the model would not throw it.
  if ((await Promise.race([end.heard, failed.promise])) === "failed") await model.close();
}

function tokenFileOf({ port, tokenFile }: PlaceFlags, dir: string | undefined): string | undefined {
  if (port === undefined || tokenFile !== undefined) return tokenFile;
  if (dir === undefined || isS3(dir))
    throw usage("--token-file with --port", "none, and no folder", "say where the token is kept");
  return join(dir, ".token");
}
