"""Carries packets between this network namespace and another one, and loses and delays them as it is told.

Usage: relay.py NAMESPACE HERE THERE. Makes a device in each of the two with these addresses. Reads one JSON object a
line from its standard input, such as {"port": 5432, "loss": 0.1, "delay_ms": 200, "jitter_ms": 50}. `port` is that of the
connections that it is about. `in` and `out` block what comes to this namespace or leaves it; packets to or from the
address `gone` are dropped. What is delayed keeps its order, as on a line. Ends with its input.
"""

import ctypes
import fcntl
import heapq
import json
import os
import random
import select
import socket
import struct
import subprocess
import sys
import time

TUNSETIFF = 0x400454CA
IFF_TUN_NO_PI = 0x1001
CLONE_NEWNET = 0x40000000
MTU = 1400


def tun(name):
    device = os.open("/dev/net/tun", os.O_RDWR | os.O_NONBLOCK)
    fcntl.ioctl(device, TUNSETIFF, struct.pack("16sH", name.encode(), IFF_TUN_NO_PI))
    return device


def up(name, address, peer, inside=()):
    for args in (
        ["addr", "add", address, "peer", peer, "dev", name],
        ["link", "set", name, "mtu", str(MTU), "up"],
    ):
        subprocess.run([*inside, "ip", *args], check=True)


def main():
    namespace, here, there = sys.argv[1:4]
    suffix = str(os.getpid())[-6:]
    near = tun(f"near{suffix}")
    up(f"near{suffix}", here, there)
    with open("/proc/self/ns/net") as own, open(f"/run/netns/{namespace}") as other:
        libc = ctypes.CDLL(None, use_errno=True)
        if libc.setns(other.fileno(), CLONE_NEWNET) != 0:
            raise OSError(ctypes.get_errno(), "setns")
        far = tun("far0")
        libc.setns(own.fileno(), CLONE_NEWNET)
    up("far0", there, here, ["ip", "netns", "exec", namespace])
    print("ready", flush=True)
    carry(near, far)


def carry(near, far):
    rules = {}
    waiting = []
    order = 0
    due_last = {near: 0.0, far: 0.0}
    commands = b""
    while True:
        timeout = max(0.0, waiting[0][0] - time.monotonic()) if waiting else None
        ready, _, _ = select.select([near, far, 0], [], [], timeout)
        if 0 in ready:
            text = os.read(0, 65536)
            if text == b"":
                return
            commands += text
            *lines, commands = commands.split(b"\n")
            for line in lines:
                rules = json.loads(line)
        for device, target, blocked in ((near, far, "out"), (far, near, "in")):
            if device not in ready:
                continue
            for packet in packets(device):
                told = rules if port_of(packet, rules.get("port")) else {}
                if told.get(blocked) or random.random() < told.get("loss", 0) or is_gone(packet, told):
                    continue
                jitter = random.uniform(-1, 1) * told.get("jitter_ms", 0)
                due = time.monotonic() + max(0.0, told.get("delay_ms", 0) + jitter) / 1000
                due_last[target] = due = max(due, due_last[target])
                order += 1
                heapq.heappush(waiting, (due, order, target, packet))
        now = time.monotonic()
        while waiting and waiting[0][0] <= now:
            _, _, target, packet = heapq.heappop(waiting)
            try:
                os.write(target, packet)
            except OSError:
                # A packet that the device has no room for is lost, as on any line.
                pass


def packets(device):
    for _ in range(64):
        try:
            yield os.read(device, 65536)
        except BlockingIOError:
            return


def port_of(packet, port):
    """Whether a packet is TCP over IPv4 of a connection to a port, or from it."""
    if port is None or packet[0] >> 4 != 4 or packet[9] != socket.IPPROTO_TCP:
        return False
    start = (packet[0] & 15) * 4
    return port in struct.unpack("!HH", packet[start : start + 4])


def is_gone(packet, told):
    gone = told.get("gone")
    return gone is not None and any(socket.inet_ntoa(packet[at : at + 4]) == gone for at in (12, 16))


main()
