import type { Duplex } from 'node:stream';
import { WebSocket } from 'ws';

const FINAL_TEXT = 0x81;
/**
 * The values of a frame's second byte that announce a length of two or eight bytes after it (RFC 6455, section 5.2).
 */
const IN_TWO_BYTES = 126;
const IN_EIGHT_BYTES = 127;
const MAX_SHORT = 125;
const MAX_TWO_BYTES = 0xffff;

/** Returns a text message as one unmasked frame whose payload is the pieces in their order (RFC 6455, section 5.2). */
export function textFrame(pieces: readonly Buffer[]): Buffer {
  const length = pieces.reduce((sum, piece) => sum + piece.length, 0);
  const frame = Buffer.allocUnsafe(headBytes(length) + length);
  frame[0] = FINAL_TEXT;
  let at = writeLength(frame, length);
  for (const piece of pieces) at += piece.copy(frame, at);
  return frame;
}

function headBytes(length: number): number {
  if (length <= MAX_SHORT) return 2;
  return length <= MAX_TWO_BYTES ? 4 : 10;
}

/** Writes the length of the payload into the frame's header, and returns the offset at which the payload begins. */
function writeLength(frame: Buffer, length: number): number {
  if (length <= MAX_SHORT) return frame.writeUInt8(length, 1);
  if (length <= MAX_TWO_BYTES) {
    frame[1] = IN_TWO_BYTES;
    return frame.writeUInt16BE(length, 2);
  }
  frame[1] = IN_EIGHT_BYTES;
  return frame.writeBigUInt64BE(BigInt(length), 2);
}

/**
 * Returns a function that writes a message to the socket directly, in one write. The ws library would need two, and
 * would encode the text that subscribers share once for each of them. Since ws writes whole frames only, both can be
 * used side by side.
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
