/** @import { BoardFrame, CheckpointsPart, Frame, Incident, RunPart } from "../frame.ts" */
/** @import { Columns } from "./tables.js" */
import { Actors, whatItDoes } from "./actors.js";
import { Charts } from "./charts.js";
import { duration } from "./figures.js";
import { byId, setText, showCheckpoints, showIncidents, showRun, showSample } from "./panels.js";
import { listen } from "./stream.js";
import { replaceEnd } from "./tables.js";

/** More often is not seen, and costs. */
const drawMs = 250;
/** No step for this long, or for ten times what one takes, is said. */
const leastQuietMs = 10_000;

const tables = {
  steps: /** @type {Columns} */ ({}),
  evaluations: /** @type {Columns} */ ({}),
  memory: /** @type {Columns} */ ({}),
};
/** @type {RunPart | undefined} */
let run;
/** @type {CheckpointsPart | undefined} */
let checkpoints;
/** @type {readonly Incident[]} */
let incidents = [];
/** What the server's clock is ahead of this browser's. */
let aheadMs = 0;
let isConnected = false;
/** @type {number | undefined} */
let drawing;

const charts = new Charts(byId("charts"));
const actors = new Actors();

/** @param {Frame} frame */
function hearFrame(frame) {
  aheadMs = frame.timeMs - Date.now();
  for (const name of /** @type {const} */ (["steps", "evaluations", "memory"])) {
    const change = frame[name];
    if (change !== undefined) replaceEnd(tables[name], change);
  }
  run = frame.run ?? run;
  checkpoints = frame.checkpoints ?? checkpoints;
  if (frame.actors !== undefined) actors.called(frame.actors);
  if (frame.sample !== undefined) showSample(frame.sample);
  if (frame.incidents !== undefined) {
    incidents = frame.incidents;
    showIncidents(incidents);
  }
  actors.stepMs = run?.stepMs ?? Number.NaN;
  drawing ??= setTimeout(draw, drawMs);
}

/** @param {BoardFrame} board */
function hearBoard(board) {
  aheadMs = board.timeMs - Date.now();
  actors.seen(board);
}

/** @param {"connected" | "lost" | "refused"} link */
function hearLink(link) {
  isConnected = link === "connected";
  byId("link").dataset.link = link;
  setText("link", { connected: "live", lost: "not connected, trying again", refused: "token refused" }[link]);
  if (link === "refused") openDoor();
}

function draw() {
  clearTimeout(drawing);
  drawing = undefined;
  charts.show(
    tables,
    incidents.filter(({ restart }) => restart).map(({ step }) => step),
  );
  tick();
}

/** What changes by time alone. */
function tick() {
  const nowMs = Date.now() + aheadMs;
  if (run !== undefined) showRun(run, nowMs);
  if (checkpoints !== undefined) showCheckpoints(checkpoints, run?.facts?.steps ?? 0, nowMs);
  showAlarm(nowMs);
}

/** Why a run failed; or that it makes no steps, and who is at what. @param {number} nowMs */
function showAlarm(nowMs) {
  const quietMs = nowMs - (run?.progressAtMs ?? Number.NaN);
  const isQuiet =
    isConnected &&
    (run?.state === "running" || run?.state === "restarting") &&
    quietMs > Math.max(leastQuietMs, 10 * (run.stepMs || 0));
  const stuck = isQuiet ? actors.stuck().slice(0, 8) : [];
  const culprits = stuck.map((status) => `${status.actor} ${whatItDoes(status)}`).join("; ");
  byId("alarm").hidden = !isQuiet && run?.error === undefined;
  // A screen reader hears who is stuck, and not every second for how long.
  setText("alarm-since", isQuiet ? `No step for ${duration(quietMs)}.` : "");
  setText("alarm-text", run?.error ?? culprits);
}

function openDoor() {
  const door = /** @type {HTMLDialogElement} */ (byId("door"));
  if (!door.open) door.showModal();
}

/** Out of the address, where it does not stay; kept for this tab, so that it may be loaded again. */
function takeToken() {
  const given = /^#token=([0-9a-f]+)$/.exec(location.hash)?.[1];
  if (given !== undefined) {
    sessionStorage.setItem("troupe-token", given);
    history.replaceState(null, "", location.pathname);
  }
  return sessionStorage.getItem("troupe-token") ?? "";
}

setInterval(tick, 1000);
// Another run's address pasted over this one changes the fragment only.
addEventListener("hashchange", () => location.reload());
await listen(takeToken(), { frame: hearFrame, board: hearBoard, link: hearLink });
