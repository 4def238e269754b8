import type { ModuleTexts } from "../../module-texts.ts";

/** What an actor's thread is started with. Plain data. */
export interface ThreadBirth {
  /** Imported in this order. */
  readonly moduleUrls: readonly string[];
  /** Modules that it loads from here, whatever has become of their files. */
  readonly modules: ModuleTexts | undefined;
}
