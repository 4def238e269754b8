/** Callers of the ports that this program opens: how many may wait, which are let in, and the token that they are asked for. */
export { Callers, callerLimits } from "./callers.ts";
export { Gate, type GateOptions, inUrl, type Refusal } from "./gate.ts";
export { keepToken, makeToken, sameToken } from "./token.ts";
