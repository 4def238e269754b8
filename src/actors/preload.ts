import { loadNative, releaseRef, type TensorRef } from "../tensor/index.ts";

// Imported first on the main thread, which never lets go of it, and then in every actor's thread: were only workers to
// load the addon, Node would unload it with the last of them while native threads still run.
loadNative();

/** Gives up the tensors of a message that reached nobody: no one else will. */
export function onUndelivered(message: unknown): void {
  if (typeof message !== "object" || message === null) return;
  if (isTensorRef(message)) releaseRef(message);
  else for (const part of Object.values(message)) onUndelivered(part);
}

function isTensorRef(value: object): value is TensorRef {
  return (value as Partial<TensorRef>).kind === "tensor-ref";
}
