import { describeEvent, type TroupeEvent } from "../events/index.ts";
import type { Incident } from "./frame.ts";

const maxIncidents = 100;

/** What a person should know of a run, in words: the latest of it. */
export class IncidentLog {
  #incidents: Incident[] = [];
  #numRestarted = 0;

  /**
   * @param step - steps done so far
   * @returns whether it changed anything
   */
  take(event: TroupeEvent, step: number): boolean {
    if (event.kind === "actor.restarted") return this.#restarted(event.timeMs, step);
    const incident = describe(event);
    if (incident === undefined) return false;
    this.#numRestarted = 0;
    const latest = this.#incidents.at(-1);
    if (latest?.text === incident.text) this.#replaceLatest({ ...latest, count: latest.count + 1 });
    else
      this.#add({
        timeMs: event.timeMs,
        step: event.kind === "anomaly.detected" ? event.step : step,
        ...incident,
        count: 1,
        restart: event.kind === "run.restored",
      });
    return true;
  }

  part(): readonly Incident[] {
    return this.#incidents;
  }

  clear(): void {
    this.#incidents = [];
    this.#numRestarted = 0;
  }

  /** A group is started again actor by actor: that is one thing that happened. */
  #restarted(timeMs: number, step: number): boolean {
    const count = ++this.#numRestarted;
    const text = count === 1 ? "1 actor started again" : `${count} actors started again`;
    const incident: Incident = { timeMs, step, tone: "plain", text, count: 1, restart: false };
    if (count === 1) this.#add(incident);
    else this.#replaceLatest(incident);
    return true;
  }

  #add(incident: Incident): void {
    this.#incidents = [...this.#incidents, incident].slice(-maxIncidents);
  }

  #replaceLatest(incident: Incident): void {
    this.#incidents = [...this.#incidents.slice(0, -1), incident];
  }
}

/** In the console's words; what has a place of its own on the page is left out here. */
function describe(event: TroupeEvent): Pick<Incident, "text" | "tone"> | undefined {
  switch (event.kind) {
    case "step.finished":
      return event.skipped
        ? { text: "update left out: the gradient was not finite", tone: "plain" }
        : undefined;
    case "checkpoint.saved":
    case "evaluation.finished":
    case "run.finished":
    case "run.started":
    case "text.generated":
      return undefined;
    default:
      return describeEvent(event, { consequences: true });
  }
}
