import { setImmediate as turn } from "node:timers/promises";
import { filter, map, take } from "rxjs";
import { afterEach, beforeEach, describe, expect, test, vi } from "vitest";
import type { TroupeEvent } from "../../src/job/events/event.ts";
import { EventHub } from "../../src/job/events/hub/event-hub.ts";
import type { EventSink } from "../../src/job/events/hub/sink.ts";
import { describeEvent } from "../../src/job/events/words/describe-event.ts";
import { samples } from "./samples.ts";

const warnings: string[] = [];
beforeEach(() => {
  warnings.length = 0;
  vi.spyOn(process, "emitWarning").mockImplementation((warning) => {
    warnings.push(String(warning));
  });
});
afterEach(() => {
  vi.restoreAllMocks();
});

function step(index: number) {
  return { ...samples["step.finished"], step: index };
}

function stepsOf(events: readonly TroupeEvent[]): number[] {
  return events.flatMap((event) => (event.kind === "step.finished" ? [event.step] : []));
}

/** Turns go by until something is so: on a busy machine the hub rests between one event and the next. */
async function until(isSo: () => boolean): Promise<void> {
  while (!isSo()) await turn();
}

/** Keeps the thread busy, as a slow subscriber does. */
function block(durationMs: number): void {
  const end = performance.now() + durationMs;
  while (performance.now() < end);
}

describe("emitting", () => {
  test("time stamps continue unchanged when the wall clock is set", () => {
    const stamps: number[] = [];
    const hub = new EventHub();
    hub.addSink({ write: ({ timeMs }) => void stamps.push(timeMs), close: async () => {} });
    const startMs = Date.now();
    hub.emit(step(1));
    const wall = vi.spyOn(Date, "now").mockReturnValue(startMs - 3_600_000);
    hub.emit(step(2));
    wall.mockReturnValue(startMs + 3_600_000);
    hub.emit(step(3));
    expect(stamps).toEqual(stamps.toSorted((a, b) => a - b));
    // The test takes less than an hour.
    expect((stamps.at(-1) as number) - startMs).toBeLessThan(600_000);
  });

  test("stamps an event and calls subscribers in a later turn", async () => {
    const hub = new EventHub({ clock: () => 42 });
    const seen: TroupeEvent[] = [];
    hub.events$.subscribe((event) => seen.push(event));
    hub.emit(step(1));
    expect(seen).toEqual([]);
    await turn();
    expect(seen).toEqual([{ ...step(1), timeMs: 42, schemaVersion: 2 }]);
    await hub.close();
  });

  test("tells subscribers that it lets rest all that there is, when it is flushed", async () => {
    const hub = new EventHub();
    const seen: number[] = [];
    hub.listeners.on("step.finished", ({ step: index }) => {
      block(20); // the hub rests for four times as long
      seen.push(index);
    });
    hub.emit(step(1));
    await turn();
    hub.emit(step(2));
    hub.emit(step(3));
    hub.flush();
    expect(seen).toEqual([1, 2, 3]);
    hub.emit(step(4));
    hub.flush();
    expect(seen).toEqual([1, 2, 3, 4]);
    await hub.close();
  });

  test("gives sinks every event at once, in order", async () => {
    const hub = new EventHub();
    const seen: TroupeEvent[] = [];
    const close = vi.fn(async () => {});
    hub.addSink({ write: (event) => seen.push(event), close });
    hub.emit(step(1));
    hub.emit(step(2));
    expect(stepsOf(seen)).toEqual([1, 2]);
    await hub.close();
    expect(close).toHaveBeenCalledTimes(1);
  });

  test("does nothing once the hub is closed", async () => {
    const hub = new EventHub();
    await hub.close();
    hub.emit(step(1));
    await hub.close();
    const seen: TroupeEvent[] = [];
    hub.events$.subscribe((event) => seen.push(event));
    expect(seen).toEqual([]);
  });
});

