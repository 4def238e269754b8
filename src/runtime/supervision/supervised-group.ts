import type { Down } from "../protocol/failure.ts";
import type { Restart } from "./restart-policy.ts";
import type { StopOptions } from "../protocol/spawn-place.ts";
import type { Child } from "./supervised-child.ts";
import type { Supervisor } from "./supervisor.ts";
import type { GroupSpec, SupervisorOptions } from "./supervisor-options.ts";

/** A supervisor as the child of another: when it gives up, that is its failure. */
export class SupervisedGroup implements Child {
  readonly name: string;
  readonly restart: Restart;
  readonly ref = undefined;
  readonly #spec: GroupSpec;
  readonly #make: (options: SupervisorOptions) => Supervisor;
  readonly #onEnd: (down: Down) => void;
  #supervisor: Supervisor | undefined;
  #incarnation = 0;

  /** @param make - makes a supervisor, anew for each life of the group */
  constructor(
    spec: GroupSpec,
    make: (options: SupervisorOptions) => Supervisor,
    onEnd: (down: Down) => void,
  ) {
    this.name = spec.name;
    this.restart = spec.restart ?? "permanent";
    this.#spec = spec;
    this.#make = make;
    this.#onEnd = onEnd;
  }

  get incarnation(): number {
    return this.#incarnation;
  }

  rehearse(): boolean {
    return this.#supervisor?.rehearse() ?? false;
  }

  prepare(): void {}

  async start(): Promise<void> {
    this.#incarnation += 1;
    const incarnation = this.#incarnation;
    this.#supervisor = this.#make({
      ...this.#spec,
      onEscalate: (cause, failures) => {
        this.#spec.onEscalate?.(cause, failures);
        this.#onEnd({ actor: this.name, incarnation, reason: "failed", cause });
      },
    });
    await this.#supervisor.start();
  }

  async stop(options: StopOptions): Promise<void> {
    await this.#supervisor?.stop(options);
  }
}
