import type { ErrorReport } from "../error-report.ts";
import type { EventOf, TroupeEvent } from "../event.ts";
import type { ReachedCollective } from "../kinds/actor.ts";
import type { EndReason } from "../kinds/run.ts";
import { describeError, describeFrames, type ErrorDepth } from "./describe-error.ts";
import { formatBytes, formatCount, formatDuration, formatMeasure, formatNamed, printable } from "./format.ts";

/** Colour of an event. */
export type Tone = "plain" | "good" | "bad";

/** An event in words. */
export interface Description {
  readonly text: string;
  readonly tone: Tone;
}

/**
 * Describes an event for a person watching a run: one or more lines, fit for a terminal.
 * @param depth - how much is shown of errors and their consequences
 * @returns undefined for events that the progress line shows or that are too common; also, without `debug` or
 * `consequences`, for those that only follow from an actor's end
 */
export function describeEvent(event: TroupeEvent, depth: ErrorDepth = {}): Description | undefined {
  switch (event.kind) {
    case "run.started":
      return plain(
        `${event.job}: ${describeParameters(event)}, ${event.numRanks} rank${event.numRanks === 1 ? "" : "s"}${describeMesh(event.mesh)}, ` +
          `${event.placement === "process" ? "a process each, " : ""}${describeDevices(event.devices)}ZeRO ${event.zero}, ${event.precision}, seed ${event.seed}, ` +
          `${event.firstStep > 0 ? `from step ${event.firstStep} ` : ""}to step ${event.steps}` +
          describeHead(event.pretrained) +
          describeHosts(event.hosts),
      );
    case "run.resumed":
      return plain(`resumes from ${event.path}${changesIn(event.changes)}`);
    case "evaluation.finished":
      return plain(
        `${event.split === "validation" ? "held-out" : event.split} loss ${event.lossNats.toFixed(4)} after step ${event.step}` +
          formatNamed({ ...event.losses, ...event.metrics }),
      );
    case "parameters.unused":
      return bad(
        `no loss of step ${event.step} uses ${listNames(event.names)}: forward does not call the modules that have them`,
      );
    case "rollouts.judged": {
      const kl = event.klNats === undefined ? "" : `, KL ${formatMeasure(event.klNats)} nats`;
      return plain(
        `round ${event.round}: reward ${formatMeasure(event.meanReward)} over ${event.numTexts} texts of ${formatMeasure(event.meanTokens)} tokens${kl}`,
      );
    }
    case "text.generated":
      return plain(`text after step ${event.step}:\n${event.text}`);
    case "checkpoint.skipped":
      return plain(`checkpoint of step ${event.step} skipped: ${event.reason}`);
    case "anomaly.detected": {
      const unit = event.anomaly === "straggler" ? " ms" : "";
      const limit =
        event.limit < Number.MAX_VALUE ? ` where ${formatMeasure(event.limit)}${unit} is the limit` : "";
      return bad(
        `step ${event.step}: ${event.anomaly}${event.rank === undefined ? "" : ` on rank ${event.rank}`}, ` +
          `${formatMeasure(event.value)}${unit}${limit}: ${event.action === "told" ? "training goes on" : event.action}`,
      );
    }
    case "actor.stalled":
      return bad(
        [
          `${event.actor}#${event.incarnation} ${event.call === undefined ? "shows no progress:" : "waits:"} ${describeStall(event)}`,
          ...describeFrames(event.call?.frames ?? []),
        ].join("\n"),
      );
    case "checkpoint.saved":
      return good(
        `saved ${event.path} (${formatBytes(event.sizeBytes)} in ${(event.durationMs / 1000).toFixed(1)} s)`,
      );
    case "checkpoint.rejected":
      return bad(`${event.path} is skipped for an older one: ${explain(event.error)}`);
    case "run.restored":
      return plain(
        event.from === "beginning"
          ? "back to the beginning"
          : `back to step ${event.step}, from ${event.from === "memory" ? "memory" : "its checkpoint"}`,
      );
    case "block.recorded": {
      const issued = event.forward.numIssued + event.backward.numIssued;
      const replayed = event.forward.operators.length + event.backward.operators.length;
      const singly = event.uncaptured === undefined ? "" : `, issued singly since ${event.uncaptured}`;
      return plain(
        `${event.block} is replayed as a program: ${issued} operators became ${replayed}${singly}`,
      );
    }
    case "block.unrecorded":
      return plain(
        `${event.block} is not replayed as a program: ${event.reason}${event.line === undefined ? "" : ` (${event.line})`}`,
      );
    case "losses.unweighed":
      return bad(
        `micro-batches of step ${event.step} have ${Math.min(...event.numCounted)} to ${Math.max(...event.numCounted)} labels that count, but equal weight: ${event.advice}`,
      );
    case "run.delayed":
      return plain(`has waited for ${formatDuration(event.waitedMs)} for ${event.what}`);
    case "run.interrupted":
      if (event.graceMs === undefined)
        return bad(`${event.signal}: the next run or model ends, none is open`);
      return bad(
        `${event.signal}: saving after the steps under way, within ${formatDuration(event.graceMs)} (a second signal ends at once)`,
      );
    case "checkpoint.failed":
      if (event.error.code === "CHECKPOINT_ABANDONED" && !(depth.debug || depth.consequences))
        return undefined;
      return bad(`step ${event.step} could not be saved, training goes on: ${explain(event.error)}`);
    case "actor.failed":
      // The stall was reported when it was found.
      if (event.cause.code === "ACTOR_STALLED" && !(depth.debug || depth.consequences)) return undefined;
      return bad(`${event.actor}#${event.incarnation} failed: ${explain(event.cause)}`);
    case "actor.restarted":
      return plain(`${event.actor}#${event.incarnation} restarted`);
    case "host.joined":
      return plain(`host ${event.index} (${event.name}) has joined: ${describeMeans(event)}`);
    case "host.failed":
      return bad(`host ${event.index} (${event.name}) is lost: ${explain(event.error)}`);
    case "host.refused":
      return bad(`host ${event.index} (${event.name}) is refused: ${explain(event.error)}`);
    case "message.undelivered":
      if (event.reason === "Stopped" && !(depth.debug || depth.consequences)) return undefined;
      return bad(
        `${event.count} undelivered ${event.messageKind} from ${event.from} to ${event.to}: ${event.reason}`,
      );
    case "subscriber.failed":
      return bad(describeSubscriber(event, depth));
    case "events.dropped":
      return bad(
        event.actor === undefined
          ? `${event.numDropped} events were dropped: a subscriber is too slow`
          : `${event.numDropped} events of ${event.actor} were dropped: they come faster than they are read`,
      );
    case "output.failed":
      return bad(
        event.numLost === undefined
          ? `${event.output} cannot be written, training goes on: ${explain(event.error)}`
          : `${event.output} lacks ${entries(event.numLost)}: ${explain(event.error)}`,
      );
    case "output.resumed":
      return plain(
        `${event.output} is written again, ${event.numLost === 0 ? "nothing is lost" : `${entries(event.numLost)} are lost`}`,
      );
    case "run.finished":
      return event.numLeft === undefined || event.endedBy !== undefined
        ? good(describeEnd(event))
        : plain(describeEnd(event));
    case "run.failed":
      return bad(`failed: ${describeError(event.error, depth)}`);
    case "activity.finished":
    case "actor.started":
    case "actor.stopped":
    case "checkpoint.copied":
    case "checkpoint.progressed":
    case "checkpoint.started":
    case "histogram.measured":
    case "memory.measured":
    case "message.handled":
    case "step.finished":
      return undefined;
    default:
      return event satisfies never;
  }
}

