import { spawnSync } from "node:child_process";
import { rmSync } from "node:fs";
import { join } from "node:path";
import { StagedRecords } from "../../src/compute/offload/index.ts";
import { timed } from "../measure/timed.ts";

const MIB = 2 ** 20;
const RECORD_MIB = 32;

/** Records through staging beside `dd`, one stream of 1 MiB past the page cache, over as many bytes in the same minute. */
export async function reportDisk(directory: string, sizeMib: number): Promise<void> {
  const numRecords = Math.max(4, Math.round(sizeMib / RECORD_MIB));
  const numels = Array.from({ length: numRecords }, () => (RECORD_MIB * MIB) / 4);
  const totalBytes = numRecords * RECORD_MIB * MIB;
  const records = new StagedRecords(directory, numels);
  const all = (work: (record: number) => Promise<unknown>) =>
    Promise.all(numels.map((_, record) => work(record)));
  const idle = async () => {};
  const raw = { write: dd(directory, "write", totalBytes), read: dd(directory, "read", totalBytes) };
  rmSync(peerFile(directory));
  // The first write of a reserved place costs the file system more than every later one.
  await all((record) => records.use(record, idle, { fresh: true }));
  await records.written();
  const written = await timed(async () => {
    await all((record) => records.use(record, idle, { fresh: true }));
    await records.written();
  });
  const read = await timed(() => all((record) => records.use(record, idle, { readOnly: true })));
  const both = await timed(async () => {
    await all((record) => records.use(record, idle));
    await records.written();
  });
  records.dispose();
  const rate = (ms: number, bytes = totalBytes) => bytes / MIB / (ms / 1000);
  const line = (what: string, ours: number, peer: number) =>
    console.log(
      `${what.padEnd(26)} ${ours.toFixed(0).padStart(6)} MiB/s, dd ${peer.toFixed(0)}: ${(ours / peer).toFixed(2)} x`,
    );
  console.log(`disk: ${totalBytes / MIB} MiB in records of ${RECORD_MIB} MiB, direct: ${records.direct}`);
  line("write", rate(written), raw.write);
  line("read", rate(read), raw.read);
  // One after the other, so many bytes a second go through when as many are read as written.
  line("update (read and write)", rate(both, 2 * totalBytes), 2 / (1 / raw.read + 1 / raw.write));
}

const peerFile = (directory: string) => join(directory, ".bench-dd");

/** @returns MiB a second */
function dd(directory: string, direction: "read" | "write", totalBytes: number): number {
  const file = peerFile(directory);
  const write = ["if=/dev/zero", `of=${file}`, "oflag=direct"];
  const read = [`if=${file}`, "of=/dev/null", "iflag=direct"];
  const args = [...(direction === "write" ? write : read), "bs=1M", `count=${totalBytes / MIB}`];
  const begin = performance.now();
  const { status, stderr } = spawnSync("dd", args, { encoding: "utf8" });
  if (status !== 0) throw new Error(`[bench offload] expected dd to ${direction} ${file}: ${stderr}`);
  return totalBytes / MIB / ((performance.now() - begin) / 1000);
}
