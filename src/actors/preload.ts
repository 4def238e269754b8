import { loadNative } from "../tensor/index.ts";

// Imported first on the main thread, which never lets go of it, and then in every actor's thread: were only workers to
// load the addon, Node would unload it with the last of them while native threads still run.
loadNative();
