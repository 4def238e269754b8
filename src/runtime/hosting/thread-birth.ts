import type { ModuleTexts } from "../module-texts.ts";

/** The data that an actor's thread starts with. Plain data. */
export interface ThreadBirth {
  /** Imported in this order. */
  readonly moduleUrls: readonly string[];
  /** Modules that it loads from here, whatever has become of their files. */
  readonly modules: ModuleTexts | undefined;
}
