import type { TroupeEvent } from "../events/index.ts";
import type { ActorPart } from "./frame.ts";

const maxActors = 4096;

const states = { "actor.started": "started", "actor.failed": "failed", "actor.stopped": "stopped" } as const;

/** What became of each actor, by the events. */
export class ActorRoll {
  readonly #actors = new Map<string, ActorPart>();

  /** @returns whether it changed anything */
  take(event: TroupeEvent): boolean {
    switch (event.kind) {
      case "actor.started":
      case "actor.failed":
      case "actor.stopped": {
        const { kind, actor, role, incarnation, timeMs } = event;
        if (this.#actors.size >= maxActors && !this.#actors.has(actor)) return false;
        this.#actors.set(actor, { actor, role, incarnation, state: states[kind], sinceMs: timeMs });
        return true;
      }
      default:
        return false;
    }
  }

  part(): readonly ActorPart[] {
    return [...this.#actors.values()];
  }

  clear(): void {
    this.#actors.clear();
  }
}
