import type { ModuleTexts } from "../module-texts.ts";

/** The data that an actor's thread starts with. Plain data. */
export interface ThreadStart {
  /** Imported in this order. */
  readonly moduleUrls: readonly string[];
  /** Sources of modules that it loads instead of their files, which may have changed. */
  readonly modules: ModuleTexts | undefined;
}
