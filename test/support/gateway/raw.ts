import { connect, type Socket } from 'node:net';

export interface RawAnswer {
  status: number;
  /** Names in lower case; values as the bytes came, one character a byte. */
  headers: Record<string, string>;
  body: string;
}

interface RawOptions {
  /** The address to speak from: the whole of 127.0.0.0/8 is this machine. */
  from?: string | undefined;
}

/** A connection to an instance, over which bytes go as they are. */
export function openSocket(url: string, { from }: RawOptions = {}): Socket {
  const { hostname, port } = new URL(url);
  return connect({ host: hostname, port: Number(port), ...(from === undefined ? {} : { localAddress: from }) });
}

/** Sends bytes as they are (latin1), without the spelling that a client would give them, and reads until the end. */
export async function sendRaw(url: string, bytes: string, options: RawOptions = {}): Promise<RawAnswer> {
  const socket = openSocket(url, options);
  socket.write(bytes, 'latin1');
  return readAnswer(socket);
}

/** Reads a connection until the other side closes it, and parses what came. */
export async function readAnswer(socket: Socket): Promise<RawAnswer> {
  const chunks: Buffer[] = [];
  const { promise, resolve, reject } = Promise.withResolvers<void>();
  socket.on('data', (chunk: Buffer) => chunks.push(chunk));
  socket.on('end', resolve);
  socket.on('error', (error) => (chunks.length > 0 ? resolve() : reject(error)));
  await promise;
  socket.destroy();
  return parseAnswer(Buffer.concat(chunks).toString('latin1'));
}

/** A request without a body whose target is sent as it is. */
export function request(method: string, target: string, headers: Record<string, string> = {}): string {
  const lines = Object.entries({ Host: 'portcullis', Connection: 'close', ...headers });
  return `${method} ${target} HTTP/1.1\r\n${lines.map(([name, value]) => `${name}: ${value}\r\n`).join('')}\r\n`;
}

/** The fields of a WebSocket handshake. */
export const UPGRADE = {
  Connection: 'Upgrade',
  Upgrade: 'websocket',
  'Sec-WebSocket-Version': '13',
  'Sec-WebSocket-Key': 'AAAAAAAAAAAAAAAAAAAAAA==',
};

function parseAnswer(text: string): RawAnswer {
  const end = text.indexOf('\r\n\r\n');
  const head = text.slice(0, end);
  return { status: Number(head.split(' ')[1]), headers: headersOf(head), body: text.slice(end + 4) };
}

/** The header fields of the head of an answer. */
export function headersOf(head: string): Record<string, string> {
  const lines = head.split('\r\n').slice(1);
  return Object.fromEntries(
    lines.map((line) => {
      const colon = line.indexOf(':');
      return [line.slice(0, colon).toLowerCase(), line.slice(colon + 1).trim()];
    }),
  );
}

/** A connection, and what it has brought so far. */
export interface Watched {
  socket: Socket;
  text(): string;
  isOpen(): boolean;
}

export function watched(url: string): Watched {
  const socket = openSocket(url);
  let text = '';
  let isOpen = true;
  socket.on('data', (chunk: Buffer) => {
    text += chunk.toString('latin1');
  });
  socket.on('error', () => undefined);
  socket.on('close', () => {
    isOpen = false;
  });
  return { socket, text: () => text, isOpen: () => isOpen };
}

/** A connection over which bytes have been sent as they are (latin1), and what it has brought so far. */
export function begun(url: string, bytes: string): Watched {
  const sent = watched(url);
  sent.socket.write(bytes, 'latin1');
  return sent;
}
