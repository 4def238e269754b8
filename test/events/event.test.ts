import { readFileSync } from "node:fs";
import { expect, test } from "vitest";
import { declaredEvents, eventsPage } from "../../scripts/events-page.ts";
import { reportError } from "../../src/job/events/error-report.ts";
import type { EventKind } from "../../src/job/events/event.ts";
import { toJson } from "../../src/job/events/sinks/json-lines-sink.ts";
import { describeEvent } from "../../src/job/events/words/describe-event.ts";
import { samples, stamped } from "./samples.ts";

const kinds = Object.keys(samples) as EventKind[];
/** Names of numbers that are no measure with a unit, no place and no count. */
const bareNumbers =
  /^(schemaVersion|step|steps|firstStep|index|seed|zero|incarnation|pid|rank|count|value|limit|min|max|sum|sumOfSquares|learningRate|gradientNorm|lossScale|overlap|round|staleness|meanReward|meanTokens)$/;
const withUnit = /(Ms|Nats|Bytes|PerSecond|Index)$|^num[A-Z]/;

test("every kind of the union has a sample, and every sample is its own kind", () => {
  const declared = [...declaredEvents().matchAll(/readonly kind: "([^"]+)"/g)].map((match) => match[1]);
  expect(kinds.toSorted()).toEqual(declared.toSorted());
  for (const kind of kinds) expect(samples[kind].kind).toBe(kind);
});

test.each(kinds)("%s is named in the past tense and its numbers by their units", (kind) => {
  expect(kind).toMatch(/^[a-z]+\.([a-z]+ed|undelivered)$/);
  for (const [name, value] of Object.entries(stamped(kind))) {
    if (typeof value === "number") expect(name).toMatch(withUnit.test(name) ? withUnit : bareNumbers);
  }
});

test.each(kinds)("%s is plain data: it crosses threads and JSON unchanged", (kind) => {
  const event = stamped(kind);
  expect(structuredClone(event)).toEqual(event);
  expect(JSON.parse(toJson(event))).toEqual(event);
  expect(toJson(event)).not.toContain("\n");
});

test.each(kinds)("%s is printed for people without control characters, or not at all", (kind) => {
  const text = describeEvent(stamped(kind))?.text ?? "";
  // biome-ignore lint/suspicious/noControlCharactersInRegex: those must not be there
  expect(text).not.toMatch(/[\u0000-\u0008\u000b-\u001f\u007f]/);
});

test("a run's start names its devices, if they are not the host", () => {
  const run = stamped("run.started");
  expect(describeEvent(run)?.text).not.toContain(" on ");
  const spread = { ...run, devices: ["cuda:0", "cuda:0", "cuda:1", "cuda:1"] };
  expect(describeEvent(spread)?.text).toContain("on cuda:0 and cuda:1, ZeRO");
});

test("a run's start says how many parameters are trained, where some are frozen", () => {
  const tuned = stamped("run.started", { numParameters: 124_000_000, numTrainable: 811_000 });
  expect(describeEvent(tuned)?.text).toContain(": 124M parameters, 811k of them trainable, 2 ranks");
  expect(describeEvent(stamped("run.started"))?.text).toContain(": 804k parameters, 2 ranks");
});

test("a signal says by when the run has saved, or that none is open", () => {
  expect(describeEvent(stamped("run.interrupted"))?.text).toContain(
    "saving after the steps under way, within 1:00",
  );
  const between = stamped("run.interrupted", { graceMs: undefined });
  expect(describeEvent(between)?.text).toBe("SIGTERM: the next run or model ends, none is open");
});

test("an error becomes plain data, its causes with it, whatever was thrown", () => {
  const first = Object.assign(new Error("no space"), { code: "ENOSPC" });
  const error = new Error("cannot save", { cause: first });
  const report = reportError(error);
  expect(report).toMatchObject({ message: "cannot save", cause: { code: "ENOSPC", message: "no space" } });
  // With the lines of one's own source, of which this is one.
  expect(report.cause?.frames?.[0]).toMatchObject({
    file: import.meta.filename,
    text: expect.stringMatching(/ENOSPC/),
  });
  expect(structuredClone(report)).toEqual(report);
  expect(reportError("text")).toEqual({ message: "text" });
  const endless = new Error("again");
  endless.cause = endless;
  expect(JSON.stringify(reportError(endless)).match(/"message":"again"/g)).toHaveLength(9);
});

test("docs/reference/events.md has every kind and every field (npm run docs:write writes it)", () => {
  const page = readFileSync(new URL("../../docs/reference/events.md", import.meta.url), "utf8");
  expect(page).toBe(eventsPage());
  const sections = new Map(page.split(/^## /m).map((text) => [text.slice(0, text.indexOf("\n")), text]));
  for (const kind of kinds) {
    const { kind: _, ...fields } = samples[kind];
    for (const field of Object.keys(fields)) expect(sections.get(kind), kind).toContain(`| \`${field}\``);
  }
});
