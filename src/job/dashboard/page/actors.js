/** @import { ActorPart, ActorStatus, BoardFrame } from "../frame.ts" */
import { duration, integer } from "./figures.js";
import { kinds, Lane } from "./lanes.js";
import { byId } from "./panels.js";

/** Most rows that are shown; stuck actors come first. */
const maxRows = 64;
/** An actor without progress for this long is marked. */
const leastStuckMs = 5000;

/**
 * @typedef {object} Row
 * @property {HTMLTableRowElement} row
 * @property {readonly HTMLElement[]} cells
 * @property {Lane} lane
 */

/** The status board, and a lane for each actor. */
export class Actors {
  #body = byId("board");
  /** @type {Map<string, Row>} */
  #rows = new Map();
  /** @type {readonly ActorPart[]} */
  #roll = [];
  /** @type {readonly ActorStatus[] | undefined} */
  #board;
  #boardAtMs = Number.NaN;
  #windowMs = 30_000;
  /** @type {number | undefined} */
  #heldAtMs;
  #latestSpanMs = Number.NaN;
  /** Duration of a step, within which one activity is normal. */
  stepMs = Number.NaN;

  constructor() {
    for (const [kind, label] of kinds) {
      const key = document.createElement("li");
      const swatch = document.createElement("i");
      swatch.dataset.kind = kind;
      key.append(swatch, label);
      byId("legend").append(key);
    }
    const windows = [...document.querySelectorAll("[data-window]")];
    for (const button of windows)
      button.addEventListener("click", () => {
        for (const other of windows) other.ariaPressed = String(other === button);
        this.#windowMs = Number(/** @type {HTMLElement} */ (button).dataset.window);
        this.#draw();
      });
    const hold = byId("hold");
    hold.addEventListener("click", () => {
      this.#heldAtMs = this.#heldAtMs === undefined ? this.#nowMs() : undefined;
      hold.ariaPressed = String(this.#heldAtMs !== undefined);
      this.#draw();
    });
    document.addEventListener("theme", () => this.#draw());
  }

  /** Sets each actor's last known state, from events. @param {readonly ActorPart[]} roll */
  called(roll) {
    this.#roll = roll;
    if (this.#board === undefined) this.#show();
  }

  /** @param {BoardFrame} board */
  seen({ timeMs, actors, spans = [] }) {
    for (const span of spans) {
      this.#rowOf(span.actor, span.role).lane.tell(span);
      this.#latestSpanMs = Math.max(span.endMs, this.#latestSpanMs || 0);
    }
    for (const status of actors ?? []) this.#rowOf(status.actor, status.role).lane.look(status, timeMs);
    this.#board = actors?.length === 0 ? undefined : actors;
    this.#boardAtMs = timeMs;
    this.#show();
    this.#draw();
  }

  /** Actors that have been at one thing for too long: working ones before those that wait for them. */
  stuck() {
    return (this.#board ?? [])
      .filter((status) => isStuck(status, this.#stuckMs()))
      .sort((a, b) => Number(a.state === "waiting") - Number(b.state === "waiting"));
  }

  #stuckMs() {
    return Math.max(leastStuckMs, 10 * (this.stepMs || 0));
  }

  /** The right end of the lanes: now, or without a status board the end of the last span. */
  #nowMs() {
    return this.#heldAtMs ?? (this.#board === undefined ? this.#latestSpanMs : this.#boardAtMs);
  }

  #show() {
    const board = this.#board?.toSorted(compare);
    const names = (board ?? this.#roll.toSorted(compare)).map(({ actor }) => actor);
    const stuck = new Set(this.stuck().map(({ actor }) => actor));
    const shown =
      names.length <= maxRows
        ? names
        : [...stuck, ...names.filter((name) => !stuck.has(name))].slice(0, maxRows);
    for (const [name, { row }] of this.#rows) if (!shown.includes(name)) row.remove();
    for (const [index, name] of shown.entries()) {
      const { row, cells, lane } = this.#rowOf(name);
      if (this.#body.children[index] !== row)
        this.#body.insertBefore(row, this.#body.children[index] ?? null);
      const status = board?.find(({ actor }) => actor === name);
      row.classList.toggle("stuck", stuck.has(name));
      if (status !== undefined) describe(cells, status, lane);
      else this.#describeRolled(cells, name);
    }
    byId("no-actors").hidden = shown.length > 0;
    byId("no-actors").textContent =
      shown.length < names.length
        ? `${integer(names.length - shown.length)} more`
        : "No actor has reported yet.";
  }

  /** @param {readonly HTMLElement[]} cells @param {string} name */
  #describeRolled(cells, name) {
    const rolled = this.#roll.find(({ actor }) => actor === name);
    write(cells, [nameOf(name, rolled?.incarnation ?? 1), rolled?.state ?? "", "", "", ""]);
    const state = rolled?.state ?? "";
    if (cells[1]) cells[1].dataset.state = state === "failed" ? "failed" : "";
  }

  #draw() {
    const toMs = this.#nowMs();
    if (Number.isNaN(toMs)) return;
    for (const { row, lane } of this.#rows.values()) {
      if (row.isConnected) lane.draw(toMs - this.#windowMs, toMs);
    }
    byId("lane-from").textContent = `${this.#windowMs / 1000} s ago`;
    byId("lane-to").textContent =
      this.#heldAtMs !== undefined ? "held" : this.#board === undefined ? "end" : "now";
  }

  /** @param {string} name @param {string} [role] @returns {Row} */
  #rowOf(name, role) {
    const known = this.#rows.get(name);
    if (known !== undefined) {
      if (role !== undefined) known.lane.role = role;
      return known;
    }
    const row = document.createElement("tr");
    row.dataset.actor = name;
    const head = document.createElement("th");
    head.scope = "row";
    const cells = ["does", "number since", "number queued", "number messages", "lane"].map((className) => {
      const cell = document.createElement("td");
      cell.className = className;
      return cell;
    });
    const lane = new Lane();
    lane.role = role ?? "";
    cells.at(-1)?.append(lane.canvas);
    row.append(head, ...cells);
    const made = { row, cells: [head, ...cells.slice(0, -1)], lane };
    this.#rows.set(name, made);
    return made;
  }
}

/** @param {ActorStatus} status @param {number} afterMs */
function isStuck({ state, ageMs, op }, afterMs) {
  if (state === "idle" || state === "starting" || state === "stopped") return false;
  return Math.min(ageMs, op?.ageMs ?? Number.POSITIVE_INFINITY) > afterMs;
}

/** @param {readonly HTMLElement[]} cells @param {ActorStatus} status @param {Lane} lane */
function describe(cells, status, lane) {
  const { actor, incarnation, state, ageMs, numQueued } = status;
  const rate = lane.messagesPerSecond;
  write(cells, [
    nameOf(actor, incarnation),
    whatItDoes(status),
    // A starting actor has begun nothing yet.
    state === "starting" ? "" : age(ageMs),
    numQueued === 0 ? "" : integer(numQueued),
    Number.isFinite(rate) && rate > 0 ? `${integer(Math.round(rate))}\u202f/s` : "",
  ]);
  if (cells[1]) cells[1].dataset.state = state;
}

/**
 * "reduce transformer.h.3 #1203", "waits for shard-0, step: forward #12", "step: forward #12, in allReduce #87 of tp 0-1".
 * @param {ActorStatus} status
 */
export function whatItDoes({ state, handling, waitingFor, op, collective }) {
  const block = op?.block ? ` ${op.block}` : "";
  const at = op === undefined ? "" : `${op.name}${block} #${op.sequence}`;
  const work =
    at === ""
      ? (handling ?? "")
      : handling === undefined || handling === op?.name
        ? at
        : `${handling}: ${at}`;
  if (state === "waiting")
    return `waits for ${waitingFor?.replace(/#1$/, "") ?? "a message"}${work === "" ? "" : `, ${work}`}`;
  if (state === "handling") return collective ? `${work}, ${whereIn(collective)}` : work;
  return state;
}

/** @param {NonNullable<ActorStatus["collective"]>} collective */
function whereIn({ name, group, sequence, isWaiting }) {
  return `${isWaiting ? "in" : "after"} ${name} #${sequence} of ${group}`;
}

/** @param {string} name @param {number} incarnation */
function nameOf(name, incarnation) {
  return incarnation > 1 ? `${name} #${incarnation}` : name;
}

/** @param {number} ageMs */
function age(ageMs) {
  return ageMs < 1000
    ? "< 1\u202fs"
    : ageMs < 60_000
      ? `${Math.floor(ageMs / 1000)}\u202fs`
      : duration(ageMs);
}

/** @param {readonly HTMLElement[]} cells @param {readonly string[]} texts */
function write(cells, texts) {
  for (const [index, text] of texts.entries()) {
    const cell = cells[index];
    if (cell === undefined || cell.textContent === text) continue;
    cell.textContent = text;
    cell.title = text;
  }
}

const order = ["rank", "shard", "offload", "feeder", "checkpointer"];

/** @param {{ role?: string | undefined }} one */
function place({ role = "" }) {
  const index = order.indexOf(role);
  return index < 0 ? order.length : index;
}

/**
 * rank-2 before rank-10.
 * @typedef {{ actor: string, role?: string | undefined }} Named
 * @param {Named} a @param {Named} b
 */
function compare(a, b) {
  return place(a) - place(b) || a.actor.localeCompare(b.actor, "en", { numeric: true });
}