describe("subscribing", () => {
  test("late brings the latest events first, up to the bound", async () => {
    const hub = new EventHub({ numReplayed: 3 });
    const early: TroupeEvent[] = [];
    hub.events$.subscribe((event) => early.push(event));
    for (let index = 1; index <= 10; index++) hub.emit(step(index));
    await until(() => early.length === 10);
    const seen: TroupeEvent[] = [];
    hub.events$.subscribe((event) => seen.push(event));
    hub.emit(step(11));
    await hub.close();
    expect(stepsOf(seen)).toEqual([8, 9, 10, 11]);
  });

  test("works with operators, and completes when the hub closes", async () => {
    const hub = new EventHub();
    const seen: number[] = [];
    const complete = vi.fn();
    const losses$ = hub.events$.pipe(
      filter((event) => event.kind === "step.finished"),
      map((event) => event.step),
      take(5),
    );
    losses$.subscribe({ next: (index) => seen.push(index) });
    hub.events$.subscribe({ complete });
    for (let index = 1; index <= 3; index++) hub.emit(step(index));
    await hub.close();
    expect(seen).toEqual([1, 2, 3]);
    expect(complete).toHaveBeenCalledOnce();
  });

  test("ends with unsubscribe", async () => {
    const hub = new EventHub();
    const seen: TroupeEvent[] = [];
    const subscription = hub.events$.subscribe((event) => seen.push(event));
    hub.emit(step(1));
    await turn();
    subscription.unsubscribe();
    hub.emit(step(2));
    await hub.close();
    expect(stepsOf(seen)).toEqual([1]);
  });
});

describe("a subscriber that throws", () => {
  const boom = () => {
    throw new Error("boom");
  };
  const failing: Record<string, (hub: EventHub) => void> = {
    "a function": (hub) => hub.events$.subscribe(boom),
    "an observer": (hub) => hub.events$.subscribe({ next: boom, complete: boom }),
    // oxlint-disable-next-line typescript/no-misused-promises -- the misuse is what must do no harm
    "an async function": (hub) => hub.events$.subscribe(async () => boom()),
    "behind operators": (hub) => hub.events$.pipe(map((event) => event.kind)).subscribe(boom),
    "within an operator": (hub) => hub.events$.pipe(map(boom)).subscribe(() => {}),
    "at its own error": (hub) => hub.events$.pipe(map(boom)).subscribe({ error: boom }),
  };

  test.each(Object.keys(failing))("(%s) is reported once and disturbs nobody", async (name) => {
    const hub = new EventHub();
    const before: TroupeEvent[] = [];
    const after: TroupeEvent[] = [];
    hub.events$.subscribe((event) => before.push(event));
    failing[name]?.(hub);
    hub.events$.subscribe((event) => after.push(event));
    for (let index = 1; index <= 5; index++) {
      hub.emit(step(index));
      await turn();
    }
    await turn();
    await hub.close();
    expect(stepsOf(before)).toEqual([1, 2, 3, 4, 5]);
    expect(stepsOf(after)).toEqual([1, 2, 3, 4, 5]);
    const reports = before.filter((event) => event.kind === "subscriber.failed");
    expect(reports).toMatchObject([{ error: { message: "boom" } }]);
    expect(warnings).toEqual([expect.stringContaining("boom")]);
  });

  test("goes on receiving", async () => {
    const hub = new EventHub();
    const seen: TroupeEvent[] = [];
    hub.events$.subscribe((event) => {
      seen.push(event);
      if (event.kind === "step.finished" && event.step === 1) boom();
    });
    hub.emit(step(1));
    hub.emit(step(2));
    await hub.close();
    expect(stepsOf(seen)).toEqual([1, 2]);
  });
});

