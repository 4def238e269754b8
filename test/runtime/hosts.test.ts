import { moveThreadsToHosts } from "./start-system.ts";

// The promises of docs/concepts/delivery.md once more, word for word, kept by actors in processes that reach each other over TCP.
moveThreadsToHosts();

await import("./delivery.test.ts");
await import("./lanes.test.ts");
await import("./ask.test.ts");
await import("./watch.test.ts");
await import("./blocking.test.ts");
await import("./dead-letters.test.ts");
await import("./inspect.test.ts");
await import("./tracing.test.ts");
await import("./start.test.ts");
await import("./stop.test.ts");
await import("./ownership.test.ts");
await import("./failure.test.ts");
