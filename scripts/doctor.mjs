// node scripts/doctor.mjs [--json]: what Troupe finds on this machine and, for each lack, the command that mends it.
import { diagnose } from "./setup/diagnose.mjs";

const findings = diagnose();
const lines = findings.flatMap(({ name, state, found, mend }) => [
  `${state.padEnd(7)} ${name.padEnd(13)} ${found}`,
  ...(mend === undefined ? [] : [`${" ".repeat(22)}mend it: ${mend}`]),
]);
process.stdout.write(
  `${process.argv.includes("--json") ? JSON.stringify(findings, null, 2) : lines.join("\n")}\n`,
);
process.exitCode = findings.some(({ state }) => state === "lack") ? 1 : 0;