describe("a subscriber that is slow", () => {
  test("a slow subscriber gets at most about a fifth of the thread, and the rest stays for others", async () => {
    const hub = new EventHub({ capacity: 4 });
    let subscriberMs = 0;
    hub.events$.subscribe(() => {
      const begin = performance.now();
      block(20);
      subscriberMs += performance.now() - begin;
    });
    const begin = performance.now();
    let longestMs = 0;
    for (let numTurns = 0; performance.now() - begin < 1000; numTurns++) {
      const turnBegin = performance.now();
      hub.emit(step(numTurns));
      await turn();
      longestMs = Math.max(longestMs, performance.now() - turnBegin);
    }
    // An eternity for a machine that is busy with other things; without the rest it would be all of the second.
    expect(subscriberMs).toBeLessThan(500);
    expect(subscriberMs).toBeGreaterThan(0);
    await hub.close();
  });

  test("a slow subscriber loses the oldest events, learns their number, and always receives the last", async () => {
    const hub = new EventHub({ capacity: 10 });
    const seen: TroupeEvent[] = [];
    const written: TroupeEvent[] = [];
    hub.addSink({ write: (event) => written.push(event), close: async () => {} });
    hub.events$.subscribe((event) => seen.push(event));
    for (let index = 1; index <= 100; index++) hub.emit(step(index));
    await until(() => seen.some(({ kind }) => kind === "events.dropped"));
    hub.emit(samples["run.finished"]);
    await hub.close();
    expect(stepsOf(seen)).toEqual([91, 92, 93, 94, 95, 96, 97, 98, 99, 100]);
    expect(stepsOf(written).length).toBe(100);
    expect(seen.filter((event) => event.kind === "events.dropped")).toMatchObject([{ numDropped: 90 }]);
    expect(seen.at(-1)?.kind).toBe("run.finished");
  });

  test("a subscriber that takes no events leaves memory flat: 200,000 events cost no more than the first 40,000", async () => {
    const hub = new EventHub();
    const subscription = hub.events$.subscribe(() => block(20));
    const heldAfter = async (numEvents: number) => {
      for (let index = 1; index <= numEvents; index++) {
        hub.emit(step(index));
        if (index % 4_000 === 0) await turn();
      }
      globalThis.gc?.();
      return process.memoryUsage().heapUsed;
    };
    const full = await heldAfter(40_000);
    // Were they held, they would be some 60 MB.
    expect((await heldAfter(160_000)) - full).toBeLessThan(5e6);
    subscription.unsubscribe();
    await hub.close();
  });

  test("holds up closing for about a second, then hears the last event", async () => {
    const hub = new EventHub();
    const seen: TroupeEvent[] = [];
    hub.events$.subscribe((event) => {
      seen.push(event);
      block(400);
    });
    for (let index = 1; index <= 50; index++) hub.emit(step(index));
    hub.emit(samples["run.finished"]);
    await hub.close();
    expect(seen.length).toBeLessThan(10);
    expect(seen.at(-1)?.kind).toBe("run.finished");
  });
});

describe("the async iterator", () => {
  test("gives every event to a reader that keeps up, and ends with the hub", async () => {
    const hub = new EventHub();
    const seen: number[] = [];
    const reading = (async () => {
      for await (const event of hub.events()) {
        if (event.kind === "step.finished") seen.push(event.step);
      }
    })();
    for (let index = 1; index <= 20; index++) {
      hub.emit(step(index));
      await turn();
    }
    await hub.close();
    await reading;
    expect(seen).toEqual(Array.from({ length: 20 }, (_, index) => index + 1));
  });

  test("a stream whose reader is behind loses the oldest events, and counts them", async () => {
    const hub = new EventHub();
    const events = hub.events({ buffer: 5 });
    for (let index = 1; index <= 12; index++) hub.emit(step(index));
    await hub.close();
    expect(events.numDropped).toBe(7);
    const seen: TroupeEvent[] = [];
    for await (const event of events) seen.push(event);
    expect(stepsOf(seen)).toEqual([8, 9, 10, 11, 12]);
  });

  test("is left by breaking out of the loop, or disposed of", async () => {
    const hub = new EventHub();
    hub.emit(step(1));
    hub.emit(step(2));
    const events = hub.events();
    for await (const event of events) {
      expect(event.kind).toBe("step.finished");
      break;
    }
    expect(await events.next()).toEqual({ done: true, value: undefined });
    {
      await using other = hub.events();
      expect((await other.next()).done).toBe(false);
    }
    const waiting = hub.events();
    const [first, second, third] = [waiting.next(), waiting.next(), waiting.next()];
    await second;
    await waiting.return();
    expect((await Promise.all([first, second, third])).map(({ done }) => done)).toEqual([false, false, true]);
    await hub.close();
  });
});

