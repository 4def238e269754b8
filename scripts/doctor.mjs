// node scripts/doctor.mjs [--json]: what Troupe finds on this machine and, for each lack, the command that mends it.
import { diagnose } from "./setup/diagnose.mjs";

const findings = diagnose();
if (process.argv.includes("--json")) {
  process.stdout.write(`${JSON.stringify(findings, null, 2)}\n`);
} else {
  for (const { name, state, found, mend } of findings) {
    process.stdout.write(`${state.padEnd(7)} ${name.padEnd(13)} ${found}\n`);
    if (mend !== undefined) process.stdout.write(`${" ".repeat(22)}mend it: ${mend}\n`);
  }
}
process.exitCode = findings.some(({ state }) => state === "lack") ? 1 : 0;
