import fc from "fast-check";
import { expect, test } from "vitest";
import type { ChildSpec, Restart, RuntimeEvent, Strategy, Supervisor } from "../../src/runtime/index.ts";
import { FakeClock } from "../fixtures/fake-clock.ts";
import type { ChildInit, ChildProtocol } from "./actors/child.ts";
import { actorModule, startSystem } from "./start-system.ts";

type Command =
  | { readonly does: "fail" | "finish"; readonly child: number }
  | { readonly does: "pause"; readonly ms: number }
  | { readonly does: "forgive" };

/** Options of a supervisor; those left out have their defaults. */
interface Settings {
  readonly strategy: Strategy;
  readonly kinds: readonly Restart[];
  readonly restarts?: number;
  readonly withinMs?: number;
  readonly backoff?: { readonly firstMs: number; readonly maxMs: number };
}

/** The outcome of one child's end, and the reports of children at their stops and starts. */
type Outcome =
  | { readonly becomes: "left"; readonly stopped: readonly []; readonly started: readonly [] }
  | {
      readonly becomes: "started again";
      readonly afterMs: number;
      readonly stopped: readonly string[];
      readonly started: readonly string[];
    }
  | {
      readonly becomes: "given up";
      readonly stopped: readonly string[];
      readonly started: readonly [];
      /** The first counts. */
      readonly causes: readonly string[];
    };

/** Three restarts within five minutes, at once, unless said otherwise. */
const usual = { restarts: 3, withinMs: 300_000, backoff: { firstMs: 0, maxMs: 0 } };

/** What OTP's rules say of a group, worked out on paper: no actor, no timer. */
class Model {
  readonly #rules: Settings & typeof usual;
  readonly #names: readonly string[];
  readonly #lives: number[];
  readonly #living: boolean[];
  #recent: { readonly atMs: number; readonly cause: string }[] = [];
  nowMs = 0;

  constructor(settings: Settings, names: readonly string[]) {
    this.#rules = { ...usual, ...settings };
    this.#names = names;
    this.#lives = names.map(() => 1);
    this.#living = names.map(() => true);
  }

  isAlive(child: number): boolean {
    return this.#living[child] as boolean;
  }

  /** The present life of a child, or the last: "a#2". */
  life(child: number): string {
    return `${this.#names[child]}#${this.#lives[child]}`;
  }

  forgive(): void {
    this.#recent = [];
  }

  end(child: number, failed: boolean, cause: string): Outcome {
    const { kinds, restarts, withinMs, backoff } = this.#rules;
    this.#living[child] = false;
    const kind = kinds[child];
    if (kind === "temporary" || (kind === "transient" && !failed))
      return { becomes: "left", stopped: [], started: [] };
    const recent = this.#recent.filter(({ atMs }) => this.nowMs - atMs < withinMs);
    this.#recent = [...recent, { atMs: this.nowMs, cause }];
    if (this.#recent.length > restarts) {
      const causes = this.#recent.map((each) => each.cause);
      return { becomes: "given up", stopped: this.#stop([0, 1, 2]), started: [], causes };
    }
    const afterMs = Math.min(backoff.maxMs, backoff.firstMs * 2 ** (this.#recent.length - 1));
    this.nowMs += afterMs;
    const affected = this.#affectedBy(child);
    const stopped = this.#stop(affected);
    const toStart = affected.filter((index) => index === child || kinds[index] !== "temporary");
    return { becomes: "started again", afterMs, stopped, started: this.#start(toStart) };
  }

  #affectedBy(child: number): number[] {
    const { strategy } = this.#rules;
    if (strategy === "one_for_one") return [child];
    return [0, 1, 2].filter((index) => strategy === "one_for_all" || index >= child);
  }

  #stop(children: readonly number[]): string[] {
    const living = children.filter((child) => this.isAlive(child)).toReversed();
    for (const child of living) this.#living[child] = false;
    return living.map((child) => this.life(child));
  }

  #start(children: readonly number[]): string[] {
    return children.map((child) => {
      this.#living[child] = true;
      this.#lives[child] = (this.#lives[child] as number) + 1;
      return this.life(child);
    });
  }
}

const settings: fc.Arbitrary<Settings> = fc.record(
  {
    strategy: fc.constantFrom<Strategy[]>("one_for_one", "one_for_all", "rest_for_one"),
    kinds: fc.array(fc.constantFrom<Restart[]>("permanent", "permanent", "transient", "temporary"), {
      minLength: 3,
      maxLength: 3,
    }),
    restarts: fc.nat(4),
    withinMs: fc.constantFrom(500, 2_000),
    backoff: fc.constant({ firstMs: 100, maxMs: 300 }),
  },
  { requiredKeys: ["strategy", "kinds"] },
);

const child = fc.nat(2);
/** Also just within the usual window, and just out of it. */
const pauseMs = fc.oneof(fc.nat(900), fc.constantFrom(usual.withinMs - 1, usual.withinMs));
const command: fc.Arbitrary<Command> = fc.oneof(
  { weight: 5, arbitrary: fc.record({ does: fc.constant("fail" as const), child }) },
  { weight: 2, arbitrary: fc.record({ does: fc.constant("finish" as const), child }) },
  { weight: 2, arbitrary: fc.record({ does: fc.constant("pause" as const), ms: pauseMs }) },
  { weight: 1, arbitrary: fc.constant({ does: "forgive" } as const) },
);

/** Settings that all groups share. */
type Scene = ReturnType<typeof startSystem> & { readonly clock: FakeClock };

/** A group of three on the main thread, beside the model that says what must become of it. */
class Group {
  readonly #scene: Scene;
  readonly #settings: Settings;
  readonly #name: string;
  readonly #names: readonly string[];
  readonly #model: Model;
  readonly #numSaidBefore: number;
  /** Reports that its children must have made by now. */
  readonly #said: string[];
  readonly #gaveUp = Promise.withResolvers<readonly string[]>();
  #supervisor: Supervisor | undefined;

