/**
 * Modules for the `preload` of a system of one's own, whose actors live in processes or send tensors. `runtime.actors` has the one
 * that it needs.
 */
export const preloads = {
  /** For processes of one host, which share memory. */
  oneHost: new URL("./one-host.ts", import.meta.url),
  /** For several hosts, the processes of each of which share memory. */
  severalHosts: new URL("./several-hosts.ts", import.meta.url),
  /** For processes that share no memory: tensors cross as bytes. */
  apart: new URL("./apart.ts", import.meta.url),
} as const;
