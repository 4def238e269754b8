import "../relative-imports.ts";
import type { ProcessBirth } from "./process-orders.ts";

const { loadPreload } = await import("../actor/preload.ts");
const { orphanSignal } = await import("./orphan.ts");
const { ProcessHost } = await import("./process-host.ts");
const { birthVariable } = await import("./process-orders.ts");

// Main thread of a process for actors. It never computes: it carries bytes, and starts and ends threads.
const birth = JSON.parse(process.env[birthVariable] ?? "{}") as ProcessBirth;
// Processes that this one starts must not inherit its secret.
delete process.env[birthVariable];
// Terminals and schedulers send these to all processes; the first process decides what to do. A handled SIGUSR1 opens no
// inspector either, as it would in Node by default.
for (const signal of ["SIGINT", "SIGTERM", "SIGHUP", "SIGUSR1"]) process.on(signal, () => {});
const preload = await loadPreload(birth.preloadUrl);
await ProcessHost.open(birth, preload.processes);
// From here on the socket shows that the system has ended, and the process cleans up.
process.on(orphanSignal, () => {});
