// Rapidformer's tables beside the planner's predictions and PyTorch, and what strategies learn.
import { numberOf, readArguments } from "../scripts/arguments.mjs";
import { measureTables, names } from "./rapidformer/command.ts";

const usage = `
usage: npm run bench -- rapidformer [OPTIONS]

Measures Rapidformer's tables A to D, compares them with the planner's predictions, and compares what the strategies learn

  --dimension NAME     ${names.join(", ")}; may be repeated (all)
  --size NAME          of the models: small takes minutes on two cores (small)
  --windows N          measured windows of each row, at least 5 (5)
  --window-steps N     steps in a window (2)
  --convergence STEPS  steps of each convergence run; 0: none (60)
  --text FILE          text for the convergence runs (the package's README)
  --peer PYTHON        Python with PyTorch, to measure the same rows in it: gloo, a thread for each rank
  --out FOLDER         write report.html, report.md with pictures, and report.json there; rows already measured there with the
                       same settings are kept
  --json               print one JSON object`;
const text = { type: "string" } as const;
const { values: flags } = readArguments(usage, {
  dimension: { type: "string", multiple: true },
  size: { ...text, default: "small" },
  windows: { ...text, default: "5" },
  "window-steps": { ...text, default: "2" },
  convergence: { ...text, default: "60" },
  text,
  peer: text,
  out: text,
  json: { type: "boolean", default: false },
});

await measureTables({
  ...flags,
  windows: numberOf(usage, "windows", flags.windows),
  windowSteps: numberOf(usage, "window-steps", flags["window-steps"]),
  convergence: numberOf(usage, "convergence", flags.convergence),
}).catch((error: Error) => {
  console.error(error.message);
  process.exitCode = 2;
});
