// npm run chaos -- PART...: disturbs what must survive, for as long as is asked for, and prints what became of it.
import { constants } from "node:os";
import { numberOf, readArguments, refuse } from "../../scripts/arguments.mjs";
import { Workspace } from "../fixtures/run-tiny.ts";
import { atExit } from "./at-exit.ts";
import type { Placement } from "./faults.ts";
import { reportCycles } from "./reports/cycles.ts";
import { reportFiles } from "./reports/files.ts";
import { reportFlips } from "./reports/flips.ts";
import { reportFuzz } from "./reports/fuzz.ts";
import { reportHangs } from "./reports/hangs.ts";
import { reportHosts } from "./reports/hosts.ts";
import { reportLive } from "./reports/live.ts";
import { reportMoments } from "./reports/moments.ts";
import { reportPhases } from "./reports/phases.ts";
import { reportPower } from "./reports/power.ts";
import { type Report, say } from "./reports/report.ts";
import { reportSaves } from "./reports/saves.ts";
import { reportTraining } from "./reports/training.ts";
import { reportWeather } from "./reports/weather.ts";

const parts: Readonly<Record<string, Report>> = {
  training: reportTraining,
  phases: reportPhases,
  weather: reportWeather,
  hangs: reportHangs,
  cycles: reportCycles,
  moments: reportMoments,
  live: reportLive,
  hosts: reportHosts,
  saves: reportSaves,
  power: reportPower,
  flips: reportFlips,
  fuzz: reportFuzz,
  files: reportFiles,
};
const usage = `
usage: npm run chaos [-- PART... OPTIONS]

Disturbs what must survive and prints what became of it. Parts, all unless named: ${Object.keys(parts).join(", ")}

  --minutes N     of each part that goes on for a time (30)
  --mtbf SECONDS  mean time between failures (60)
  --seed N        chooses the faults (another one each time)
  --placement P   thread or process (both, one after the other)
  --cycles N      starts and ends (100)
  --moments N     programs that are ended at random and gone on with (200)
  --sessions N    of a live model (50)
  --faults N      of runs over two hosts (50)
  --target TEXT   part of the name of what is fuzzed, or of PHASE/FAULT
  --kills N       of saves (1000)
  --files N       hostile files, of all kinds together (600)
  --verbose       says more`;
const { values, positionals } = readArguments(
  usage,
  {
    minutes: { type: "string", default: "30" },
    mtbf: { type: "string", default: "60" },
    seed: { type: "string", default: String(Date.now() % 1e6) },
    placement: { type: "string" },
    cycles: { type: "string", default: "100" },
    moments: { type: "string", default: "200" },
    sessions: { type: "string", default: "50" },
    faults: { type: "string", default: "50" },
    target: { type: "string", default: "" },
    kills: { type: "string", default: "1000" },
    files: { type: "string", default: "600" },
    verbose: { type: "boolean", default: false },
  },
  Number.POSITIVE_INFINITY,
);
const asked = positionals.length === 0 || positionals.includes("all") ? Object.keys(parts) : positionals;
const unknown = asked.filter((name) => !(name in parts));
if (unknown.length > 0) refuse(usage, `${Object.keys(parts).join(", ")} or all`, unknown.join(", "));
if (values.placement !== undefined && !["thread", "process"].includes(values.placement))
  refuse(usage, "--placement thread or process", values.placement);
type Numbered =
  | "minutes"
  | "mtbf"
  | "seed"
  | "cycles"
  | "moments"
  | "sessions"
  | "faults"
  | "kills"
  | "files";
const given = (option: Numbered) => numberOf(usage, option, values[option]);

const seed = given("seed");
using workspace = new Workspace();
using _ended = atExit(() => workspace[Symbol.dispose]());
// Again and again: who ends a group and passes a signal on as well sends it twice.
for (const signal of ["SIGINT", "SIGTERM", "SIGHUP"] as const)
  process.on(signal, () => process.exit(128 + constants.signals[signal]));
const options = {
  workspace,
  seed,
  minutes: given("minutes"),
  mtbfSeconds: given("mtbf"),
  placements: (values.placement === undefined ? ["thread", "process"] : [values.placement]) as Placement[],
  numCycles: given("cycles"),
  numMoments: given("moments"),
  numSessions: given("sessions"),
  numFaults: given("faults"),
  numKills: given("kills"),
  numFiles: given("files"),
  target: values.target,
  isVerbose: values.verbose,
};
say(`seed ${seed} (--seed ${seed} chooses the same faults)`);
let holds = true;
for (const name of asked) holds = ((await parts[name]?.(options)) ?? false) && holds;
say(holds ? "all of it holds" : "NOT ALL OF IT HOLDS");
process.exitCode = holds ? 0 : 1;
