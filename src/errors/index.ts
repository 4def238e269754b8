/**
 * Errors of one clear sentence: the table of codes, the nearest name, the user's own line, and the user's function that is
 * running.
 */
export { addDefinition } from "./definition.ts";
export { describeValue } from "./describe-value.ts";
export { FRAMES_KEPT, framesOf, ownFrames, ownStack, type StackFrame, sourceLine } from "./frames.ts";
export { nearestPath, whichPathWasMeant } from "./nearest-path.ts";
export { type ErrorOrigin, noteOrigin, originOf } from "./origin.ts";
export {
  type ErrorCode,
  type ErrorDetail,
  type ErrorSentence,
  errorTable,
  fileFailure,
  type NamesOf,
  nearestName,
  type RelayedSentence,
  TroupeError,
  unknownNames,
  whatWasMeant,
} from "./troupe-error.ts";
export { callUser, type ShowUserCall, showUserCalls, type UserCall } from "./user-call.ts";
