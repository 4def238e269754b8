import type { ActorRef } from "../messaging/actor-ref.ts";
import type { Address } from "../protocol/address.ts";
import type { Down } from "../protocol/failure.ts";
import type { StopOptions } from "../protocol/spawn.ts";
import type { ActorRecord } from "../system/actor-record.ts";
import { type Launcher, processOf } from "../system/launcher.ts";
import type { Part } from "../system/part.ts";
import type { Siblings } from "../system/siblings.ts";
import type { Restart } from "./restart-policy.ts";
import type { ChildSpec, SiblingRefs } from "./supervisor-options.ts";

/** The launcher of a supervisor's children, and the part of the system that they belong to. */
interface Places {
  readonly launcher: Launcher;
  readonly part: Part;
}

/** An actor that is restarted as needed, behind one ref. */
export class SupervisedChild {
  readonly name: string;
  readonly restart: Restart;
  /** The same through all incarnations. */
  readonly ref: ActorRef<unknown>;
  readonly #launcher: Launcher;
  readonly #part: Part;
  readonly #spec: ChildSpec;
  readonly #refs: SiblingRefs;
  readonly #onEnd: (down: Down) => void;
  readonly #target: { address: Address };
  #record: ActorRecord | undefined;

  constructor({ launcher, part }: Places, spec: ChildSpec, refs: SiblingRefs, onEnd: (down: Down) => void) {
    this.name = spec.name;
    this.restart = spec.restart ?? "permanent";
    this.#launcher = launcher;
    this.#part = part;
    this.#spec = spec;
    this.#refs = refs;
    this.#onEnd = onEnd;
    this.#target = { address: launcher.addresses.unstarted(spec.name) };
    this.ref = launcher.refTo(this.#target);
  }

  /** Number of the present or last incarnation. */
  get incarnation(): number {
    return this.#target.address.incarnation;
  }

  /** Starts a warm standby for the next incarnation; returns false if there is nothing left to start. */
  prepareStandby(): boolean {
    return this.#launcher.prepareStandby(this.#spec, this.#part);
  }

  /** Whether it goes on now if others are restarted because of one of them. */
  get outlives(): boolean {
    const { outlives = false } = this.#spec;
    return typeof outlives === "function" ? outlives() : outlives;
  }

  /** Whether it goes on as {@link outlives} says: one that has been stopped, and could not be started again yet, does not. */
  get staysUp(): boolean {
    return this.outlives && this.#record !== undefined;
  }

  /** The name of its process; undefined if it has none. */
  get process(): string | undefined {
    return processOf(this.#spec);
  }

  /** Prepares the next incarnation while this one ends. @param keepsProcess - whether the process may outlive it */
  prepareNext(keepsProcess: boolean): void {
    this.#launcher.prepareNext(this.#spec, this.#part, keepsProcess && this.#spec.freshProcess !== true);
  }

  /** No next incarnation will start. */
  expectNoNext(): void {
    this.#launcher.expectNoNext(this.#spec);
  }

  /** Begins slow preparations; called some time before `start`. */
  prepare(): void {
    this.#launcher.prepare(this.#spec, this.#part);
  }

  /** @param siblings - the children that are started together with it */
  async start(siblings: Siblings): Promise<void> {
    const init = await this.#spec.init?.(this.#launcher.addresses.nextIncarnation(this.name), this.#refs);
    const record = await this.#launcher.start(this.#spec, init, { part: this.#part, siblings });
    this.#record = record;
    this.#target.address = record.address;
    void record.ended.promise.then((down) => {
      if (this.#record === record) this.#onEnd(down);
    });
  }

  /** Stops it and resolves when nothing of it runs any more. Its end is not reported to the supervisor. */
  async stop(options: StopOptions): Promise<void> {
    const record = this.#record;
    this.#record = undefined;
    if (record !== undefined) await this.#launcher.stop(record, options);
  }
}