function describeEnd({ steps, lossNats, durationMs, numLeft, endedBy }: EventOf<"run.finished">): string {
  if (Number.isNaN(lossNats))
    return steps === 0
      ? "ended before its first step"
      : numLeft === undefined
        ? `done: ${steps} steps were made before, nothing is left to train`
        : `ended at step ${steps} of ${steps + numLeft}, before it made another`;
  const how = `in ${formatDuration(durationMs)}, last loss ${lossNats.toFixed(4)}`;
  return numLeft === undefined || endedBy !== undefined
    ? `${whyEnded(endedBy)}: ${steps} steps ${how}`
    : `ended at step ${steps} of ${steps + numLeft} ${how}`;
}

function describeSubscriber(
  { subscriber, error, numFailed, numLost }: EventOf<"subscriber.failed">,
  depth: ErrorDepth,
): string {
  if (numFailed === undefined || numLost === undefined)
    return `${subscriber} failed, training goes on: ${describeError(error, depth)}`;
  const counts = [
    ...(numFailed === 0 ? [] : [`failed ${numFailed === 1 ? "once" : `${numFailed} times`}`]),
    ...(numLost === 0 ? [] : [`lacks ${entries(numLost)}`]),
  ];
  return `${subscriber} ${counts.join(" and ")}: ${error.message}`;
}

const entries = (count: number): string => (count === 1 ? "one entry" : `${count} entries`);

function explain(error: ErrorReport): string {
  return error.actor === undefined ? error.message : `${error.message} (in ${error.actor})`;
}

