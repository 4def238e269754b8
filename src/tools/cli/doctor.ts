import { spawnSync } from "node:child_process";
import { fileURLToPath } from "node:url";
import type { Command } from "commander";
import { TroupeError } from "../../errors/index.ts";

const script = fileURLToPath(new URL("../../../scripts/doctor.mjs", import.meta.url));

/** Adds `troupe doctor`. */
export function addDoctorCommand(program: Command): void {
  program
    .command("doctor")
    .description("show what was found on this machine, and how to fix what is missing")
    .option("--json", "print one JSON array", false)
    .action(({ json }: { readonly json: boolean }) => {
      const args = json ? [script, "--json"] : [script];
      const { status } = spawnSync(process.execPath, args, { stdio: "inherit" });
      if (status === 0) return;
      const operands = { where: "doctor", expected: "all that training needs", got: "what is missing above" };
      throw new TroupeError("NATIVE_UNAVAILABLE", operands);
    });
}
