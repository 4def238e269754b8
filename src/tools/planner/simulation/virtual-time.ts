/** A planned event in virtual time. */
interface Event {
  readonly atS: number;
  /** Breaks ties in the order of planning, so that every run is the same. */
  readonly order: number;
  readonly happen: () => void;
}

/** Virtual time, in seconds, that jumps from one event to the next; a run is a function of what was planned. */
export class VirtualTime {
  #nowS = 0;
  #planned = 0;
  /** A binary heap, the next event first. */
  readonly #events: Event[] = [];

  get nowS(): number {
    return this.#nowS;
  }

  /** Plans `happen` for a moment, not before now. */
  at(atS: number, happen: () => void): void {
    const events = this.#events;
    let index = events.length;
    const event = { atS: Math.max(atS, this.#nowS), order: this.#planned++, happen };
    while (index > 0) {
      const parent = (index - 1) >> 1;
      if (!isBefore(event, events[parent] as Event)) break;
      events[index] = events[parent] as Event;
      index = parent;
    }
    events[index] = event;
  }

  /** Runs all planned events, including those planned meanwhile. @returns their number */
  run(): number {
    let count = 0;
    for (let event = this.#next(); event !== undefined; event = this.#next()) {
      this.#nowS = event.atS;
      event.happen();
      count += 1;
    }
    return count;
  }

  #next(): Event | undefined {
    const events = this.#events;
    const first = events[0];
    const last = events.pop();
    if (first === undefined || last === undefined || events.length === 0) return first;
    let index = 0;
    for (;;) {
      let child = 2 * index + 1;
      if (child >= events.length) break;
      if (child + 1 < events.length && isBefore(events[child + 1] as Event, events[child] as Event))
        child += 1;
      if (!isBefore(events[child] as Event, last)) break;
      events[index] = events[child] as Event;
      index = child;
    }
    events[index] = last;
    return first;
  }
}

const isBefore = (a: Event, b: Event): boolean => a.atS < b.atS || (a.atS === b.atS && a.order < b.order);
