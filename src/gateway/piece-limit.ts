import type { IncomingMessage, ServerResponse } from 'node:http';
import { announcesBody } from './head.rules.ts';

/**
 * So many pieces of a body must bring so many bytes. Each piece costs what a hundred bytes do, however few it has, and one
 * byte for each second of the hour that a request may take is still less than one such count.
 */
const PIECES = 4_096;
const MIN_BYTES = 16 * PIECES;

/**
 * Closes the connection of a body that comes in chunks of hardly any bytes (RFC 9112 section 7.1 sets them no least size),
 * and calls `onExceeded`: its request ends as one whose client has left.
 */
export function limitPieces(req: IncomingMessage, res: ServerResponse, onExceeded: () => void): void {
  if (!announcesBody(req)) return;
  const push = req.push;
  let pieces = 0;
  let bytes = 0;
  req.push = function counted(this: IncomingMessage, chunk: unknown, encoding?: BufferEncoding) {
    if (!Buffer.isBuffer(chunk)) return push.call(this, chunk, encoding);
    pieces += 1;
    bytes += chunk.length;
    if (pieces < PIECES) return push.call(this, chunk, encoding);
    if (bytes < MIN_BYTES) {
      // The parser goes on to the end of what was read.
      req.push = () => true;
      req.socket.destroy();
      onExceeded();
      return true;
    }
    pieces = 0;
    bytes = 0;
    return push.call(this, chunk, encoding);
  };
  // What nobody reads Node would drop behind an answer piece by piece, uncounted.
  res.prependOnceListener('finish', () => {
    if (req.complete || req.readableFlowing) return;
    req.read();
    req.resume();
  });
}