describe("listeners of one kind", () => {
  test("subscribing refuses an observer that is no function", () => {
    const { listeners } = new EventHub();
    expect(() => listeners.on("step.finished", undefined as never)).toThrow(
      "[on] expected a listener, got undefined",
    );
  });

  test("hear that kind alone, once or until they are taken back; one that throws is reported once", async () => {
    const hub = new EventHub();
    const heard: string[] = [];
    const each = ({ step }: { readonly step: number }) => void heard.push(`each ${step}`);
    hub.listeners.on("step.finished", each);
    hub.listeners.once("step.finished", ({ step }) => heard.push(`once ${step}`));
    hub.listeners.on("step.finished", ({ step }) => {
      heard.push(`throws ${step}`);
      throw new Error("a listener's bug");
    });
    hub.listeners.on("run.finished", () => heard.push("run"));
    hub.emit(step(1));
    hub.emit(step(2));
    await until(() => heard.length === 5);
    expect(heard).toEqual(["each 1", "once 1", "throws 1", "each 2", "throws 2"]);
    expect(warnings).toEqual([expect.stringContaining("a listener's bug")]);
    hub.listeners.off("step.finished", each);
    hub.emit(step(3));
    hub.emit(samples["run.finished"]);
    await hub.close();
    expect(heard.slice(5)).toEqual(["throws 3", "run"]);
  });
});

