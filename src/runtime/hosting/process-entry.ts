import "../relative-imports.ts";
import type { ProcessBirth } from "./process-orders.ts";

const { loadPreload } = await import("../actor/preload.ts");
const { orphanSignal } = await import("./orphan.ts");
const { ProcessHost } = await import("./process-host.ts");
const { birthVariable } = await import("./process-orders.ts");

// What the main thread of an actor's process runs. It never computes: bytes, births and deaths of threads are its business.
const birth = JSON.parse(process.env[birthVariable] ?? "{}") as ProcessBirth;
// Nobody whom this process starts is to call in its name.
delete process.env[birthVariable];
// Terminals and schedulers send them to everyone; what becomes of them is the first process's decision. One that is listened to
// opens no inspector either, as Node does at SIGUSR1.
for (const signal of ["SIGINT", "SIGTERM", "SIGHUP", "SIGUSR1"]) process.on(signal, () => {});
const preload = await loadPreload(birth.preloadUrl);
await ProcessHost.open(birth, preload.processes);
// From here on it hears by its socket that its system is gone, and clears up.
process.on(orphanSignal, () => {});
