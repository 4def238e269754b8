import { TroupeError } from "../../errors/index.ts";
import { native } from "./native.ts";

/** The device of a tensor: the host, or one device of a kind by its number. */
export type Device = "cpu" | `cuda:${number}` | `sim:${number}`;

/** Kinds of devices other than the host. */
export const DEVICE_KINDS = ["cuda", "sim"] as const;
export type DeviceKind = (typeof DEVICE_KINDS)[number];

const NAMED = new RegExp(`^(?:${DEVICE_KINDS.join("|")})(?::\\d{1,3})?$`);

/** Whether a text is the name of a device, which this machine need not have: `cpu`, `cuda:1`, or `cuda`, which is `cuda:0`. */
const namesDevice = (text: string): boolean => text === "cpu" || NAMED.test(text);

/** Parses the name of a device; a missing number is 0. @throws {TroupeError} `DEVICE_UNAVAILABLE` for any other text */
export function parseDevice(text: string): Device {
  if (!namesDevice(text))
    throw new TroupeError("DEVICE_UNAVAILABLE", {
      where: "device",
      expected: "cpu, cuda, cuda:N or sim:N",
      got: JSON.stringify(text),
      fields: { device: text },
    });
  return (text === "cpu" || text.includes(":") ? text : `${text}:0`) as Device;
}

/** Returns how many devices of a kind this process may use; 0 if the addon does not support the kind. */
export function deviceCount(kind: DeviceKind): number {
  return native().deviceCount(kind);
}

const numbers = new Map<string, number>();

/** Returns the addon's number of a device. @throws {TroupeError} `DEVICE_UNAVAILABLE` if this process does not have it */
export function deviceNumber(device: Device): number {
  let number = numbers.get(device);
  if (number === undefined) {
    number = native().deviceNumber(device);
    numbers.set(device, number);
  }
  return number;
}

/** Checks that this process has a device. @throws {TroupeError} `DEVICE_UNAVAILABLE` */
export function requireDevice(device: Device): void {
  deviceNumber(device);
}

/**
 * Runs `body` with another default device for this thread's new tensors. In a thread that computes on a GPU, use `"cpu"` for
 * values that are read at once or written to files.
 * @param device - undefined keeps the present default
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
 * Makes this thread compute on a device from now on, in a stream of its own; new tensors are made there.
 * @throws {TroupeError} `DEVICE_UNAVAILABLE`
 */
export function enterDevice(device: Device): void {
  native().enterDevice(deviceNumber(device));
  hasStream ||= device !== "cpu";
}

/** Whether this thread has a device's stream, or has followed a thread that has one. */
let hasStream = false;

/**
 * Orders devices' streams along the messages of threads. A message carries the position of the sender's stream, and the
 * receiver's stream continues after it. Thus work issued before a message was sent comes before the receiver's, on a device
 * too. A thread without a device sends 0.
 */
export const streamOrder = {
  outgoing: (): number => (hasStream ? native().sayPlace() : 0),
  incoming(place: number): void {
    hasStream = true;
    native().followPlace(place);
  },
};
