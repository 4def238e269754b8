// node scripts/doctor.mjs [--json]: prints what Troupe finds on this machine and, for each missing part, the command that installs it.
import { readArguments } from "./arguments.mjs";
import { diagnose } from "./setup/diagnose.mjs";

const { values } = readArguments(
  "usage: npm run doctor [-- --json]\n\nSays what was found on this machine and, for each lack, the command that mends it",
  { json: { type: "boolean", default: false } },
);
const findings = diagnose();
const lines = findings.flatMap(({ name, state, found, mend }) => [
  `${state.padEnd(7)} ${name.padEnd(13)} ${found}`,
  ...(mend === undefined ? [] : [`${" ".repeat(22)}mend it: ${mend}`]),
]);
process.stdout.write(`${values.json ? JSON.stringify(findings, null, 2) : lines.join("\n")}\n`);
process.exitCode = findings.some(({ state }) => state === "lack") ? 1 : 0;
