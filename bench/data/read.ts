// Reads all records of a source in the order of a seed, as the feeder does, and prints the seconds, those of processors, and the memory on the way.
import { readFileSync } from "node:fs";
import { setImmediate as turn } from "node:timers/promises";
import { openRecords } from "../../src/entries/data.ts";

const [source = "", cache = "", batch = "1500"] = process.argv.slice(2);
const records = await openRecords(source, { cacheDir: cache });
const megabytes: number[] = [];
const [begun, used] = [performance.now(), process.cpuUsage()];
const size = Number(batch);
for (let position = 0; position < records.length; position += size) {
  const length = Math.min(size, records.length - position);
  const indices = Array.from({ length }, (_, at) =>
    records.indexAt(position + at, { seed: 1, isShuffled: true }),
  );
  await Promise.all(indices.map(async (index) => records.at(index)));
  await turn(); // a feeder waits for the next request
  if (Math.floor((10 * (position + length)) / records.length) > megabytes.length) megabytes.push(memory());
}
const { user, system } = process.cpuUsage(used);
const seconds = (performance.now() - begun) / 1_000;
console.log(JSON.stringify({ seconds, processor: (user + system) / 1e6, megabytes }));

function memory(): number {
  return Number(/^VmRSS:\s+(\d+) kB$/m.exec(readFileSync("/proc/self/status", "utf8"))?.[1] ?? 0) / 1_000;
}
