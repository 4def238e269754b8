/** @import { ActorStatus, Span } from "../frame.ts" */
import { colour } from "./colours.js";

/** Kinds of work, with a colour and a label for each. @type {readonly (readonly [kind: string, label: string])[]} */
export const kinds = [
  ["compute", "computing"],
  ["backward", "backward"],
  ["exchange", "exchanging"],
  ["update", "updating"],
  ["data", "data"],
  ["save", "saving"],
  ["waiting", "waiting"],
];

const colourOf = /** @type {Record<string, string>} */ ({
  compute: "blue",
  backward: "sky",
  exchange: "purple",
  update: "green",
  data: "ochre",
  save: "vermilion",
  waiting: "muted",
});

/**
 * A stretch of a lane: sampled from the board five times a second, or reported by the actor (a span).
 * @typedef {object} Stretch
 * @property {number} beginMs
 * @property {number} endMs
 * @property {string} kind
 * @property {string} label
 * @property {number} height from 0 to 1
 * @property {boolean} isReported
 */

const keptMs = 31_000;
const maxStretches = 3000;
/** Height of work that was in progress while the actor was free for other work. */
const awaitedHeight = 0.6;
/** Height of waiting, and of stretches around more detailed ones. */
const lowHeight = 0.15;

/** The recent work of one actor, and its picture. */
export class Lane {
  canvas = document.createElement("canvas");
  /** The actor's role, such as "rank"; "" until it is known. */
  role = "";
  /** Messages handled per second since the last sample; NaN if unknown. */
  messagesPerSecond = Number.NaN;
  /** @type {Stretch[]} */
  #stretches = [];
  /** The last sample. @type {Stretch | undefined} */
  #seen;
  #seenAtMs = Number.NaN;
  #numHandled = Number.NaN;
  #shown = { fromMs: 0, toMs: 1 };

  constructor() {
    this.canvas.addEventListener("pointermove", (event) => this.#explain(event));
  }

  /** @param {ActorStatus} status @param {number} timeMs */
  look(status, timeMs) {
    const elapsedMs = timeMs - this.#seenAtMs;
    const numNew = status.numHandled - this.#numHandled;
    const glance = glanceOf(this.role, status, numNew);
    if (elapsedMs > 0 && elapsedMs < 3000) {
      this.messagesPerSecond = numNew >= 0 ? (1000 * numNew) / elapsedMs : Number.NaN;
      // Unbroken work is one stretch, however many samples it spans.
      if (this.#seen?.label === glance.label && this.#seen.height === glance.height)
        this.#seen.endMs = timeMs;
      else this.#see({ ...glance, beginMs: this.#seenAtMs, endMs: timeMs, isReported: false });
    }
    this.#seenAtMs = timeMs;
    this.#numHandled = status.numHandled;
    this.#forget(timeMs);
  }

  /** @param {Span} span */
  tell({ work, awaited, beginMs, endMs }) {
    const height = awaited ? awaitedHeight : isAround(this.role, work) ? lowHeight : 1;
    const kind = kindOf(this.role, work);
    this.#add({
      kind,
      label: work,
      height: kind === "waiting" ? lowHeight : height,
      beginMs,
      endMs,
      isReported: true,
    });
  }

