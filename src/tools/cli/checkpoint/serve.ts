import { join } from "node:path";
import { consoleSink, jsonLinesSink } from "../../../job/events/index.ts";
import { isS3 } from "../../../library/s3-client.ts";
import { CheckpointServer, CheckpointService, type CheckpointServiceOptions } from "../../service/index.ts";
import { usage } from "../flags.ts";
import { nextSignal } from "../next-signal.ts";
import { checkPlace, type PlaceFlags } from "../serving-place.ts";

interface ServeFlags extends PlaceFlags {
  readonly dir: string;
  readonly staging?: number;
  readonly keepLast?: number;
  readonly keepEvery?: number;
  readonly idle: number;
  readonly verify: boolean;
  readonly json: boolean;
}

const STANDARD_OUTPUT = 1;

/** `troupe checkpoint serve --dir DIR`: serves until interrupted; ends after the saves that are being written. */
export async function serveCheckpoints(flags: ServeFlags): Promise<void> {
  checkPlace(flags);
  const { dir, socket, port, idle } = flags;
  const isBucket = isS3(dir);
  const tokenFile = flags.tokenFile ?? (isBucket ? undefined : join(dir, ".token"));
  if (port !== undefined && tokenFile === undefined)
    throw usage("--token-file with s3:// and --port", "none", "say where the token is kept");
  if (!(idle > 0)) throw usage("--idle in seconds", String(idle), "more than 0");
  // Listens before there is anything to remove: a signal during set-up also ends the server in order.
  using end = nextSignal();
  await using service = await CheckpointService.open({
    ...optionsOf(flags),
    ...(isBucket ? { storage: dir } : { dir }),
  });
  service.addSink(flags.json ? jsonLinesSink(STANDARD_OUTPUT) : consoleSink());
  await using server = await CheckpointServer.listen(service, {
    socket,
    port,
    tokenFile: port === undefined ? undefined : tokenFile,
    idleMs: idle * 1000,
  });
  process.stderr.write(
    `troupe: serving checkpoints of ${service.location} at ${server.address}${port === undefined ? "" : `, token in ${tokenFile}`}\n`,
  );
  await end.heard;
}

function optionsOf({ staging, keepLast, keepEvery, verify }: ServeFlags): CheckpointServiceOptions {
  return {
    verify,
    ...(staging !== undefined && { stagingBytes: staging }),
    ...(keepLast !== undefined && { keepLast }),
    ...(keepEvery !== undefined && { keepEvery }),
  };
}
