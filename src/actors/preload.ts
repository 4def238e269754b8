import {
  type ExportedTensor,
  enterSharedFolder,
  exportRef,
  importRef,
  leaveSharedFolder,
  loadNative,
  mapShared,
  releaseRef,
  releaseRefsOf,
  streamOrder,
  type TensorRef,
} from "../compute/tensor/index.ts";
import type { MessageOrder, ProcessSupport } from "../runtime/index.ts";
import { recipientName } from "./protocols/index.ts";

// Imported first on the main thread, which never lets go of it, and then in every actor's thread: were only workers to
// load the addon, Node would unload it with the last of them while native threads still run.
loadNative();

/** Gives up the tensors of a message that reached nobody: no one else will. */
export function onUndelivered(message: unknown): void {
  if (typeof message !== "object" || message === null) return;
  if (isTensorRef(message)) releaseRef(message);
  else for (const part of Object.values(message)) onUndelivered(part);
}

/** Work of devices is in the order of the messages between who gives it. */
export const order: MessageOrder = streamOrder;

/** What actors need to live in processes of their own: memory that these share, and tensors that go from one to another. */
export const processes = {
  mapFile: mapShared,
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
