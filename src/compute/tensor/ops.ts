export * from "./ops.generated.ts";
/** Troupe's own kernels. */
export * as troupe from "./troupe.generated.ts";
