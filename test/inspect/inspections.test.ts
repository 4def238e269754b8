import { expect, it } from "vitest";
import { Inspections } from "../../src/actors/inspect/inspections.ts";

it("an inspection is refused with the end of its run, asked before it or after", async () => {
  const inspections = new Inspections();
  const before = inspections.ask("parameters", "*");
  inspections.close();
  const answers = await Promise.allSettled([before, inspections.ask("parameters", "*")]);
  for (const answer of answers) expect(answer).toMatchObject({ reason: { code: "INSPECTION_OVER" } });
});

it.each(["h.[0", "h.[3-1].*"])(
  "a pattern that cannot be read is refused before anyone looks: %s",
  async (pattern) => {
    const inspections = new Inspections();
    await expect(inspections.ask("parameters", pattern)).rejects.toMatchObject({
      code: "OPTION",
      fields: { option: "pattern", got: pattern },
    });
    expect(inspections.open).toEqual([]);
  },
);
