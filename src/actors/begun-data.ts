import { changedFiles, type Dataset, dataChanged, type Fingerprint } from "../library/data/index.ts";
import type { BegunData } from "./protocols/index.ts";

/**
 * Compares data that is opened again with the data that the run began with: its description, and the files that were read. A
 * file that was written again with the same bytes counts as the same if the fingerprint covers its bytes.
 * @param fingerprintOf - the fingerprint of the data that is open now; a slow one is called only if the files leave a doubt
 * @returns `later`, if only a slow fingerprint is left to compare: rejects with the same error
 * @throws {TroupeError} `DATA_CHANGED`, with the name of the file if one is known
 */
export async function checkBegun(
  { facts, splits, fingerprint }: Dataset,
  fingerprintOf: () => Fingerprint | Promise<Fingerprint>,
  begun: BegunData,
): Promise<{ readonly later?: Promise<void> }> {
  const changed = changedFiles(begun.files);
  const what = nameOf(changed) ?? facts.source;
  for (const [name, was, is] of [
    ["tokenizer", begun.facts.tokenizer, facts.tokenizer],
    ["sizes of the splits", begun.splits, splits],
  ] as const)
    if (JSON.stringify(was) !== JSON.stringify(is)) throw dataChanged(what, `other data: the ${name} differ`);
  const compare = (present: Fingerprint) => {
    const other = otherField(begun.fingerprint, present);
    if (other !== undefined) throw dataChanged(what, `other data: ${other}`);
  };
  if (begun.isSlow && changed.length === 0)
    return Object.keys(begun.files).length > 0
      ? {}
      : { later: Promise.resolve(fingerprintOf()).then(compare) };
  compare(await fingerprintOf());
  const isKnown = fingerprint !== undefined && begun.fingerprint !== undefined;
  const untold = changed.filter((path) => !isKnown || begun.files[path]?.isHashed !== true);
  const name = nameOf(untold);
  if (name !== undefined) throw dataChanged(name, "another file, or other bytes");
  return {};
}

function otherField(was: Fingerprint | undefined, is: Fingerprint): string | undefined {
  if (was === undefined) return undefined;
  const name = Object.keys({ ...was, ...is }).find((each) => was[each] !== is[each]);
  return name === undefined ? undefined : `its ${name} was ${word(was[name])}, is ${word(is[name])}`;
}

function word(value: Fingerprint[string] | undefined): string {
  return typeof value === "string" ? value.slice(0, 12) : `${value ?? "missing"}`;
}

function nameOf([first, ...others]: readonly string[]): string | undefined {
  if (first === undefined || others.length === 0) return first;
  return `${first} (and ${others.length} more files)`;
}
