import { createSocket } from 'node:dgram';
import { once } from 'node:events';

const TYPE_A = 1;
const NO_SUCH_NAME = 3;
const HEADER_BYTES = 12;

/** A name server of the test, whose answers can be changed, late and wrong. */
export interface NameServer extends AsyncDisposable {
  /** The addresses by name; a name that is not here does not exist. */
  readonly names: Map<string, string>;
  /** How long each answer takes, in ms. */
  delayMs: number;
}

/** Answers questions for IPv4 addresses at port 53 of an address; answers are good for no time at all. */
export async function nameServer(address: string): Promise<NameServer> {
  const socket = createSocket('udp4');
  const server: NameServer = {
    names: new Map(),
    delayMs: 0,
    [Symbol.asyncDispose]: async () => void (await new Promise<void>((resolve) => socket.close(resolve))),
  };
  socket.on('message', (question, from) => {
    const answer = answerTo(question, server.names);
    setTimeout(() => socket.send(answer, from.port, from.address, () => undefined), server.delayMs).unref();
  });
  socket.on('error', () => undefined);
  socket.bind(53, address);
  await once(socket, 'listening');
  return server;
}

function answerTo(question: Buffer, names: ReadonlyMap<string, string>): Buffer {
  const labels: string[] = [];
  let at = HEADER_BYTES;
  for (let length = question[at] ?? 0; length > 0; length = question[at] ?? 0) {
    labels.push(question.toString('latin1', at + 1, at + 1 + length));
    at += 1 + length;
  }
  const type = question.readUInt16BE(at + 1);
  const address = names.get(labels.join('.').toLowerCase());
  const asked = question.subarray(HEADER_BYTES, at + 5);
  const header = Buffer.from(question.subarray(0, HEADER_BYTES));
  const hasAnswer = address !== undefined && type === TYPE_A;
  header.writeUInt16BE(0x8180 | (address === undefined ? NO_SUCH_NAME : 0), 2);
  header.writeUInt16BE(1, 4);
  header.writeUInt16BE(hasAnswer ? 1 : 0, 6);
  header.writeUInt32BE(0, 8);
  if (!hasAnswer) return Buffer.concat([header, asked]);
  // The name by reference to the question, its type and class, no time to live, and four bytes.
  const record = Buffer.from([
    0xc0,
    HEADER_BYTES,
    0,
    TYPE_A,
    0,
    1,
    0,
    0,
    0,
    0,
    0,
    4,
    ...address.split('.').map(Number),
  ]);
  return Buffer.concat([header, asked, record]);
}
