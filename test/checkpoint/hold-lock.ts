// Takes a storage, says so, and holds it until it is killed.
import { openStorage } from "../../src/library/checkpoint/index.ts";

const [location = ""] = process.argv.slice(2);
const storage = await openStorage(location);
const lock = await storage.lock("a run of job.ts");
console.log("held");
setInterval(() => void lock, 1000);
