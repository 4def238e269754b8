import { lossesOf } from "../../fixtures/run-tiny.ts";
import { STEPS, tryWeather, weathers } from "../weather/weather.ts";
import { type ChaosOptions, say } from "./report.ts";

/** Disturbances of a complete run: a clock that is set, a link that loses and doubles frames, no descriptors. */
export async function reportWeather({ workspace, placements }: ChaosOptions): Promise<boolean> {
  const undisturbed = await lossesOf(workspace, { ranks: 2, zero: 3, steps: STEPS });
  let allHold = true;
  for (const weather of weathers.filter(({ placement }) => placements.includes(placement))) {
    const { outcome, code, wrong } = await tryWeather(workspace, undisturbed, weather);
    const error = code === undefined ? "" : ` (${code})`;
    say(`weather: ${weather.title}, a ${weather.placement} for each rank: ${outcome}${error}`);
    for (const each of wrong) say(`    ${each}`);
    allHold &&= outcome !== "FAILS";
  }
  return allHold;
}
