// Serves the files of a folder, which its argument names, by ranges, and prints its address.
import { startRanges } from "../../test/fixtures/records/range-server.ts";

const server = await startRanges(process.argv[2] ?? ".");
console.log(server.origin);
