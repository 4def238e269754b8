import { randomInt } from "node:crypto";
import { hostname } from "node:os";
import { setTimeout as pause } from "node:timers/promises";
import { Store } from "../../compute/collectives/index.ts";
import { forkSupport } from "../../compute/tensor/index.ts";
import { TroupeError } from "../../errors/index.ts";
import type { HostsOptions } from "../../job/options/index.ts";
import { fromFailure, HostAgent, type Invitation } from "../../runtime/index.ts";
import { invitationKey, readEnd } from "./head.ts";
import { isCompanion, type Launch, type MasterAddress } from "./launch.ts";
import { ownMeans } from "./means.ts";
import { ownAddress } from "./own-address.ts";
import { noteRefused } from "./refused-hosts.ts";
import { readTrust, type Trust } from "./trust.ts";

const AGAIN_MS = 200;
const ATTEMPT_MS = 5_000;
/** The longest that this host waits to leave a note for the head about why it ends. */
const NOTE_MS = 1_000;
const MOST_JOININGS = 2 ** 40;

/** Options of {@link takePart}. */
export interface MemberOptions {
  readonly launch: Launch;
  /** Settings that all hosts of the run must share. */
  readonly about: string;
  /** How long the head may take to appear. */
  readonly deadlineMs: number;
  /** Files by which hosts authenticate each other. */
  readonly trust: HostsOptions;
  /** When the head counts as lost. */
  readonly heartbeat: { readonly everyMs: number; readonly lostAfter: number };
  /** Called once this host has joined, with the agent that takes signals for the run. */
  readonly onJoined?: (agent: HostAgent) => void;
}

/**
 * Runs this host's share of the run's processes until the run is over.
 * @throws {TroupeError} the error that the run failed with; `HOST_MISSING`, `HOST_REFUSED`, `HOST_LOST`; `TLS_KEYS`,
 * `ACCESS_TOKEN` for files that cannot be used
 */
export async function takePart(options: MemberOptions): Promise<void> {
  const agent = await join(options);
  if (agent === undefined) return;
  options.onJoined?.(agent);
  const failure = await agent.over;
  if (failure !== undefined) throw fromFailure(failure);
}

/** Joins the run; an invitation of a head that has ended is read again until the deadline. @returns undefined once it is over */
async function join({
  launch,
  about,
  deadlineMs,
  heartbeat,
  trust,
}: MemberOptions): Promise<HostAgent | undefined> {
  const { master, rank } = launch;
  const { keys, token } = await trustIn(trust, launch);
  const begin = performance.now();
  const { address, store: opened } = await reach(master, deadlineMs);
  using store = opened;
  let last: unknown;
  while (performance.now() - begin < deadlineMs) {
    const end = readEnd(launch, store);
    if (end?.failure !== undefined) throw ended(end.failure, end.isInterrupted);
    if (end !== undefined) return undefined;
    const said = store.read(invitationKey(launch));
    if (said !== undefined) {
      try {
        return await HostAgent.join({
          invitation: JSON.parse(said) as Invitation,
          token,
          network: { host: address, heartbeat, ...(keys && { tls: keys }) },
          number: randomInt(MOST_JOININGS),
          place: rank,
          name: hostname(),
          means: ownMeans(),
          about,
          isCompanion: isCompanion(launch),
          forks: forkSupport(),
        });
      } catch (error) {
        if (!(error instanceof TroupeError)) throw error;
        // A head that was started in place of another has left another invitation.
        const isStale = store.read(invitationKey(launch)) !== said;
        if (error.code !== "HOST_LOST" && !isStale) {
          if (error.code !== "RUN_INTERRUPTED") noteRefused(launch, store, error);
          throw error;
        }
        last = error;
      }
    }
    await pause(AGAIN_MS);
  }
  throw new TroupeError("HOST_MISSING", {
    where: "launch",
    expected: `host 0 to say within ${deadlineMs / 1000} s how it is reached`,
    got: last === undefined ? "nothing" : (last as Error).message,
    hint: "see its own output",
    cause: last,
  });
}

/** Reads the files of trust. @throws errors of {@link readTrust}, after a moment for the note to reach the head */
async function trustIn(files: HostsOptions, launch: Launch): Promise<Trust> {
  try {
    return readTrust(files);
  } catch (error) {
    try {
      using store = (await reach(launch.master, NOTE_MS)).store;
      if (error instanceof TroupeError) noteRefused(launch, store, error);
    } catch {
      // The head has not started yet, or has ended.
    }
    throw error;
  }
}

/** Connects to the store. Its own call blocks and would hold up signals, so first waits here until the head listens. */
async function reach(
  master: MasterAddress,
  deadlineMs: number,
): Promise<{ readonly address: string; readonly store: Store }> {
  const begin = performance.now();
  const leftMs = () => Math.max(AGAIN_MS, Math.round(deadlineMs - (performance.now() - begin)));
  for (;;) {
    const address = await ownAddress(master, leftMs());
    try {
      const timeoutMs = Math.min(ATTEMPT_MS, leftMs());
      return { address, store: new Store({ ...master, listens: false, timeoutMs }) };
    } catch (error) {
      if (performance.now() - begin >= deadlineMs) throw error;
    }
    await pause(AGAIN_MS);
  }
}

function ended(failure: string, isInterrupted = false): TroupeError {
  if (isInterrupted)
    return fromFailure({ name: "TroupeError", code: "RUN_INTERRUPTED", message: failure, fields: {} });
  return new TroupeError("HOST_REFUSED", {
    where: "launch",
    expected: "a run that goes on",
    got: `one that has failed: ${failure}`,
    hint: "see the output of host 0",
  });
}
