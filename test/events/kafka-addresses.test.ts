import { once } from 'node:events';
import { type AddressInfo, createServer } from 'node:net';
import { expect, it } from 'vitest';
import { kafkaClient } from '../../src/events/bus/kafka-client.ts';

it.each([
  ['an IPv6 address', '::1', '[::1]'],
  ['an IPv6 address in full', '::1', '[0:0:0:0:0:0:0:1]'],
  ['an IPv4 address', '127.0.0.1', '127.0.0.1'],
])('D1-04: connects to a broker at %s', async (_what, listens, host) => {
  const server = createServer((socket) => socket.destroy()).listen(0, listens);
  await once(server, 'listening');
  const { port } = server.address() as AddressInfo;
  const connection = { brokers: [`${host}:${port}`], ssl: false, sasl: undefined, topicPrefix: '', clientId: 'test' };
  const admin = (await kafkaClient(connection, 1_000, () => undefined)).admin();
  const connected = once(server, 'connection');
  await expect(admin.connect()).rejects.toThrow();
  await connected;
  await admin.disconnect();
  server.close();
});
