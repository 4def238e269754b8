import type { Fingerprint } from "../../../library/data/index.ts";
import type { ModuleTexts } from "../../../runtime/module-texts.ts";
import type { BegunData, OpenedData } from "../../protocols/index.ts";

/** Data that was opened, and its fingerprint. */
export interface RunData {
  readonly opened: OpenedData;
  /** May take longer than the first steps; rejects where the dataset's fingerprint fails. */
  readonly fingerprint: Promise<Fingerprint>;
  /** Returns what is known so far of the data as it was opened. */
  begun(): BegunData;
  /** The user's modules as they were loaded. */
  readonly modules: ModuleTexts;
}
