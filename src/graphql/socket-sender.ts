import type { Duplex } from 'node:stream';
import { WebSocket } from 'ws';
import { textFrame } from './text-frame.ts';

/**
 * What sends messages past the library, each in one write: it would take two, and turn the text that many share into bytes
 * anew for each. The library itself writes whole frames only, so that the two do not mix.
 */
export function sender(socket: WebSocket, raw: Duplex): (pieces: readonly Buffer[]) => Promise<void> | undefined {
  let waiting: (() => void)[] = [];
  const goOn = () => {
    const resolves = waiting;
    waiting = [];
    for (const resolve of resolves) resolve();
  };
  raw.on('drain', goOn);
  raw.on('close', goOn);
  return (pieces) => {
    if (socket.readyState !== WebSocket.OPEN || raw.destroyed) return undefined;
    if (raw.write(textFrame(pieces))) return undefined;
    return new Promise((resolve) => {
      waiting.push(resolve);
    });
  };
}
