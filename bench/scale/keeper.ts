// Keeps a store of c10d, as a host's first shard does, and says what the first one of a process costs it: processor time, in seconds.
// Started by bench/scale.ts.
import { keepStore, setHostAddress } from "../../src/compute/collectives/index.ts";

setHostAddress("127.0.0.1");
const before = process.cpuUsage();
using _kept = keepStore();
const { user, system } = process.cpuUsage(before);
process.send?.((user + system) / 1e6);
