import { onTestFinished } from "vitest";
import {
  ActorSystem,
  type Clock,
  FakeClock,
  type MessagingSettings,
  type RuntimeEvent,
  type SystemOptions,
} from "../../src/runtime/index.ts";

/** The module of one of the actors of these tests. */
export function actorModule(name: string): URL {
  return new URL(`./actors/${name}.ts`, import.meta.url);
}

/** What a system reported, and a way to wait for what it will report. */
export class EventLog {
  readonly events: RuntimeEvent[] = [];
  readonly unhandled: Error[] = [];
  #waiting: {
    readonly matches: (event: RuntimeEvent) => boolean;
    readonly resolve: (event: RuntimeEvent) => void;
  }[] = [];

  readonly enter = (event: RuntimeEvent): void => {
    this.events.push(event);
    const matched = this.#waiting.filter(({ matches }) => matches(event));
    this.#waiting = this.#waiting.filter((waiter) => !matched.includes(waiter));
    for (const { resolve } of matched) resolve(event);
  };

  /** All of one kind so far. */
  ofKind<K extends RuntimeEvent["kind"]>(kind: K): Extract<RuntimeEvent, { kind: K }>[] {
    return this.events.filter((event): event is Extract<RuntimeEvent, { kind: K }> => event.kind === kind);
  }

  /** The first event that matches, past or to come. */
  async until(matches: (event: RuntimeEvent) => boolean): Promise<RuntimeEvent> {
    const past = this.events.find(matches);
    return past ?? (await new Promise((resolve) => this.#waiting.push({ matches, resolve })));
  }

  /** The payloads that actors emitted so far. */
  get emitted(): unknown[] {
    return this.ofKind("actor.emitted").map(({ event }) => event);
  }

  /** Resolves when an actor has emitted this payload. */
  async untilEmitted(payload: unknown): Promise<void> {
    const text = JSON.stringify(payload);
    await this.until((event) => event.kind === "actor.emitted" && JSON.stringify(event.event) === text);
  }
}

/** A system that is stopped when the test has finished; messages are frozen, as in every test. */
export function startSystem(
  options: Partial<SystemOptions> & { messaging?: Partial<MessagingSettings> } = {},
): { system: ActorSystem; log: EventLog } {
  const log = new EventLog();
  const system = new ActorSystem({
    name: "test",
    onEvent: log.enter,
    onUnhandled: (error) => log.unhandled.push(error),
    ...options,
    messaging: { freezeMessages: true, ...options.messaging },
  });
  onTestFinished(() => stopCompletely(system, options.clock));
  return { system, log };
}

/** Stops the system; a clock that stands still is moved on whenever nothing else does, so that deadlines pass. */
async function stopCompletely(system: ActorSystem, clock: Clock | undefined): Promise<void> {
  const stopping = system.stop({ deadlineMs: 2_000 });
  const movedOn = clock instanceof FakeClock ? setInterval(() => clock.advance(2_000), 500) : undefined;
  await stopping.finally(() => clearInterval(movedOn));
}
