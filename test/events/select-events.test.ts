import { filter } from "rxjs";
import { describe, expect, expectTypeOf, test } from "vitest";
import type { EventOf, TroupeEvent } from "../../src/job/events/event.ts";
import { EventHub, type EventStreamOptions } from "../../src/job/events/hub/event-hub.ts";
import { ofKind } from "../../src/job/events/hub/select-events.ts";
import { samples } from "./samples.ts";

/** The events that a stream of these options has received after ten steps, one in 100 ms, each followed by a saved checkpoint. */
async function received(options: EventStreamOptions): Promise<TroupeEvent[]> {
  let nowMs = 0;
  const hub = new EventHub({ clock: () => nowMs });
  const stream = hub.events(options);
  for (let step = 1; step <= 10; step++) {
    nowMs = step * 100;
    hub.emit({ ...samples["step.finished"], step });
    hub.emit({ ...samples["checkpoint.saved"], step });
  }
  await hub.close();
  const events: TroupeEvent[] = [];
  for await (const event of stream) events.push(event);
  return events;
}

const stepsOf = (events: readonly TroupeEvent[], kind: string) =>
  events.flatMap((event) => (event.kind === kind && "step" in event ? event.step : []));

describe("events({ kinds, sample, buffer })", () => {
  test("brings the kinds that were asked for, and no others", async () => {
    const events = await received({ kinds: ["checkpoint.saved"] });
    expect(events.map(({ kind }) => kind)).toEqual(Array(10).fill("checkpoint.saved"));
  });

  test("takes every n-th event of a kind, beginning with the first, and all events of other kinds", async () => {
    const events = await received({ sample: { "step.finished": { every: 4 } } });
    expect(stepsOf(events, "step.finished")).toEqual([1, 5, 9]);
    expect(stepsOf(events, "checkpoint.saved")).toHaveLength(10);
  });

  test("takes at most one of a kind in so many milliseconds", async () => {
    const events = await received({
      kinds: ["step.finished", "checkpoint.saved"],
      sample: { "step.finished": { everyMs: 250 }, "checkpoint.saved": { every: 10 } },
    });
    expect(stepsOf(events, "step.finished")).toEqual([1, 4, 7, 10]);
    expect(stepsOf(events, "checkpoint.saved")).toEqual([1]);
  });

  test("only selected events count against the buffer", async () => {
    expect(stepsOf(await received({ kinds: ["step.finished"], buffer: 3 }), "step.finished")).toEqual([
      8, 9, 10,
    ]);
  });

  test.each<[EventStreamOptions, RegExp]>([
    [{ sample: { "step.finished": { every: 0 } } }, /sample\["step.finished"\]\.every .* ≥ 1, got 0/],
    [{ sample: { "step.finished": { everyMs: Number.NaN } } }, /everyMs .* > 0, got NaN/],
    [{ kinds: ["run.failed"], sample: { "step.finished": { every: 2 } } }, /one of `kinds`/],
    [{ kind: ["step.finished"] } as object, /expected an option, got kind \(did you mean kinds\?\)/],
    [{ buffer: 0.5 }, /buffer .* ≥ 1, got 0.5/],
  ])("refuses %o", (options, message) => {
    expect(() => new EventHub().events(options)).toThrow(message);
  });

  test("gives events the types of the kinds that were asked for", async () => {
    const hub = new EventHub();
    const stream = hub.events({ kinds: ["step.finished", "run.failed"] });
    expectTypeOf(stream.next).returns.resolves.toEqualTypeOf<
      IteratorResult<EventOf<"step.finished" | "run.failed">>
    >();
    const losses: number[] = [];
    hub.events$.pipe(filter(ofKind("step.finished"))).subscribe(({ lossNats }) => losses.push(lossNats));
    hub.emit(samples["checkpoint.started"]);
    hub.emit(samples["step.finished"]);
    await hub.close();
    expect(losses).toEqual([samples["step.finished"].lossNats]);
  });
});
