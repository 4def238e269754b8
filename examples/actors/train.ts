// A run whose loop asks a judge of the script's, by name; another actor hears of each step.
import { Runtime } from "troupe";
import type { Judge } from "./judge.ts";
import type { Recorder } from "./recorder.ts";

await using runtime = await Runtime.spawn({ ranks: 2 });
const place = (name: string) => ({ name, module: new URL(`./${name}.ts`, import.meta.url) });
await runtime.actors.spawn<Judge>(place("judge"));
const recorder = await runtime.actors.spawn<Recorder>(place("recorder"));
runtime.tellEvents(recorder, "stepped", { kinds: ["step.finished"] });
const { steps } = await runtime.run(new URL("./loop.ts", import.meta.url));
const { numSteps, marks } = await recorder.ask("report", null, { deadlineMs: 10_000 });
console.log(`${steps} steps, ${numSteps} heard of, marks ${marks.join(" ")}`);
