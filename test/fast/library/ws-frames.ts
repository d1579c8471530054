import type { Duplex } from 'node:stream';
import type { WebSocket } from 'ws';

/** Sends a message by ws, which makes the frame. */
export function sender(socket: WebSocket, _raw: Duplex): (pieces: readonly Buffer[]) => Promise<void> | undefined {
  return (pieces) =>
    new Promise((resolve) => {
      socket.send(Buffer.concat(pieces), { binary: false }, () => resolve());
    });
}
