import { readFileSync, renameSync, rmSync, writeFileSync } from "node:fs";
import type { Chance } from "./chance.ts";

/** Strikes of the files that a run began with, by an editor. */
export const editStrikes = ["job edited", "data edited"] as const;
export type EditStrike = (typeof editStrikes)[number];

/** Whether a strike hits a file of the run's, and not its program. */
export function isOfFiles(strike: string): strike is EditStrike {
  return (editStrikes as readonly string[]).includes(strike);
}

/** A job and a text of a run's own, which are edited while it runs, and put back. */
export class EditedFiles {
  readonly job: string;
  readonly text: string;
  readonly #bytes: Buffer;

  /** @param path - beginning of the files' names @param text - the text that is copied */
  constructor(path: string, text: string) {
    this.job = `${path}-job.ts`;
    this.text = `${path}-text.txt`;
    this.#bytes = readFileSync(text);
    this.restore();
  }

  /** Edits one of them. @returns its path */
  strike(strike: EditStrike, chance: Chance): string {
    if (strike === "job edited") {
      editJob(this.job, chance);
      return this.job;
    }
    const kind = chance.pick(["other letters", "longer", "removed"]);
    if (kind === "removed") rmSync(this.text);
    else if (kind === "longer") writeFileSync(this.text, this.#bytes, { flag: "a" });
    // As editors save: a new file under the old name.
    else {
      writeFileSync(
        `${this.text}.new`,
        this.#bytes.map((byte) => (byte === 0x20 ? 0x5f : byte)),
      );
      renameSync(`${this.text}.new`, this.text);
    }
    return this.text;
  }

  restore(): void {
    writeJob(this.job);
    writeFileSync(this.text, this.#bytes);
  }
}

const struck = JSON.stringify(new URL("../fixtures/jobs/struck.ts", import.meta.url).href);

/** Writes a job that is the job `struck`. */
export function writeJob(path: string): void {
  writeFileSync(path, `export { default } from ${struck};\n`);
}

/** Makes a job train something else, breaks it, or removes it. */
export function editJob(job: string, chance: Chance): void {
  const edit = chance.pick(["twice the loss", "broken", "removed"]);
  if (edit === "removed") rmSync(job, { force: true });
  else writeFileSync(job, edit === "broken" ? "export default {{{" : twiceTheLoss);
}

/** A job that trains something else, were a run to load it. */
const twiceTheLoss = `import struck from ${struck};
export default { ...struck, loss: (...given) => struck.loss(...given).mul(2) };
`;
