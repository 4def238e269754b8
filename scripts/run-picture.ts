// npm run picture -- EVENTS.jsonl PICTURE.svg [TITLE]: draws a run's losses and metrics from the events that `troupe run --events` keeps:
// its loss, what its steps logged, and what was scored on held-out data.
import { readFileSync, writeFileSync } from "node:fs";
import type { TroupeEvent } from "../src/entries/index.ts";
import { readArguments, refuse } from "./arguments.mjs";
import { curvesPicture, type Panel } from "./run-picture/curves.ts";

const usage = `
usage: npm run picture -- EVENTS.jsonl PICTURE.svg [TITLE]

Draws a run's loss, and its metrics and scores where it has any, as an SVG`;
const { positionals } = readArguments(usage, {}, 3);
const [eventsPath, picturePath, title = ""] = positionals;
if (eventsPath === undefined || picturePath === undefined) refuse(usage, "EVENTS and PICTURE", "fewer");

const events = readFileSync(eventsPath as string, "utf8")
  .trimEnd()
  .split("\n")
  .map((line) => JSON.parse(line) as TroupeEvent);
const rollouts = events.filter((event) => event.kind === "rollouts.judged");
const steps = events.filter((event) => event.kind === "step.finished");
const evaluations = events.filter((event) => event.kind === "evaluation.finished");
const losses: Panel = {
  title: "loss, nats",
  curves: [
    { name: "training", points: steps.map(({ step, lossNats }) => ({ step, value: lossNats })) },
    ...(evaluations.length === 0
      ? []
      : [{ name: "held out", points: evaluations.map(({ step, lossNats }) => ({ step, value: lossNats })) }]),
  ],
};
const logged = [...new Set(steps.flatMap(({ metrics }) => Object.keys(metrics ?? {})))];
const measured: Panel = {
  title: "training",
  curves: logged.map((name) => ({
    name,
    points: steps.map(({ step, metrics }) => ({ step, value: metrics?.[name] ?? Number.NaN })),
  })),
};
const rewards: Panel = {
  title: "reward",
  curves:
    rollouts.length === 0
      ? []
      : [{ name: "reward", points: rollouts.map(({ step, meanReward }) => ({ step, value: meanReward })) }],
};
const names = [...new Set(evaluations.flatMap(({ metrics }) => Object.keys(metrics ?? {})))];
const scores: Panel = {
  title: "held out",
  curves: names.map((name) => ({
    name,
    points: evaluations.map(({ step, metrics }) => ({ step, value: metrics?.[name] ?? Number.NaN })),
  })),
};
const panels = [losses, rewards, measured, scores].filter(({ curves }) => curves.length > 0);
writeFileSync(picturePath as string, curvesPicture(title, panels));
