import { mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { filter, firstValueFrom } from "rxjs";
import { describe, expect, onTestFinished, test, vi } from "vitest";
import {
  EventHub,
  type EventSink,
  jsonLinesSink,
  ofKind,
  type TroupeEvent,
} from "../../src/job/events/index.ts";
import { chromeTraceSink, tensorBoardSink } from "../../src/tools/sinks/index.ts";
import { samples } from "../events/samples.ts";
import { patience } from "../fixtures/patience.ts";
import { canMakeDisks, SmallDisk } from "../fixtures/small-disk.ts";
import { recordsOf, scalarsOf } from "./tensorboard-file.ts";

/** The outputs of a run into files: how each is made in a folder, and which steps its files contain as complete records. */
const outputs: Readonly<
  Record<string, { make(folder: string): EventSink; stepsIn(folder: string): number[] }>
> = {
  "events.jsonl": {
    make: (folder) => jsonLinesSink(join(folder, "events.jsonl")),
    stepsIn: (folder) =>
      linesOf(join(folder, "events.jsonl"))
        .map((line) => JSON.parse(line) as TroupeEvent)
        .filter(ofKind("step.finished"))
        .map(({ step }) => step),
  },
  TensorBoard: {
    make: (folder) => tensorBoardSink(folder),
    stepsIn: (folder) =>
      readdirSync(folder)
        .filter((name) => name.startsWith("events.out"))
        .flatMap((name) => recordsOf(readFileSync(join(folder, name))).slice(1))
        .flatMap(scalarsOf)
        .filter(({ tag }) => tag === "loss/train")
        .map(({ step }) => step),
  },
  trace: {
    make: (folder) => chromeTraceSink(join(folder, "trace.json")),
    stepsIn: (folder) =>
      // Each entry is a line of its own, so that each is seen to be complete.
      linesOf(join(folder, "trace.json"))
        .slice(1)
        .map((line) => JSON.parse(line === "]" ? "{}" : line.replace(/,$/, "")))
        .filter(({ name }) => name === "loss")
        .map(({ args }) => args.nats),
  },
};

const linesOf = (path: string) => readFileSync(path, "utf8").trimEnd().split("\n");

function scratch(): string {
  const path = mkdtempSync(join(tmpdir(), "troupe-outputs-"));
  onTestFinished(() => rmSync(path, { recursive: true, force: true }));
  return path;
}

/** A hub with one output, which tells of a step each time. */
function tellingTo(sink: EventSink) {
  const hub = new EventHub();
  hub.addSink(sink);
  const reported: TroupeEvent[] = [];
  hub.events$.subscribe((event) => reported.push(event));
  let step = 0;
  return {
    hub,
    reported: () => reported.filter(ofKind("output.failed", "output.resumed")),
    heard: (kind: "output.failed" | "output.resumed") =>
      firstValueFrom(hub.events$.pipe(filter(ofKind(kind)))),
    /** The loss is the step, for the outputs that have no other word for it. */
    steps(numSteps: number) {
      for (const end = step + numSteps; step < end; ) {
        step++;
        hub.emit({ ...samples["step.finished"], step, lossNats: step });
      }
      return step;
    },
  };
}

const upTo = (count: number) => Array.from({ length: count }, (_, index) => index + 1);

describe.each(Object.entries(outputs))("%s", (_, { make, stepsIn }) => {
  test.skipIf(!canMakeDisks)(
    "loses no event while its disk was full, and never ends in half a record (needs root, for a small disk)",
    async () => {
      using disk = new SmallDisk();
      const { hub, reported, heard, steps } = tellingTo(make(disk.path));
      steps(10);
      disk.fill();
      const failed = heard("output.failed");
      // The rest of a page takes the first bytes: the write is cut short within a record.
      steps(100);
      expect(await failed).toMatchObject({
        output: expect.stringContaining(disk.path),
        error: { code: "ENOSPC" },
      });
      steps(100);
      disk.free();
      expect(await heard("output.resumed")).toMatchObject({ numLost: 0 });
      const numSteps = steps(10);
      await hub.close();
      expect(stepsIn(disk.path)).toEqual(upTo(numSteps));
      expect(reported().map(({ kind }) => kind)).toEqual(["output.failed", "output.resumed"]);
    },
  );

  test("begins again where its folder was deleted, and goes on from there", async () => {
    const folder = join(scratch(), "run");
    const { hub, reported, steps } = tellingTo(make(folder));
    steps(300);
    await vi.waitFor(() => expect(stepsIn(folder)).toContain(300), patience);
    rmSync(folder, { recursive: true });
    const before = steps(0);
    const numSteps = steps(100);
    await hub.close();
    expect(stepsIn(folder)).toEqual(upTo(numSteps).slice(before));
    expect(reported()).toEqual([]);
  });

  test("holds events while its folder cannot be made again, and reports that once", async () => {
    const folder = join(scratch(), "run");
    const { hub, reported, heard, steps } = tellingTo(make(folder));
    rmSync(folder, { recursive: true });
    writeFileSync(folder, "what is no folder");
    const failed = heard("output.failed");
    steps(10);
    expect(await failed).toMatchObject({ error: { code: expect.stringMatching(/ENOTDIR|EEXIST/) } });
    rmSync(folder);
    expect(await heard("output.resumed")).toMatchObject({ numLost: 0 });
    const numSteps = steps(10);
    await hub.close();
    expect(stepsIn(folder)).toEqual(upTo(numSteps));
    expect(reported()).toHaveLength(2);
  });
});
