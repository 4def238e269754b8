/**
 * What time it is, in whole milliseconds since 1970, for the stamps of events: read off the wall when the thread began, and
 * counted from there by the steady clock. Setting the wall clock, by hand or by NTP, so changes no order and no duration
 * that is taken as the difference of two stamps.
 */
export function stampMs(): number {
  return Math.floor(performance.timeOrigin + performance.now());
}
