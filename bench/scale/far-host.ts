// Hosts whose processes are all in this one: their head treats them as real processes, of which no machine has a thousand.
// Actors live on the thread that holds their process's hub. Started by bench/scale/starts.ts with the head's invitation, the numbers
// of these hosts, and the module that every process preloads.
import { loadPreload } from "../../src/runtime/actor/preload.ts";
import { systemClock } from "../../src/runtime/clock.ts";
import { HeadProxy } from "../../src/runtime/hosting/head-proxy.ts";
import type { Invitation } from "../../src/runtime/hosting/host-agent.ts";
import { firstHostIndex, type HostNews, unpackHostOrder } from "../../src/runtime/hosting/host-orders.ts";
import { packControl } from "../../src/runtime/hosting/packed-control.ts";
import { startOnMain } from "../../src/runtime/hosting/placement.ts";
import { type News, type Order, unpackOrder } from "../../src/runtime/hosting/process-orders.ts";
import { boardSizeBytes } from "../../src/runtime/inspection/status-board.ts";
import { Hub } from "../../src/runtime/transport/hub/hub.ts";
import { creditsAt, openPipe, type RouteEnd } from "../../src/runtime/transport/hub/routes.ts";
import type { LinkEnd } from "../../src/runtime/transport/link.ts";
import { Signal } from "../../src/runtime/transport/signal.ts";
import { TcpDoor } from "../../src/runtime/transport/tcp/tcp-door.ts";
import { PATIENT } from "./patient-network.ts";

const [invited = "", places = "", preloadUrl = ""] = process.argv.slice(2);
const { address: headAddress, token } = JSON.parse(invited) as Required<Invitation>;
await loadPreload(preloadUrl);

const trust = { token, maxFrameBytes: 1 << 24 };
for (const place of JSON.parse(places) as number[]) await join(place);

/** A host: joins the head, passes on what its processes and the head say to each other, and begins them. */
async function join(place: number): Promise<void> {
  const tell = (news: HostNews) => own.control(0, packControl(news));
  const proxy = await HeadProxy.open({
    network: PATIENT,
    ...trust,
    toHead: (frame, process) => own.pass(0, frame, process),
    onLost: () => {},
  });
  const own: Hub = await Hub.open({
    index: firstHostIndex + place,
    door: new TcpDoor(PATIENT),
    ...trust,
    onControl: (_from, bytes) => {
      const order = unpackHostOrder(bytes);
      if (order.kind === "dismiss") process.exit(0);
      if (order.kind !== "begin") return;
      tell({ kind: "begun", index: order.start.index, pid: process.pid });
      void live(order.start.index, proxy.address);
    },
    relay: (_from, frame) => {
      if (frame.of !== 0) proxy.deliver(frame);
      return frame.of !== 0;
    },
    onLost: () => process.exit(0),
  });
  own.know(0, headAddress);
  tell({
    kind: "host",
    place,
    name: `far-${place}`,
    about: "",
    means: { devices: [], numCores: 1, memoryBytes: 1 },
    isCompanion: false,
  });
}

/** Plays one process: reports that it is ready, starts the actors that it is ordered to, and reports their boards with each heartbeat. */
async function live(index: number, systemAddress: string): Promise<void> {
  const boards = new Map<number, Uint8Array>();
  const door = new TcpDoor(PATIENT);
  const report = (news: News) => hub.control(0, packControl(news));
  const hub: Hub = await Hub.open({
    index,
    door,
    ...trust,
    onControl: (_from, bytes) => carryOut(unpackOrder(bytes)),
    onBeat: () => {
      if (boards.size > 0)
        report({
          kind: "boards",
          nowMs: systemClock.now(),
          boards: [...boards].map(([uid, board]) => [uid, board.slice()] as const),
        });
    },
    onLost: () => {},
  });
  const endOf = (route: RouteEnd, signal: Signal): LinkEnd => {
    const credits = creditsAt(route);
    const pipe = openPipe(hub, route, credits, signal);
    return { kind: "packed", side: route.side, credits, maxFrameBytes: trust.maxFrameBytes, pipe };
  };
  const carryOut = (order: Order): void => {
    if (order.kind !== "start") return;
    const { address, moduleUrl, init, settings, systemRoute } = order.boot;
    const [signal, board] = [new Signal(), new SharedArrayBuffer(boardSizeBytes)];
    const systemLink = endOf(systemRoute, signal);
    const place = { hasThread: false, isFromOtherProcess: true, signal: signal.buffer, board };
    startOnMain({ address, moduleUrl, preloadUrl, init, settings, systemLink, ...place }, systemClock);
    boards.set(address.uid, new Uint8Array(board));
  };
  hub.know(0, systemAddress);
  report({ kind: "ready", address: door.address });
}
