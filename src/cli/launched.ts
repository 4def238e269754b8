import { createHash } from "node:crypto";
import { constants } from "node:os";
import { type CommandOptions, type Given, trustFilesOf } from "../config/index.ts";
import { TroupeError } from "../errors.ts";
import { heartbeatOf, type Launch, takePart } from "../launch/index.ts";

const SIGNALS = ["SIGINT", "SIGTERM", "SIGHUP", "SIGUSR1", "SIGUSR2"] as const;
const DIGEST_LENGTH = 12;
const USUAL_DEADLINE_S = 300;
const USUAL_SILENCE_S = 1.8;

/** @returns what every host of a run must be started with, in words: the job, and a digest of all that was said */
export function aboutRun(url: string, given: readonly Given[]): string {
  const said = given
    // Where a host keeps its own certificate is its own business.
    .filter(({ origin, path }) => origin !== "default" && path[0] !== "hosts")
    .map(({ path, value }) => `${path.join(".")}=${JSON.stringify(value)}`)
    .sort();
  const digest = createHash("sha256").update(said.join("\n")).digest("hex").slice(0, DIGEST_LENGTH);
  return `${url}, options of digest ${digest}`;
}

/**
 * Takes part in a run that another host leads: this one starts the ranks that live here.
 * @throws {TroupeError} what the run failed with; `RUN_INTERRUPTED` where it ended for a signal that this host was sent
 */
export async function takePartIn(launch: Launch, about: string, { runtime }: CommandOptions): Promise<void> {
  const { hostDeadlineSeconds = USUAL_DEADLINE_S, hostSilenceSeconds = USUAL_SILENCE_S } = runtime;
  let first: NodeJS.Signals | undefined;
  let tell: (signal: NodeJS.Signals) => void = (signal) => process.exit(exitOf(signal));
  // The head lets the run save and end, and this host with it; a second signal ends this host at once.
  const hear = (signal: NodeJS.Signals) => {
    if (first !== undefined) process.exit(exitOf(signal));
    first = signal;
    tell(signal);
  };
  for (const signal of SIGNALS) process.on(signal, hear);
  try {
    await takePart({
      launch,
      about,
      deadlineMs: hostDeadlineSeconds * 1000,
      trust: trustFilesOf(runtime.hosts),
      heartbeat: heartbeatOf({ silenceMs: hostSilenceSeconds * 1000 }),
      onJoined: (agent) => {
        tell = (signal) => agent.signal(signal);
      },
    });
  } finally {
    for (const signal of SIGNALS) process.off(signal, hear);
  }
  if (first === undefined) return;
  throw new TroupeError("RUN_INTERRUPTED", {
    where: "run",
    expected: "the run to reach its last step",
    got: `${first as string} on host ${launch.rank}`,
    hint: "host 0 tells what is saved, and how to go on",
  });
}

function exitOf(signal: NodeJS.Signals): number {
  return 128 + constants.signals[signal];
}
