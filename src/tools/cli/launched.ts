import { createHash } from "node:crypto";
import { heartbeatOf, type Launch, takePart } from "../../actors/launch/index.ts";
import { Interruption } from "../../actors/trainer/index.ts";
import { TroupeError } from "../../errors/index.ts";
import { type CommandOptions, type Given, read, runtimeSchema } from "../../job/options/index.ts";
import type { HostAgent } from "../../runtime/index.ts";

const DIGEST_LENGTH = 12;

/** Describes a run for comparison between hosts: the job, and a digest of all options given. */
export function aboutRun(url: string, given: readonly Given[]): string {
  const said = given
    // The paths of certificates may differ between hosts.
    .filter(({ origin, path }) => origin !== "default" && path[0] !== "hosts")
    .map(({ path, value }) => `${path.join(".")}=${JSON.stringify(value)}`)
    .sort();
  const digest = createHash("sha256").update(said.join("\n")).digest("hex").slice(0, DIGEST_LENGTH);
  return `${url}, options of digest ${digest}`;
}

/**
 * Joins a run that another host leads, and runs this host's ranks.
 * @throws {TroupeError} the error that the run failed with; `RUN_INTERRUPTED` where a signal to any host ended it
 */
export async function takePartIn(launch: Launch, about: string, { runtime }: CommandOptions): Promise<void> {
  const chosen = read(runtimeSchema, runtime, () => "");
  const { hosts, hostDeadlineSeconds, hostSilenceSeconds, graceSeconds } = chosen;
  let joined: HostAgent | undefined;
  const headless = Promise.withResolvers<never>();
  // The head receives the signal, or will once this host has joined, and lets the run save and end.
  using interruption = new Interruption((signal) => {
    if (joined !== undefined) joined.signal(signal);
    else
      setTimeout(
        () => joined ?? headless.reject(interruptedEarly(signal, launch)),
        graceSeconds * 1000,
      ).unref();
  });
  const part = takePart({
    launch,
    about,
    deadlineMs: hostDeadlineSeconds * 1000,
    trust: hosts,
    heartbeat: heartbeatOf(hostSilenceSeconds),
    onJoined: (agent) => {
      joined = agent;
      if (interruption.signal !== undefined) agent.signal(interruption.signal);
    },
  });
  await Promise.race([part, headless.promise]);
}

function interruptedEarly(signal: NodeJS.Signals, { rank }: Launch): TroupeError {
  return new TroupeError("RUN_INTERRUPTED", {
    where: "run",
    expected: "host 0 to accept this host",
    got: `${signal} on host ${rank}, and no answer of host 0 since`,
    hint: "no step was made here: start it again",
  });
}
