/**
 * Errors of one clear sentence: the table of codes, the nearest name, the user's own line, and the user's function that is
 * running.
 */
export { addDefinition } from "./definition.ts";
export { FRAMES_KEPT, framesOf, ownFrames, ownStack, type StackFrame, sourceLine } from "./frames.ts";
export { nearestPath, whichPathWasMeant } from "./nearest-path.ts";
export * from "./troupe-error.ts";
export * from "./user-call.ts";
