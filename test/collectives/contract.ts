import { afterAll, describe } from "vitest";
import { describeFailures } from "./contract-failures.ts";
import { describeGradients } from "./contract-gradients.ts";
import { describeResults } from "./contract-results.ts";
import { Members, type Setting } from "./members.ts";

/** The promises of every backend, wherever its ranks live. */
export function describeCollectives(setting: Setting): void {
  const placed = setting.placement === "thread" ? "threads" : "processes";
  const how = setting.checked === true ? ", checked" : "";
  describe(`collectives over ${setting.backend} between ${placed}${how}`, () => {
    const members = new Members(setting);
    afterAll(() => members.stop());
    describeResults(members);
    // A wait for NCCL's returns at once unless operations are checked: errors are reported later.
    const waitsTell = setting.backend !== "nccl" || setting.checked === true;
    if (waitsTell) describeFailures(members);
    describeGradients(members, waitsTell);
  });
}
