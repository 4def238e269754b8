import { expect, it } from "vitest";
import { readWalks } from "../scripts/walks.ts";

/** The most files of src that each may pass: docs/internals/tour.md says how they are counted. */
const most = { batch: 11, gradient: 13, event: 7, option: 4 };

it("a batch, a gradient, an event and an option pass few files on their way", () => {
  const walks = readWalks();
  for (const [what, limit] of Object.entries(most)) {
    const files = walks.get(what) ?? [];
    expect(files.length, `${what}:\n${files.join("\n")}`).toBeLessThanOrEqual(limit);
    // Fewer would mean that a place was not reached.
    expect(files.length, what).toBeGreaterThan(2);
  }
});
