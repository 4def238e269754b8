import { TroupeError } from "../../errors/index.ts";
import { native } from "./native.ts";

/** Where a tensor's memory is and what computes with it: the host, or one device of a kind by its number. */
export type Device = "cpu" | `cuda:${number}` | `sim:${number}`;

/** Kinds of devices, the host aside. */
export const DEVICE_KINDS = ["cuda", "sim"] as const;
export type DeviceKind = (typeof DEVICE_KINDS)[number];

const NAMED = new RegExp(`^(?:${DEVICE_KINDS.join("|")})(?::\\d{1,3})?$`);

/** @returns whether a text names a device, whatever this machine has: `cpu`, `cuda:1`, or `cuda`, which is `cuda:0` */
function namesDevice(text: string): boolean {
  return text === "cpu" || NAMED.test(text);
}

/**
 * Reads the name of a device, with its number where that is left out.
 * @throws {TroupeError} `DEVICE_UNAVAILABLE` for what names none
 */
export function parseDevice(text: string): Device {
  if (!namesDevice(text))
    throw new TroupeError(
      "DEVICE_UNAVAILABLE",
      { where: "device", expected: "cpu, cuda, cuda:N or sim:N", got: JSON.stringify(text) },
      { fields: { device: text } },
    );
  return (text === "cpu" || text.includes(":") ? text : `${text}:0`) as Device;
}

/** How many devices of a kind this process may use; 0 where the addon knows none of it. */
export function deviceCount(kind: DeviceKind): number {
  return native().deviceCount(kind);
}

const numbers = new Map<string, number>();

/** The addon's number of a device. @throws {TroupeError} `DEVICE_UNAVAILABLE` where this process has no such device */
export function deviceNumber(device: Device): number {
  let number = numbers.get(device);
  if (number === undefined) {
    number = native().deviceNumber(device);
    numbers.set(device, number);
  }
  return number;
}

/** @throws {TroupeError} `DEVICE_UNAVAILABLE` where this process has no such device */
export function requireDevice(device: Device): void {
  deviceNumber(device);
}

/**
 * Runs `body`, in which new tensors of this thread are made on a device; inside an engine whose thread computes on a GPU,
 * `"cpu"` is for values that are read at once or go to files.
 * @param device - undefined: wherever they are made now
 * @throws {TroupeError} `DEVICE_UNAVAILABLE`
 */
export function onDevice<T>(device: Device | undefined, body: () => T): T {
  if (device === undefined) return body();
  const before = native().setDefaultDevice(deviceNumber(device));
  try {
    return body();
  } finally {
    native().setDefaultDevice(before);
  }
}

/**
 * Has this thread compute on a device for the rest of its life, in a stream of its own: new tensors are made there.
 * @throws {TroupeError} `DEVICE_UNAVAILABLE`
 */
export function enterDevice(device: Device): void {
  native().enterDevice(deviceNumber(device));
  hasStream ||= device !== "cpu";
}

/** Whether this thread gives work to a device's stream, or has followed one that does. */
let hasStream = false;

/**
 * What goes with the messages of threads: the place at which the sender's stream is, behind which the receiver's goes on. So
 * what happened before a message was sent has happened for who acts on it, on a device too. A thread of the host alone says 0.
 */
export const streamOrder = {
  said: (): number => (hasStream ? native().sayPlace() : 0),
  heard(place: number): void {
    hasStream = true;
    native().followPlace(place);
  },
};
