"""A cable between two network namespaces on which packets are under way for some time, at some rate: what netem does.

    delayed-link.py NAMESPACE DEVICE NAMESPACE DEVICE DELAY_MS MEGABITS

Both devices are of the kind tun. Prints a line once packets can be sent; ends when it is killed.
"""

import ctypes
import fcntl
import os
import select
import struct
import sys
import time
from collections import deque

TUNSETIFF = 0x400454CA
IFF_TUN, IFF_NO_PI = 0x0001, 0x1000
CLONE_NEWNET = 0x40000000
# Half a second of 1 Gbit/s: what comes on top is dropped, as by any switch.
MOST_QUEUED_BYTES = 64 << 20

libc = ctypes.CDLL(None, use_errno=True)


def open_end(namespace: str, device: str) -> int:
    place = os.open(f"/run/netns/{namespace}", os.O_RDONLY)
    if libc.setns(place, CLONE_NEWNET) != 0:
        raise OSError(ctypes.get_errno(), namespace)
    os.close(place)
    end = os.open("/dev/net/tun", os.O_RDWR | os.O_NONBLOCK)
    fcntl.ioctl(end, TUNSETIFF, struct.pack("16sH22x", device.encode(), IFF_TUN | IFF_NO_PI))
    return end


class Way:
    """From one end to the other: packets leave one after the other, and arrive the delay after that."""

    def __init__(self, source: int, target: int, delay_s: float, bits_per_s: float) -> None:
        self.source, self.target = source, target
        self.delay_s, self.s_per_byte = delay_s, 8 / bits_per_s
        self.free_at = 0.0
        self.queued_bytes = 0
        self.under_way: deque[tuple[float, bytes]] = deque()

    def take(self) -> None:
        for _ in range(64):
            try:
                packet = os.read(self.source, 65536)
            except BlockingIOError:
                return
            if self.queued_bytes > MOST_QUEUED_BYTES:
                continue
            self.free_at = max(self.free_at, time.monotonic()) + len(packet) * self.s_per_byte
            self.queued_bytes += len(packet)
            self.under_way.append((self.free_at + self.delay_s, packet))

    def give(self) -> None:
        now = time.monotonic()
        while self.under_way and self.under_way[0][0] <= now:
            packet = self.under_way.popleft()[1]
            self.queued_bytes -= len(packet)
            try:
                os.write(self.target, packet)
            except OSError:
                pass  # the device is down: a cable that is pulled loses what is on it

    def due_in(self) -> float:
        return max(0.0, self.under_way[0][0] - time.monotonic()) if self.under_way else 1.0


first, second = open_end(*sys.argv[1:3]), open_end(*sys.argv[3:5])
delay_s, bits_per_s = float(sys.argv[5]) / 1e3, float(sys.argv[6]) * 1e6
ways = {first: Way(first, second, delay_s, bits_per_s), second: Way(second, first, delay_s, bits_per_s)}
print("laid", flush=True)
while True:
    readable, _, _ = select.select(list(ways), [], [], min(way.due_in() for way in ways.values()))
    for end in readable:
        ways[end].take()
    for way in ways.values():
        way.give()
