import type { Exchange } from '../gateway/exchange.ts';

const MAX_BYTES = 64 * 1024 * 1024;
const MAX_MS = 5_000;

/**
 * Closes the connection of a request that is answered before it has come in full the way that a client still gets the answer
 * (RFC 9112 section 9.6): the sending half first, and the other when the client has stopped sending, or after 64 MiB or 5 s.
 * What comes is thrown away. A close with bytes unread would be a reset, which takes the answer with it.
 */
export function lingerOnClose({ req, res }: Exchange): void {
  const { socket } = req;
  const destroySoon = socket.destroySoon;
  socket.destroySoon = () => {
    if (req.complete) destroySoon.call(socket);
    else linger();
  };
  res.once('close', () => {
    socket.destroySoon = destroySoon;
  });

  function linger(): void {
    const cut = setTimeout(() => socket.destroy(), MAX_MS);
    socket.once('close', () => clearTimeout(cut));
    socket.end();
    let bytes = 0;
    req.on('data', (chunk: Buffer) => {
      bytes += chunk.length;
      if (bytes > MAX_BYTES) socket.destroy();
    });
    req.once('end', () => socket.destroy());
    req.resume();
  }
}
