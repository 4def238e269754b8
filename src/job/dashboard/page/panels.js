/** @import { CheckpointPart, CheckpointsPart, Frame, Incident, RunPart } from "../frame.ts" */
import { bytes, count, duration, integer, loss, milliseconds, significant } from "./figures.js";

/** An element of the page. @param {string} id @returns {HTMLElement} */
export function byId(id) {
  const found = document.getElementById(id);
  if (found === null) throw new Error(`no element ${id}`);
  return found;
}

/** Shows a run and its progress. @param {RunPart} run @param {number} nowMs the server's clock */
export function showRun(run, nowMs) {
  const { facts, state, step } = run;
  const steps = facts?.steps ?? 0;
  setText("job", facts?.job ?? "No run yet");
  setText("facts", facts === undefined ? "Waiting for a run to begin." : describeFacts(facts));
  setText(
    "state",
    state === "silent"
      ? `ended without a word at ${new Date(run.endedAtMs ?? nowMs).toLocaleString()}`
      : state === "finished" && step < steps
        ? "stopped"
        : state,
  );
  byId("state").dataset.state = state;
  byId("step").textContent = facts === undefined ? "–" : integer(step);
  /** @type {HTMLDataElement} */ (byId("step")).value = String(step);
  setText("of", facts === undefined ? "" : ` of ${integer(steps)} steps`);
  const bar = byId("bar");
  bar.ariaValueMax = String(steps);
  bar.ariaValueNow = String(step);
  byId("fill").style.width = `${steps === 0 ? 0 : (100 * step) / steps}%`;
  const isOver = state === "finished" || state === "failed" || state === "silent";
  setText("eta", isOver ? "–" : duration((steps - step) * run.stepMs));
  setText("elapsed", duration((run.endedAtMs ?? nowMs) - run.startedAtMs));
  setText("amount", run.numTokens > 0 ? "tokens" : "samples");
  setText("tokens", facts === undefined ? "–" : count(run.numTokens > 0 ? run.numTokens : run.numSamples));
  setText("restarts", integer(run.numRestarts));
  document.title = [
    steps === 0 ? "" : `${Math.floor((100 * step) / steps)} %`,
    Number.isNaN(run.stepMs) ? "" : loss(run.lossNats),
    facts?.job ?? "Troupe",
  ]
    .filter((part) => part !== "")
    .join(" · ");
}

/** @param {NonNullable<RunPart["facts"]>} facts */
function describeFacts(facts) {
  const { numParameters, numTrainable, numRanks, mesh, zero, precision, placement, seed, firstStep } = facts;
  const axes = [
    mesh.dp > 1 ? `${mesh.dp} replicas` : "",
    mesh.pp > 1 ? `${mesh.pp} stages` : "",
    mesh.tp > 1 ? `tp ${mesh.tp}` : "",
    mesh.ep > 1 ? `ep ${mesh.ep}` : "",
  ].filter((axis) => axis !== "");
  return [
    `${count(numParameters)} parameters`,
    numTrainable < numParameters ? `${count(numTrainable)} trainable` : "",
    `${numRanks} ${numRanks === 1 ? "rank" : "ranks"}${axes.length === 0 ? "" : ` = ${axes.join(" × ")}`}`,
    `ZeRO ${zero}`,
    precision,
    placement === "process" ? "a process each" : "threads",
    `seed ${seed}`,
    firstStep > 0 ? `from step ${integer(firstStep)}` : "",
  ]
    .filter((fact) => fact !== "")
    .join(" · ");
}

/** @param {CheckpointsPart} checkpoints @param {number} steps of the run in all @param {number} nowMs */
export function showCheckpoints({ numSaved, numFailed, numSkipped, latest }, steps, nowMs) {
  setText(
    "checkpoints-sum",
    [
      numSaved > 0 ? `${integer(numSaved)} saved` : "",
      numSkipped > 0 ? `${integer(numSkipped)} skipped` : "",
      numFailed > 0 ? `${integer(numFailed)} failed` : "",
    ]
      .filter((part) => part !== "")
      .join(", "),
  );
  const saving = latest.findLast(({ state }) => state === "saving");
  byId("saving").hidden = saving === undefined;
  if (saving !== undefined) showSaving(saving, nowMs);
  const done = latest.filter(({ state }) => state !== "saving").toReversed();
  byId("saved").replaceChildren(...done.map((one) => checkpointRow(one, nowMs)));
  byId("no-checkpoints").hidden = latest.length > 0;
  const ticks = latest.filter(({ state, step }) => state === "saved" && step <= steps);
  byId("saves").replaceChildren(
    ...ticks.map(({ step }) => {
      const tick = document.createElement("i");
      tick.className = "tick";
      tick.style.left = `${(100 * step) / steps}%`;
      tick.title = `checkpoint of step ${integer(step)}`;
      return tick;
    }),
  );
}