/** Describes the work of an actor without progress: "handling step for 31 s, at forward 12, after allReduce #1841 of tp 0-1". */
export function describeStall({
  state,
  ageMs,
  handling,
  waitingFor,
  op,
  call,
  collective,
}: Pick<
  EventOf<"actor.stalled">,
  "state" | "ageMs" | "handling" | "waitingFor" | "op" | "call" | "collective"
>): string {
  if (call !== undefined)
    return `${call.what} has ${call.isPending ? "returned a promise that has not settled" : "not returned"} for ${formatDuration(call.ageMs)}`;
  const subject = waitingFor === undefined ? (handling ?? "") : `for ${waitingFor}`;
  const at =
    op === undefined
      ? ""
      : `, at ${[op.name, op.block, op.sequence].filter((part) => part !== "").join(" ")}`;
  return `${state} ${subject} for ${formatDuration(ageMs)}${at}${describeCollective(collective)}`;
}

/** Describes an actor's collective, to continue a sentence: ", after allReduce #1841 of tp 0-1". */
export function describeCollective(collective: ReachedCollective | undefined): string {
  if (collective === undefined) return "";
  const { name, group, sequence, isWaiting } = collective;
  return `, ${isWaiting ? "in" : "after"} ${name} #${sequence} of ${group}`;
}

const plain = (text: string): Description => ({ text: printable(text), tone: "plain" });

const good = (text: string): Description => ({ text: printable(text), tone: "good" });

const bad = (text: string): Description => ({ text: printable(text), tone: "bad" });

const NAMES_SHOWN = 8;

function listNames(names: readonly string[]): string {
  const numMore = names.length - NAMES_SHOWN;
  const shown = names.slice(0, NAMES_SHOWN).join(", ");
  return numMore > 0 ? `${shown} and ${numMore} more` : shown;
}

function describeParameters({ numParameters, numTrainable }: EventOf<"run.started">): string {
  const all = `${formatCount(numParameters)} parameters`;
  return numTrainable < numParameters ? `${all}, ${formatCount(numTrainable)} of them trainable` : all;
}

function describeHead(pretrained: EventOf<"run.started">["pretrained"]): string {
  const { fresh = [], dropped = [] } = pretrained ?? {};
  const drawn = fresh.length > 0 ? `; not in the folder, drawn: ${fresh.join(", ")}` : "";
  return drawn + (dropped.length > 0 ? `; in the folder, not used: ${dropped.join(", ")}` : "");
}

function describeHosts(hosts: EventOf<"run.started">["hosts"]): string {
  const lines = (hosts ?? []).map(
    (host) => `\n  host ${host.index} (${host.name}), ${describeMeans(host)}: ${describeRanks(host.ranks)}`,
  );
  return lines.join("");
}

type Means = Pick<EventOf<"host.joined">, "numCores" | "memoryBytes" | "devices">;

function describeMeans({ numCores, memoryBytes, devices }: Means): string {
  const parts = [`${numCores} core${numCores === 1 ? "" : "s"}`, formatBytes(memoryBytes), ...devices];
  return parts.join(", ");
}

/** "ranks 0 to 3"; they are consecutive. */
function describeRanks(ranks: readonly number[]): string {
  const [first] = ranks;
  if (first === undefined) return "no ranks";
  return ranks.length === 1 ? `rank ${first}` : `ranks ${first} to ${ranks.at(-1)}`;
}

function describeDevices(devices: readonly string[]): string {
  const present = [...new Set(devices)];
  return present.every((device) => device === "cpu") ? "" : `on ${present.join(" and ")}, `;
}

/** The mesh, unless ranks are only replicas: " (2 replicas × 2 stages × tp 2)". */
function describeMesh({ dp, pp, tp, ep }: EventOf<"run.started">["mesh"]): string {
  if (pp * tp * ep === 1) return "";
  const parts = [
    dp > 1 ? `${dp} replicas` : "",
    pp > 1 ? `${pp} stages` : "",
    tp > 1 ? `tp ${tp}` : "",
    ep > 1 ? `ep ${ep}` : "",
  ];
  return ` (${parts.filter((part) => part !== "").join(" × ")})`;
}

/** Lists changes once each: a setting may also be an option of the run. */
function changesIn(changes: EventOf<"run.resumed">["changes"]): string {
  return [...new Set(changes.map(({ name, was, is }) => `; ${name} was ${was}, is ${is}`))].join("");
}

const REASONS: Readonly<Record<EndReason, string>> = {
  "loop-returned": "done, the loop returned",
  "loop-stopped": "done, the loop called rank.stop()",
  "no-improvement": "done, the evaluation did not improve any more",
};

const whyEnded = (reason: EndReason | undefined): string => (reason === undefined ? "done" : REASONS[reason]);
