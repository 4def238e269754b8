import type * as z from "zod";
import { type Given, Layers } from "./layers.ts";
import type { RuntimeOptions } from "./options.generated.ts";
import { read, readRuntime } from "./read.ts";
import { commandSchema } from "./schema.ts";

/** The options of a command line, its file and its environment together. */
export interface CommandOptions {
  /** Only the options that were given, without defaults: the argument of `Runtime.spawn`. */
  readonly runtime: RuntimeOptions;
  readonly output: z.output<typeof commandSchema>["output"];
  /** Settings of the job. */
  readonly set: Readonly<Record<string, string | number | boolean>>;
  readonly layers: Layers;
}

/**
 * Merges options from several sources, the weakest first, and reads them.
 * @throws {TroupeError} `OPTION` naming the option, the expected and given value, and the source
 */
export function readCommand(given: Iterable<Given>): CommandOptions {
  const layers = new Layers(given);
  const by = (path: readonly string[]) => layers.sourceOf(path)?.by ?? "";
  const { output, set } = read(commandSchema, layers.values, by);
  // A trace file needs the events of tracing.
  if (output.traceFile !== undefined && layers.sourceOf(["trace"]) === undefined)
    layers.lay({ path: ["trace"], value: true, origin: "default", by: "" });
  const { output: _output, set: _set, ...runtime } = layers.values;
  readRuntime(runtime, by);
  return { runtime, output, set, layers };
}
