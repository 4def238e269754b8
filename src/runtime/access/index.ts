/** Access to the ports that Troupe opens: limits of callers, checks of requests, and tokens. */
export { Callers, callerLimits } from "./callers.ts";
export { Gate, type GateOptions, inUrl, isLoopback, type Refusal } from "./gate.ts";
export { keepToken, makeToken, sameToken } from "./token.ts";
