import { afterAll, describe } from "vitest";
import { describeFailures } from "./contract-failures.ts";
import { describeGradients } from "./contract-gradients.ts";
import { describeResults } from "./contract-results.ts";
import { Members, type Setting } from "./members.ts";

/** What every backend promises, wherever its ranks live. */
export function describeCollectives(setting: Setting): void {
  const placed = setting.placement === "thread" ? "threads" : "processes";
  describe(`collectives over ${setting.backend} between ${placed}`, () => {
    const members = new Members(setting);
    afterAll(() => members.stop());
    describeResults(members);
    describeFailures(members);
    describeGradients(members);
  });
}
