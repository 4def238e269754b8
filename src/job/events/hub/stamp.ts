/**
 * Returns the time in integer milliseconds since 1970, for the stamps of events: the wall clock when the thread
 * started, plus a steady clock since then. So a change of the wall clock, by hand or by NTP, changes neither the order
 * of stamps nor durations between them.
 */
export function stampMs(): number {
  return Math.floor(performance.timeOrigin + performance.now());
}
