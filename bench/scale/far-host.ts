// A host whose processes are all in this one: its head orders, joins and hears them as it does real ones, which no machine has a thousand
// of. Actors live on the thread that holds their process's hub. Started by bench/scale/prices.ts with the head's invitation, the number
// of this host, and the module that every process preloads.
import { loadPreload } from "../../src/runtime/actor/preload.ts";
import { systemClock } from "../../src/runtime/clock.ts";
import type { Invitation } from "../../src/runtime/hosting/host-agent.ts";
import {
  firstHostIndex,
  type HostNews,
  type HostOrder,
  unpackHostOrder,
} from "../../src/runtime/hosting/host-orders.ts";
import { packControl } from "../../src/runtime/hosting/packed-control.ts";
import { startOnMain } from "../../src/runtime/hosting/placement.ts";
import {
  type News,
  type Order,
  type ProcessBirth,
  unpackOrder,
} from "../../src/runtime/hosting/process-orders.ts";
import { boardSizeBytes } from "../../src/runtime/inspection/status-board.ts";
import { Hub } from "../../src/runtime/transport/hub/hub.ts";
import { creditsAt, HubPipe, type RouteEnd } from "../../src/runtime/transport/hub/routes.ts";
import type { LinkEnd } from "../../src/runtime/transport/link.ts";
import { Signal } from "../../src/runtime/transport/signal.ts";
import { TcpDoor } from "../../src/runtime/transport/tcp/tcp-door.ts";
import { PATIENT } from "./patient-network.ts";

const [invited = "", place = "", preloadUrl = ""] = process.argv.slice(2);
const invitation = JSON.parse(invited) as Required<Invitation>;
await loadPreload(preloadUrl);

const maxFrameBytes = 1 << 24;
const door = new TcpDoor(PATIENT);
const own = await Hub.open({
  index: firstHostIndex + Number(place),
  door,
  token: invitation.token,
  maxFrameBytes,
  onControl: (_from, bytes) => obey(unpackHostOrder(bytes)),
  onLost: () => process.exit(0),
});
own.know(0, invitation.address);
tell({
  kind: "host",
  place: Number(place),
  name: `far-${place}`,
  address: door.address,
  about: "",
  means: { devices: [], numCores: 1, memoryBytes: 1 },
  isCompanion: false,
});

function tell(news: HostNews): void {
  own.control(0, packControl(news));
}

function obey(order: HostOrder): void {
  if (order.kind === "dismiss") process.exit(0);
  if (order.kind !== "begin") return;
  tell({ kind: "begun", index: order.birth.index, pid: process.pid });
  void live(order.birth);
}

/** A process: says that it is ready, starts the actors it is told to, and reports their boards with each sign of life. */
async function live({
  index,
  token,
  systemAddress,
}: Pick<ProcessBirth, "index" | "token" | "systemAddress">) {
  const boards = new Map<number, Uint8Array>();
  const door = new TcpDoor(PATIENT);
  const report = (news: News) => hub.control(0, packControl(news));
  const hub: Hub = await Hub.open({
    index,
    door,
    token,
    maxFrameBytes,
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
    const pipe = new HubPipe(hub, route, credits, signal);
    return { kind: "packed", side: route.side, credits, maxFrameBytes, pipe };
  };
  const carryOut = (order: Order): void => {
    if (order.kind !== "start") return;
    const { address, moduleUrl, init, settings, systemRoute } = order.boot;
    const [signal, board] = [new Signal(), new SharedArrayBuffer(boardSizeBytes)];
    const systemLink = endOf(systemRoute, signal);
    const place = { hasThread: false, isFromAfar: true, signal: signal.buffer, board };
    startOnMain({ address, moduleUrl, preloadUrl, init, settings, systemLink, ...place }, systemClock);
    boards.set(address.uid, new Uint8Array(board));
  };
  hub.know(0, systemAddress);
  report({ kind: "ready", address: door.address });
}