/** @param {CheckpointPart} saving @param {number} nowMs */
function showSaving({ step, writtenBytes, totalBytes, startedAtMs }, nowMs) {
  const far = totalBytes === undefined ? "" : `, ${bytes(writtenBytes ?? 0)} of ${bytes(totalBytes)}`;
  setText(
    "saving-text",
    `saving step ${integer(step)}${far}, ${milliseconds(Math.max(0, nowMs - startedAtMs))}`,
  );
  const bar = /** @type {HTMLProgressElement} */ (byId("saving-bar"));
  if (totalBytes === undefined) bar.removeAttribute("value");
  else bar.value = totalBytes === 0 ? 1 : (writtenBytes ?? 0) / totalBytes;
}

/** @param {CheckpointPart} checkpoint @param {number} nowMs */
function checkpointRow({ step, state, totalBytes, durationMs, path, reason, startedAtMs }, nowMs) {
  const row = document.createElement("tr");
  row.dataset.state = state;
  row.title = path ?? reason ?? "";
  const facts =
    state === "saved"
      ? [bytes(totalBytes ?? Number.NaN), milliseconds(durationMs ?? Number.NaN)]
      : [state === "failed" ? "failed" : "left out", reason ?? ""];
  const cells = [`step ${integer(step)}`, ...facts, `${duration(nowMs - startedAtMs)} ago`];
  row.append(
    ...cells.map((text, index) => {
      const cell = document.createElement(index === 0 ? "th" : "td");
      cell.textContent = text;
      return cell;
    }),
  );
  return row;
}

/** @param {readonly Incident[]} incidents */
export function showIncidents(incidents) {
  byId("no-incidents").hidden = incidents.length > 0;
  setText("incidents-sum", incidents.length === 0 ? "" : integer(incidents.length));
  byId("incident-list").replaceChildren(
    ...incidents.toReversed().map(({ timeMs, step, tone, text, count: times }) => {
      const entry = document.createElement("li");
      entry.dataset.tone = tone;
      const when = document.createElement("time");
      when.dateTime = new Date(timeMs).toISOString();
      when.textContent = new Date(timeMs).toLocaleTimeString("en-GB");
      const where = document.createElement("span");
      where.textContent = `step ${integer(step)}`;
      const what = document.createElement("p");
      what.textContent = times > 1 ? `${text} (${integer(times)} times)` : text;
      entry.append(when, where, what);
      return entry;
    }),
  );
}

/** @param {Frame["sample"]} sample */
export function showSample(sample) {
  byId("sample").hidden = !sample;
  setText("sample-step", sample ? `after step ${integer(sample.step)}` : "");
  setText("sample-text", sample?.text ?? "");
}

/** @param {Frame["judged"]} judged */
export function showJudged(judged) {
  byId("judged").hidden = !judged;
  setText("judged-round", judged ? `round ${integer(judged.round)}` : "");
  byId("judged-list").replaceChildren(
    ...(judged?.texts ?? []).map(({ prompt, text, reward }) => {
      const entry = document.createElement("li");
      const mark = document.createElement("data");
      mark.value = String(reward);
      mark.textContent = significant(reward);
      const [asked, written] = [document.createElement("span"), document.createElement("b")];
      asked.textContent = prompt;
      written.textContent = text;
      const said = document.createElement("p");
      said.append(asked, written);
      entry.append(mark, said);
      return entry;
    }),
  );
}

/** Leaves equal text untouched: a user may be selecting it, or a screen reader reading it. @param {string} id @param {string} text */
export function setText(id, text) {
  const place = byId(id);
  if (place.textContent !== text) place.textContent = text;
}
