import { createServer, type IncomingMessage, type ServerResponse } from 'node:http';
import { text } from 'node:stream/consumers';
import { peerOptions, updateText } from './peer.ts';
import { embedded, type Logged, onServers, type Stores } from './shortest-stores.ts';

/** As much of a stream's body as the product's audit captures. */
const RECORDED_BYTES = 256 * 1024;
/** As much as may wait for a subscriber that does not read. */
const MAX_UNSENT_BYTES = 1024 * 1024;

/**
 * Run as a process of its own: the shortest program that keeps what the product keeps of an event. A notification is
 * answered once it is in both topics (acks=all) and its request has a record; it is joined into the state of its
 * transaction, and what has changed is an event of a log whose numbers follow the order of commits, all in one
 * statement; its offset is committed after that; other processes are woken. An event goes to every subscriber in that
 * order, each frame made once; `GET /events?after=N` goes on from the log without a gap; a subscriber that does not read
 * is dropped; each stream has a record with what it was sent. On servers one of the two topics is consumed, as each
 * has every notification.
 *
 * What it does not keep: credentials, tokens and their end, permissions, tenants, GraphQL, validation, registrations and
 * what is parked until they come, owners, assets, dead letters, retries, outages, metrics, and the log.
 */
const { port, kafka, servers, embedded: inProcess } = peerOptions();
const stores = await openStores();
const subscribers = new Map<ServerResponse, Sent>();
let position = 0;
let isReading = false;
let isGrown = false;

/** What a subscriber was sent, for its record: the frames themselves, which all share. */
interface Sent {
  frames: Buffer[];
  bytes: number;
}

createServer((req, res) => {
  answer(req, res).catch(() => res.destroy());
}).listen(port, '127.0.0.1');

function openStores(): Promise<Stores> {
  const onGrown = () => void readOn();
  if (servers && kafka) return onServers(servers, kafka, onGrown);
  if (inProcess) return embedded(inProcess, onGrown);
  throw new Error('neither servers nor a cluster');
}

async function answer(req: IncomingMessage, res: ServerResponse): Promise<void> {
  const startedTick = performance.now();
  const { pathname, searchParams } = new URL(req.url ?? '/', 'http://localhost');
  if (pathname === '/events') return subscribe(req, res, searchParams.get('after'));
  if (pathname !== '/notify') return void res.end();
  const requestBody = await text(req);
  await stores.publish(requestBody);
  stores.keep({ req, startedTick, requestBody, responseBody: '' }, () => res.end());
}

async function subscribe(req: IncomingMessage, res: ServerResponse, after: string | null): Promise<void> {
  const startedTick = performance.now();
  const sent: Sent = { frames: [], bytes: 0 };
  res.on('close', () => {
    subscribers.delete(res);
    const responseBody = Buffer.concat(sent.frames).toString();
    stores.keep({ req, startedTick, requestBody: '', responseBody }, () => undefined);
  });
  res.removeHeader('transfer-encoding');
  res.writeHead(200, { 'content-type': 'text/event-stream', 'cache-control': 'no-cache', connection: 'close' });
  res.write(':\n\n');
  let from = after === null ? position : Number(after);
  while (from < position) {
    for (const event of await stores.readEvents(from)) {
      send(res, sent, frameOf(event));
      from = event.seq;
    }
  }
  if (!res.closed) subscribers.set(res, sent);
}

/** Reads the log to its end, once more where it has grown meanwhile. */
async function readOn(): Promise<void> {
  isGrown = true;
  if (isReading) return;
  isReading = true;
  while (isGrown) {
    isGrown = false;
    for (const event of await stores.readEvents(position)) {
      position = event.seq;
      const frame = frameOf(event);
      for (const [res, sent] of subscribers) send(res, sent, frame);
    }
  }
  isReading = false;
}

function send(res: ServerResponse, sent: Sent, frame: Buffer): void {
  if (sent.bytes < RECORDED_BYTES) sent.frames.push(frame);
  sent.bytes += frame.length;
  if (!res.write(frame) && res.writableLength > MAX_UNSENT_BYTES) res.destroy();
}

function frameOf({ seq, body }: Logged): Buffer {
  return Buffer.from(`event: next\nid: ${seq}\ndata: ${updateText(seq, body)}\n\n`);
}
