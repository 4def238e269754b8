import { expect, it } from "vitest";
import { EventHub, type EventKind, ofKind } from "../../src/job/events/index.ts";

const misspelled = "step.finishd" as EventKind;
const message = (where: string) =>
  `[${where}] expected a kind of event, got step.finishd (did you mean step.finished? docs/reference/events.md lists them all)`;

it("refuses a kind of event that there is not, with the one that was meant, wherever one is named", async () => {
  const hub = new EventHub();
  expect(() => hub.events({ kinds: [misspelled] })).toThrow(message("events"));
  expect(() => ofKind(misspelled)).toThrow(message("events"));
  expect(() => hub.listeners.on(misspelled, () => {})).toThrow(message("on"));
  expect(() => hub.listeners.once(misspelled, () => {})).toThrow(message("once"));
  expect(() => hub.events({ kinds: ["step.finished"] })).not.toThrow();
  await hub.close();
});
