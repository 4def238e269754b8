import { expect, it } from "vitest";
import { Inspections } from "../../src/actors/inspect/inspections.ts";

it("an inspection is refused with the end of its run, asked before it or after", async () => {
  const inspections = new Inspections();
  const before = inspections.ask("parameters", "*");
  inspections.close();
  const answers = await Promise.allSettled([before, inspections.ask("parameters", "*")]);
  for (const answer of answers) expect(answer).toMatchObject({ reason: { code: "INSPECTION_OVER" } });
});
