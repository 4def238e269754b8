import { moveThreadsToProcesses } from "./start-system.ts";

// The promises of docs/internals/delivery.md once more, word for word, kept by actors in processes of their own.
moveThreadsToProcesses();

await import("./contract.ts");
