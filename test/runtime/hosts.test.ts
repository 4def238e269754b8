import { moveThreadsToHosts } from "./start-system.ts";

// The promises of docs/internals/delivery.md once more, word for word, kept by actors in processes that reach each other over TCP.
moveThreadsToHosts();

await import("./contract.ts");
