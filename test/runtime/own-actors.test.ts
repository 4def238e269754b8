import { moveToOwnFiles } from "./start-system.ts";

// The promises of docs/internals/delivery.md once more, word for word, kept by actors of files that import `troupe/actors` as a user's
// do, in the system that a runtime's training lives in.
moveToOwnFiles();

await import("./contract.ts");
