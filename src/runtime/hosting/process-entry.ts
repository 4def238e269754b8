import "../relative-imports.ts";
import type { ProcessStart } from "./process-orders.ts";

const { loadPreload } = await import("../actor/preload.ts");
const { orphanSignal } = await import("./orphan.ts");
const { ProcessHost } = await import("./process-host.ts");
const { startVariable } = await import("./process-orders.ts");

// Main thread of a process for actors. It never computes: it carries bytes, and starts and ends threads.
const start = JSON.parse(process.env[startVariable] ?? "{}") as ProcessStart;
// Processes that this one starts must not inherit its secret.
delete process.env[startVariable];
// Terminals and schedulers send these to all processes; the first process decides what to do. A handled SIGUSR1 opens no
// inspector either, as it would in Node by default.
for (const signal of ["SIGINT", "SIGTERM", "SIGHUP", "SIGUSR1"]) process.on(signal, () => {});
const preload = await loadPreload(start.preloadUrl);
await ProcessHost.open(start, preload.processes);
// From here on the socket shows that the system has ended, and the process cleans up.
process.on(orphanSignal, () => {});
