import type * as z from "zod";
import { type Given, Layers } from "./layers.ts";
import type { RuntimeOptions } from "./options.generated.ts";
import { read, readRuntime } from "./read.ts";
import { commandSchema } from "./schema.ts";

/** What a command line, its file and its environment amount to. */
export interface CommandOptions {
  /** As they were given, without what stands for the rest: what `Runtime.spawn` takes. */
  readonly runtime: RuntimeOptions;
  readonly output: z.output<typeof commandSchema>["output"];
  /** Settings of the job, as texts or values. */
  readonly set: Readonly<Record<string, string | number | boolean>>;
  readonly layers: Layers;
}

/**
 * Lays options over one another and reads what they amount to.
 * @param given - the weakest source first
 * @throws {TroupeError} `OPTION` naming the option, what it must be, what it is and who gave it
 */
export function readCommand(given: Iterable<Given>): CommandOptions {
  const layers = new Layers(given);
  const by = (path: readonly string[]) => layers.sourceOf(path)?.by ?? "";
  const { output, set } = read(commandSchema, layers.values, by);
  // A run that writes a trace has something to write in it.
  if (output.traceFile !== undefined && layers.sourceOf(["trace"]) === undefined) {
    layers.lay({ path: ["trace"], value: true, origin: "default", by: "" });
  }
  const { output: _output, set: _set, ...runtime } = layers.values;
  readRuntime(runtime, by);
  return { runtime, output, set, layers };
}
