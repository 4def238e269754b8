/** @import { BoardFrame, CheckpointsPart, Frame, Incident, RunPart } from "../frame.ts" */
/** @import { Columns } from "./tables.js" */
import { Actors, whatItDoes } from "./actors.js";
import { Charts } from "./charts.js";
import { duration } from "./figures.js";
import { byId, setText, showCheckpoints, showIncidents, showJudged, showRun, showSample } from "./panels.js";
import { listen } from "./stream.js";
import { replaceEnd } from "./tables.js";

/** Time between redraws. */
const drawMs = 250;
/** Without a step for this long, or for ten times a step's duration, an alarm is shown. */
const leastQuietMs = 10_000;

const tables = {
  steps: /** @type {Columns} */ ({}),
  evaluations: /** @type {Columns} */ ({}),
  memory: /** @type {Columns} */ ({}),
  rollouts: /** @type {Columns} */ ({}),
};
/** @type {RunPart | undefined} */
let run;
/** @type {CheckpointsPart | undefined} */
let checkpoints;
/** @type {readonly Incident[]} */
let incidents = [];
/** The server's clock minus this browser's. */
let aheadMs = 0;
let isConnected = false;
/** @type {number | undefined} */
let drawing;

const charts = new Charts(byId("charts"));
const actors = new Actors();

/** @param {Frame} frame */
function hearFrame(frame) {
  aheadMs = frame.timeMs - Date.now();
  for (const name of /** @type {const} */ (["steps", "evaluations", "memory", "rollouts"])) {
    const change = frame[name];
    if (change !== undefined) replaceEnd(tables[name], change);
  }
  run = frame.run ?? run;
  checkpoints = frame.checkpoints ?? checkpoints;
  if (frame.actors !== undefined) actors.called(frame.actors);
  if (frame.sample !== undefined) showSample(frame.sample);
  if (frame.judged !== undefined) showJudged(frame.judged);
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

/** Redraws the parts that depend on time alone. */
function tick() {
  const nowMs = Date.now() + aheadMs;
  if (run !== undefined) showRun(run, nowMs);
  if (checkpoints !== undefined) showCheckpoints(checkpoints, run?.facts?.steps ?? 0, nowMs);
  showAlarm(nowMs);
}

/** Shows why a run failed, or that it makes no steps and which actors are stuck. @param {number} nowMs */
function showAlarm(nowMs) {
  const quietMs = nowMs - (run?.progressAtMs ?? Number.NaN);
  const isQuiet =
    isConnected &&
    (run?.state === "running" || run?.state === "restarting") &&
    quietMs > Math.max(leastQuietMs, 10 * (run.stepMs || 0));
  const stuck = isQuiet ? actors.stuck().slice(0, 8) : [];
  const culprits = stuck.map((status) => `${status.actor} ${whatItDoes(status)}`).join("; ");
  byId("alarm").hidden = !isQuiet && run?.error === undefined;
  // A screen reader announces who is stuck, but not every second for how long.
  setText("alarm-since", isQuiet ? `No step for ${duration(quietMs)}.` : "");
  setText("alarm-text", run?.error ?? culprits);
}

function openDoor() {
  const door = /** @type {HTMLDialogElement} */ (byId("door"));
  if (!door.open) door.showModal();
}

/** Takes the token out of the address and keeps it for this tab, so that the page can be reloaded. */
function takeToken() {
  const given = /^#token=([0-9a-f]+)$/.exec(location.hash)?.[1];
  if (given !== undefined) {
    sessionStorage.setItem("troupe-token", given);
    history.replaceState(null, "", location.pathname);
  }
  return sessionStorage.getItem("troupe-token") ?? "";
}

setInterval(tick, 1000);
// Pasting another run's address changes only the fragment, which does not reload.
addEventListener("hashchange", () => location.reload());
await listen(takeToken(), { frame: hearFrame, board: hearBoard, link: hearLink });