  constructor(scene: Scene, name: string, settings: Settings) {
    this.#scene = scene;
    this.#settings = settings;
    this.#name = name;
    this.#names = ["a", "b", "c"].map((letter) => `${name}${letter}`);
    this.#model = new Model(settings, this.#names);
    this.#numSaidBefore = scene.log.emitted.length;
    this.#said = this.#names.map((child) => `start ${child}#1`);
  }

  async start(): Promise<void> {
    const { kinds, ...options } = this.#settings;
    this.#supervisor = await this.#scene.system.supervise({
      name: this.#name,
      ...options,
      children: this.#names.map((child, index) => childSpec(child, kinds[index] as Restart)),
      onEscalate: (_cause, failures) => this.#gaveUp.resolve(failures.map(({ message }) => message)),
    });
  }

  async stop(): Promise<void> {
    await this.#supervisor?.stop();
  }

  /** @returns what became of the child that it ended, if it did end one */
  async meet(command: Command): Promise<Outcome["becomes"] | undefined> {
    if (command.does === "forgive") {
      this.#supervisor?.forgiveRestarts();
      this.#model.forgive();
    } else if (command.does === "pause") {
      this.#scene.clock.advance(command.ms);
      this.#model.nowMs += command.ms;
    } else if (this.#model.isAlive(command.child)) {
      return this.#end(command.child, command.does);
    }
    return undefined;
  }

  async #end(child: number, how: "fail" | "finish"): Promise<Outcome["becomes"]> {
    const { log } = this.#scene;
    const name = this.#names[child] as string;
    const life = this.#model.life(child);
    const failed = how === "fail";
    const outcome = this.#model.end(child, failed, failed ? `${life} fell` : `${name} stopped by itself`);
    const ref = this.#supervisor?.ref<ChildProtocol>(name);
    if (failed) ref?.tell("fail", `${life} fell`);
    else ref?.tell("finish", null);
    await log.until((event) => isOf(event, life) && /^actor\.(failed|stopped)$/.test(event.kind));
    await new Promise(setImmediate);
    // A child that stops in order reports it; one that fails does not.
    if (!failed) this.#said.push(`stop ${life}`);
    if (outcome.becomes === "started again") await this.#waitOut(outcome.afterMs);
    this.#said.push(...outcome.stopped.map((each) => `stop ${each}`));
    this.#said.push(...outcome.started.map((each) => `start ${each}`));
    const last = outcome.started.at(-1);
    if (last !== undefined) await log.until((event) => event.kind === "actor.restarted" && isOf(event, last));
    if (outcome.becomes === "given up") expect(await this.#gaveUp.promise).toEqual(outcome.causes);
    this.#expectSaid();
    return outcome.becomes;
  }

  /** No child is started before the pause is over. */
  async #waitOut(pauseMs: number): Promise<void> {
    if (pauseMs === 0) return;
    this.#scene.clock.advance(pauseMs - 1);
    await new Promise(setImmediate);
    this.#expectSaid();
    this.#scene.clock.advance(1);
  }

  #expectSaid(): void {
    expect(this.#scene.log.emitted.slice(this.#numSaidBefore)).toEqual(this.#said);
  }
}

test("DL-12 a group does what OTP's rules say, whichever of its children end, at any time: 80 groups at random", async () => {
  const clock = new FakeClock();
  const scene = { ...startSystem({ clock }), clock };
  const numOutcomes = { left: 0, "started again": 0, "given up": 0 };
  let numGroups = 0;
  const follow = async (given: Settings, commands: readonly Command[]): Promise<void> => {
    const group = new Group(scene, `g${numGroups++}`, given);
    await group.start();
    for (const command of commands) {
      const became = await group.meet(command);
      if (became !== undefined) numOutcomes[became] += 1;
      if (became === "given up") return;
    }
    await group.stop();
  };
  const commands = fc.array(command, { minLength: 4, maxLength: 14 });
  const options = { seed: 11, numRuns: 80, endOnFailure: true };
  await fc.assert(fc.asyncProperty(settings, commands, follow), options);
  // Each of the three came about often enough to say something.
  for (const count of Object.values(numOutcomes)) expect(count).toBeGreaterThan(10);
});

function childSpec(name: string, restart: Restart): ChildSpec {
  return { name, module: actorModule("child"), placement: "main", restart, init: (): ChildInit => ({}) };
}

function isOf(event: RuntimeEvent, life: string): boolean {
  return "incarnation" in event && `${event.actor}#${event.incarnation}` === life;
}
