import { createServer, type Socket } from 'node:net';
import { listening } from './forwarder.ts';

/** An upstream that answers with bytes as they are. */
export interface RawUpstream extends AsyncDisposable {
  url: string;
  /** The heads of the requests, as they came. */
  requests: string[];
  sockets: Socket[];
}

/** Starts an upstream of bytes; `answer` is called with each request's head, and how many came before it. */
export async function startRawUpstream(
  answer: (socket: Socket, head: string, before: number) => void,
): Promise<RawUpstream> {
  const requests: string[] = [];
  const sockets: Socket[] = [];
  const server = createServer((socket) => {
    sockets.push(socket);
    let text = '';
    socket.on('error', () => socket.destroy());
    socket.on('data', (chunk) => {
      text += chunk.toString('latin1');
      for (let end = text.indexOf('\r\n\r\n'); end >= 0; end = text.indexOf('\r\n\r\n')) {
        const head = text.slice(0, end);
        text = text.slice(end + 4);
        if (!/^[A-Z]+ \S+ HTTP\/1\.1(\r\n|$)/.test(head)) continue;
        requests.push(head);
        answer(socket, head, requests.length - 1);
      }
    });
  });
  return {
    url: await listening(server),
    requests,
    sockets,
    async [Symbol.asyncDispose]() {
      for (const socket of sockets) socket.destroy();
      await new Promise((resolve) => server.close(resolve));
    },
  };
}
