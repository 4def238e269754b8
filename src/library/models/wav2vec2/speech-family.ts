import type { NamedState } from "../weights.ts";
import type { SpeechConfig } from "./config.ts";
import type { Positions } from "./encoder.ts";

/** A family of speech models: how its files name it, and how it tells frames where they stand. */
export interface SpeechFamily<Config extends SpeechConfig> {
  /** The name of the stack in a model with a head: `wav2vec2`. */
  readonly prefix: string;
  /** @throws {TroupeError} `MODEL_CONFIG` */
  configOf(fields: Readonly<Record<string, unknown>>): Config;
  positions(config: Config): Positions;
  /** @param architecture - the class, as the file names it */
  configJson(config: Config, architecture: string): NamedState["configJson"];
}