describe("a sink that fails", () => {
  class Tracker implements EventSink {
    readonly seen: TroupeEvent[] = [];
    readonly #write: (event: TroupeEvent) => unknown;
    readonly #close: () => unknown;

    constructor(write: (event: TroupeEvent) => unknown = () => {}, close: () => unknown = () => {}) {
      this.#write = write;
      this.#close = close;
    }

    write(event: TroupeEvent): unknown {
      this.seen.push(event);
      return this.#write(event);
    }

    close(): unknown {
      return this.#close();
    }
  }

  const down = () => {
    throw new Error("down");
  };
  const rejects = async () => down();
  /** A promise as other libraries make them. */
  const elsewhere = () => ({
    // oxlint-disable-next-line unicorn/no-thenable -- it is what must be taken for a promise
    // biome-ignore lint/suspicious/noThenProperty: it is what must be taken for a promise
    then: (_: unknown, reject: (error: Error) => void) => queueMicrotask(() => reject(new Error("down"))),
  });
  const ways: readonly (readonly [string, () => unknown])[] = [
    ["throws", down],
    ["rejects", rejects],
    ["rejects with another library's promise", elsewhere],
  ];

  /** Emits five steps beside a sink that does no harm. @returns what that one saw */
  async function seenBeside(tracker: EventSink): Promise<TroupeEvent[]> {
    const hub = new EventHub();
    const seen: TroupeEvent[] = [];
    hub.addSink({ write: (event) => seen.push(event), close: () => {} });
    hub.addSink(tracker);
    for (let index = 1; index <= 5; index++) {
      hub.emit(step(index));
      await turn();
    }
    await hub.close();
    return seen;
  }

  test.each(ways)(
    "(it %s) goes on receiving, and is reported once by name, with a count at the end",
    async (_, fails) => {
      const tracker = new Tracker(fails, fails);
      const seen = await seenBeside(tracker);
      expect(stepsOf(seen)).toEqual([1, 2, 3, 4, 5]);
      expect(stepsOf(tracker.seen)).toEqual([1, 2, 3, 4, 5]);
      const reports = seen.filter(({ kind }) => kind === "subscriber.failed");
      // Five steps, its own failure's report, and its close.
      expect(reports).toMatchObject([
        { subscriber: "write(event) of sink Tracker", error: { message: "down" } },
        { subscriber: "sink Tracker", error: { message: "down" }, numFailed: 7, numLost: 0 },
      ]);
      expect(warnings).toEqual([expect.stringContaining("write(event) of sink Tracker failed")]);
    },
  );

  test("shows the line of its own source on the console", async () => {
    const [report] = (await seenBeside(new Tracker(rejects))).filter(
      ({ kind }) => kind === "subscriber.failed",
    );
    const { text } = describeEvent(report as TroupeEvent) ?? {};
    expect(text).toContain("write(event) of sink Tracker failed, training goes on: down");
    expect(text).toContain("event-hub.test.ts");
    expect(text).toContain('throw new Error("down");');
  });

  test("only at its close, by any value thrown, is reported to the other sinks", async () => {
    for (const thrown of [new Error("down"), null, Object.create(null)]) {
      const fails = () => {
        throw thrown;
      };
      const seen = await seenBeside(new Tracker(() => {}, fails));
      expect(seen.filter(({ kind }) => kind === "subscriber.failed")).toMatchObject([
        { subscriber: "close() of sink Tracker" },
      ]);
    }
    // The close of the last sink is left to the process's own warnings.
    const hub = new EventHub();
    hub.addSink(new Tracker(() => {}, down));
    await hub.close();
    await turn();
    expect(warnings).toEqual([expect.stringContaining("close() of sink Tracker failed")]);
  });

  test("a sink that is slow to answer delays no other sink, keeps a bounded number of events, and is closed at its deadline", async () => {
    const hub = new EventHub({ capacity: 10 });
    const seen: TroupeEvent[] = [];
    hub.addSink({ write: (event) => seen.push(event), close: () => {} });
    const never = () => new Promise<void>(() => {});
    const tracker = Object.assign(new Tracker(never, never), { closeDeadlineMs: 50 });
    hub.addSink(tracker);
    for (let index = 1; index <= 100; index++) hub.emit(step(index));
    await hub.close();
    expect(stepsOf(seen).length).toBe(100);
    expect(stepsOf(tracker.seen)).toEqual([1]);
    const reports = seen.filter(({ kind }) => kind === "subscriber.failed");
    expect(reports).toMatchObject([
      { subscriber: "write(event) of sink Tracker" },
      { subscriber: "sink Tracker", numFailed: 2, numLost: 99 },
    ]);
  });

  test("to end a write within ten seconds is reported while the run goes on", async () => {
    vi.useFakeTimers();
    try {
      const hub = new EventHub();
      const seen: TroupeEvent[] = [];
      hub.addSink({ write: (event) => seen.push(event), close: () => {} });
      hub.addSink(new Tracker(() => new Promise(() => {})));
      hub.emit(step(1));
      await vi.advanceTimersByTimeAsync(10_000);
      const [report] = seen.filter(({ kind }) => kind === "subscriber.failed");
      expect(describeEvent(report as TroupeEvent)?.text).toContain(
        "[sink Tracker] expected write(event) to end within 0:10, got a promise that has not settled",
      );
    } finally {
      vi.useRealTimers();
    }
  });

  test("to be quick gets all its events in order, one at a time, and no more of the thread than a subscriber", async () => {
    const hub = new EventHub();
    let numAtOnce = 0;
    let mostAtOnce = 0;
    const later = new Tracker(async () => {
      mostAtOnce = Math.max(mostAtOnce, ++numAtOnce);
      await turn();
      numAtOnce -= 1;
    });
    let blockedMs = 0;
    const blocking = new Tracker(() => {
      const begin = performance.now();
      block(20);
      blockedMs += performance.now() - begin;
    });
    hub.addSink(later);
    hub.addSink(blocking);
    const begin = performance.now();
    let numSteps = 0;
    while (performance.now() - begin < 1000) {
      hub.emit(step(++numSteps));
      await turn();
    }
    expect(blockedMs).toBeLessThan(600);
    await hub.close();
    expect(stepsOf(later.seen)).toEqual(Array.from({ length: numSteps }, (_, index) => index + 1));
    expect(mostAtOnce).toBe(1);
    expect(blocking.seen.length).toBeGreaterThan(0);
  });

  test("to be one is refused when it is added", () => {
    const hub = new EventHub();
    expect(() => hub.addSink({ write() {} } as unknown as EventSink)).toThrow(
      "[addSink] expected a sink with functions write(event) and close(), got one without close()",
    );
  });
});