  /** @param {number} fromMs @param {number} toMs */
  draw(fromMs, toMs) {
    const { canvas } = this;
    const ratio = devicePixelRatio || 1;
    const width = Math.round(canvas.clientWidth * ratio);
    const height = Math.round(canvas.clientHeight * ratio);
    if (width === 0) return;
    if (canvas.width !== width || canvas.height !== height) Object.assign(canvas, { width, height });
    const context = canvas.getContext("2d");
    if (context === null) return;
    context.clearRect(0, 0, width, height);
    const x = (/** @type {number} */ timeMs) => ((timeMs - fromMs) / (toMs - fromMs)) * width;
    this.#shown = { fromMs, toMs };
    // Where the actor itself has reported most of the time, samples are faint.
    const glimpsed = this.#toldMs(fromMs, toMs) > (toMs - fromMs) / 5 ? 0.2 : 1;
    for (const { beginMs, endMs, kind, height: share, isReported } of this.#stretches.toSorted(
      longestFirst,
    )) {
      if (endMs < fromMs || beginMs > toMs) continue;
      context.fillStyle = colour(colourOf[kind] ?? "grey");
      context.globalAlpha = isReported ? 1 : glimpsed;
      const left = Math.max(0, x(beginMs));
      const gap = isReported ? 0 : ratio;
      const tall = Math.max(2 * ratio, share * height);
      context.fillRect(left, height - tall, Math.max(ratio, Math.min(width, x(endMs)) - left - gap), tall);
    }
    context.globalAlpha = 1;
  }

  /** @param {number} fromMs @param {number} toMs */
  #toldMs(fromMs, toMs) {
    const reported = this.#stretches.filter(
      (one) => one.isReported && one.endMs > fromMs && one.beginMs < toMs,
    );
    return reported.reduce((sum, { beginMs, endMs }) => sum + endMs - beginMs, 0);
  }

  /** @param {PointerEvent} event */
  #explain(event) {
    const { fromMs, toMs } = this.#shown;
    const timeMs = fromMs + (event.offsetX / this.canvas.clientWidth) * (toMs - fromMs);
    const slackMs = (2 / this.canvas.clientWidth) * (toMs - fromMs);
    const under = this.#stretches.filter(
      ({ beginMs, endMs }) => beginMs - slackMs <= timeMs && timeMs <= endMs + slackMs,
    );
    // The shortest is the one that the user points at: others lie around it.
    const one = under.toSorted((a, b) => a.endMs - a.beginMs - (b.endMs - b.beginMs))[0];
    const length = one?.isReported ? `, ${(one.endMs - one.beginMs).toFixed(2)} ms` : "";
    this.canvas.title = one === undefined ? "idle" : `${one.label}${length}`;
  }

  /** @param {Stretch} stretch */
  #see(stretch) {
    this.#seen = stretch;
    if (stretch.height > 0) this.#add(stretch);
  }

  /** @param {Stretch} stretch */
  #add(stretch) {
    this.#stretches.push(stretch);
    if (this.#stretches.length > maxStretches) this.#stretches = this.#stretches.slice(-maxStretches / 2);
  }

  /** @param {number} timeMs */
  #forget(timeMs) {
    const first = this.#stretches[0];
    if (first === undefined || first.endMs > timeMs - 2 * keptMs) return;
    this.#stretches = this.#stretches.filter(({ endMs }) => endMs > timeMs - keptMs);
  }
}

/**
 * The stretch that a sample of the board gives for the time since the last one.
 * @param {string} role @param {ActorStatus} status @param {number} numNew messages handled meanwhile
 */
function glanceOf(role, { state, handling, waitingFor, op }, numNew) {
  const at = op === undefined ? "" : ` ${op.block} ${op.sequence}`.replace(/ +/g, " ");
  if (state === "waiting")
    return { kind: "waiting", label: `waiting for ${waitingFor ?? "a message"}`, height: lowHeight };
  if (state === "handling" && handling !== undefined) {
    const work = op?.name ?? handling;
    return { kind: kindOf(role, handling), label: `${work}${at}`, height: 1 };
  }
  // Idle when it was sampled, but it handled messages in between.
  if (numNew > 0) {
    const height = Math.min(1, 0.25 + Math.log2(1 + numNew) / 10);
    return {
      kind: kindOf(role, op?.name ?? ""),
      label: "short messages",
      height: Math.round(height * 8) / 8,
    };
  }
  return { kind: "waiting", label: "idle", height: 0 };
}

/** Orders stretches so that inner ones are painted over outer ones. @param {Stretch} a @param {Stretch} b */
function longestFirst(a, b) {
  return Number(a.isReported) - Number(b.isReported) || b.endMs - b.beginMs - (a.endMs - a.beginMs);
}

/** Whether a rank's message covers a complete step, whose parts the rank also reports. @param {string} role @param {string} work */
function isAround(role, work) {
  return role === "rank" && (work === "step" || work === "evaluate");
}

/** @param {string} role @param {string} work a message's kind, an operation or an activity @returns {string} */
export function kindOf(role, work) {
  if (work === "wait") return "waiting";
  if (work === "backward") return "backward";
  if (work === "update" || role === "offload") return "update";
  if (work === "snapshot" || role === "checkpointer") return "save";
  if (role === "feeder") return "data";
  return role === "rank" ? "compute" : "exchange";
}
