import {
  type ExportedTensor,
  enterSharedFolder,
  exportRef,
  forkSupport,
  importRef,
  leaveSharedFolder,
  loadNative,
  mapShared,
  releaseRef,
  releaseRefsOf,
  streamOrder,
  type TensorRef,
} from "../../compute/tensor/index.ts";
import type { MessageOrder, ProcessSupport } from "../../runtime/index.ts";
import { recipientName } from "../protocols/index.ts";

// Imported first on the main thread, which never unloads it, and then in every actor's thread: if only workers loaded the
// addon, Node would unload it with the last of them while native threads still run.
loadNative();

/** Disposes the tensors of a message that reached no actor: nothing else would. */
export function onUndelivered(message: unknown): void {
  if (typeof message !== "object" || message === null) return;
  if (isTensorRef(message)) releaseRef(message);
  else for (const part of Object.values(message)) onUndelivered(part);
}

/** Device work is ordered as the messages between its senders. */
export const order: MessageOrder = streamOrder;

/** Process support for actors in processes of their own: shared memory, and tensors that move between processes. */
export const processes = {
  mapFile: mapShared,
  forks: forkSupport,
  enter: enterSharedFolder,
  leave: leaveSharedFolder,
  ipcCodec: {
    accepts: isTensorRef,
    encode: (record) => exportRef(record as unknown as TensorRef),
    decode: (data) => importRef(data as ExportedTensor),
  },
  onActorEnded: (address) => void releaseRefsOf(recipientName(address)),
} satisfies ProcessSupport;

/** Whether a piece of plain data names a tensor of its process. */
export function isTensorRef(value: object): value is TensorRef {
  return (value as Partial<TensorRef>).kind === "tensor-ref";
}
