import { Chance } from "../chance.ts";
import { fuzzFiles, tableOf } from "../files/files.ts";
import { readers } from "../files/readers.ts";
import { type ChaosOptions, say } from "./report.ts";

/** Hostile files of every kind that is read: each is taken or refused within a second and 200 MB. */
export async function reportFiles({
  workspace,
  seed,
  numFiles,
  target,
  isVerbose,
}: ChaosOptions): Promise<boolean> {
  const kinds = Object.keys(readers).filter((kind) => kind.includes(target));
  const filesOfKind = Math.ceil(numFiles / Math.max(1, kinds.length));
  const reports = await fuzzFiles(workspace.path("files"), { kinds, filesOfKind, chance: new Chance(seed) });
  say(tableOf(reports));
  const findings = reports.flatMap(({ kind, findings: found }) =>
    found.map((finding) => `${kind}: ${finding}`),
  );
  for (const finding of findings) say(`    ${isVerbose ? finding : finding.slice(0, 1_000)}`);
  say(
    `files: ${reports.reduce((sum, { numFiles: count }) => sum + count, 0)} hostile files of seed ${seed}, ${findings.length} findings`,
  );
  return findings.length === 0;
}
