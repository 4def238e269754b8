// Loaded first into every thread: the wall clock is set back and forth by an hour, again and again.
const HOUR_MS = 3_600_000;
const PERIOD_MS = 50;

const Steady = globalThis.Date;
const now = (): number =>
  Steady.now() + (Math.floor(performance.now() / PERIOD_MS) % 2 === 0 ? HOUR_MS : -HOUR_MS);

class JumpingDate extends Steady {
  constructor(...args: [] | [value: number | string | Date]) {
    super(...((args.length === 0 ? [now()] : args) as [number]));
  }

  static override now(): number {
    return now();
  }
}

globalThis.Date = JumpingDate as DateConstructor;
