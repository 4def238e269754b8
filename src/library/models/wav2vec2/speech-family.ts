import type { NamedState } from "../weights.ts";
import type { SpeechConfig } from "./config.ts";
import type { Positions } from "./encoder.ts";

/** A family of speech models: its names in files, and its positions of frames. */
export interface SpeechFamily<Config extends SpeechConfig> {
  /** Name of the stack in a model with a head: `wav2vec2`. */
  readonly prefix: string;
  /** @throws {TroupeError} `MODEL_CONFIG` */
  configOf(fields: Readonly<Record<string, unknown>>): Config;
  positions(config: Config): Positions;
  /** @param architecture - name of the class in config.json */
  configJson(config: Config, architecture: string): NamedState["configJson"];
}
