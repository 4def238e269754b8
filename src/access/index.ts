/** Who may come in by a port that this program opens: the gate of an HTTP server, and the token it asks for. */
export { Gate, type GateOptions, inUrl, isLoopback, type Refusal } from "./gate.ts";
export { keepToken, makeToken, sameToken } from "./token.ts";
export { boundUnauthenticated, callerLimits } from "./unauthenticated.ts";
