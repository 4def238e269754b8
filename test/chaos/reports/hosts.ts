import { whyNoNamespaces } from "../../launch/namespaces.ts";
import { Chance } from "../chance.ts";
import { strikeHosts } from "../hosts.ts";
import { type ChaosOptions, say } from "./report.ts";

/** Runs over two hosts, which are network namespaces: programs and ranks killed or stopped, the link cut. */
export async function reportHosts({ workspace, seed, numFaults }: ChaosOptions): Promise<boolean> {
  const reason = whyNoNamespaces();
  if (reason !== undefined) {
    say(`hosts: SKIPPED, no hosts can be made here: ${reason}`);
    return true;
  }
  const begin = performance.now();
  const report = await strikeHosts(workspace, {
    numFaults,
    chance: new Chance(seed),
    onFault: (line) => say(`  ${line}`),
  });
  const minutes = ((performance.now() - begin) / 60_000).toFixed(1);
  say(`hosts: ${numFaults} faults in ${report.numRuns} runs over two hosts, in ${minutes} min`);
  say(`  ${report.numRestored} groups went on from their last good state, ${report.numSaved} saves reported`);
  say(`  ${report.wrong.length} hangs, saves lost, losses other, and things left`);
  for (const each of report.wrong) say(`    ${each}`);
  return report.wrong.length === 0;
}
