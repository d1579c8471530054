import { connect, type Socket } from 'node:net';
import { Kafka } from 'kafkajs';
import { afterAll, beforeAll, expect, it, vi } from 'vitest';
import { type Portcullis, startOnRealServers } from '../support/harness.ts';
import { addClient } from '../support/oauth/clients.ts';
import { keysInLog } from '../support/services/kafka-behind.ts';
import { freePorts } from '../support/services/ports.ts';
import { describeReal } from '../support/services/real.ts';
import { emptyFolder, refusalOf } from '../support/start/folders.ts';
import { type Running, startInstance } from '../support/start/process.ts';
import { basic, notification } from '../support/webhook/fixture.ts';

const GATEWAYS = 2;
/** So many that a fair division leaves no process with less than a third: it would be seven standard deviations away. */
const CONNECTIONS = 512;
const REQUESTS = 20;

it('D1-17: REUSE_PORT without a port or a database server is refused', async () => {
  await using folder = await emptyFolder();
  for (const env of [
    { REUSE_PORT: 'on', PORT: '4000' },
    { REUSE_PORT: 'on', PORT: '0', DATABASE_URL: 'postgres://x' },
  ])
    expect(await refusalOf(folder.path, env)).toContain('REUSE_PORT=on needs a PORT other than 0, and a DATABASE_URL');
});

describeReal(['postgres', 'redis', 'kafka'], 'gateways that share a port', () => {
  const stack = new AsyncDisposableStack();
  let p: Portcullis;
  let gateways: Running[];
  let url: string;

  beforeAll(async () => {
    p = stack.use(await startOnRealServers());
    const [port] = await freePorts(1);
    url = `http://127.0.0.1:${port}`;
    const shared = { ...p.env, PORTCULLIS_ROLE: 'gateway', REUSE_PORT: 'on', PORT: `${port}` };
    const start = async () => {
      const { path } = stack.use(await emptyFolder());
      return stack.use(await startInstance({ ...shared, AUDIT_SPOOL_DIR: path }));
    };
    gateways = await Promise.all(Array.from({ length: GATEWAYS }, start));
  });
  afterAll(() => stack.disposeAsync());

  async function openConnections({ adminUrl }: Running): Promise<number> {
    const metrics = await (await fetch(`${adminUrl}/metrics`)).text();
    return Number(/^portcullis_connections (\d+)$/m.exec(metrics)?.[1]);
  }

  it('D1-17: get a fair part of the connections each', async () => {
    const { hostname, port } = new URL(url);
    const sockets: Socket[] = [];
    try {
      for (let count = 0; count < CONNECTIONS; count += 1) sockets.push(connect(Number(port), hostname));
      const counts = await vi.waitFor(async () => {
        const open = await Promise.all(gateways.map(openConnections));
        expect(open.reduce((sum, one) => sum + one)).toBe(CONNECTIONS);
        return open;
      });
      for (const count of counts) expect(count).toBeGreaterThan(CONNECTIONS / 3);
    } finally {
      for (const socket of sockets) socket.destroy();
    }
  });

  it('D1-17: count the requests of a client together', async () => {
    const token = await p.clientToken(await addClient(p, { monthly_limit: REQUESTS + 1 }));
    const statuses: number[] = [];
    for (let count = 0; count < 2 * REQUESTS; count += 1) {
      const headers = { authorization: `Bearer ${token}`, connection: 'close' };
      const response = await fetch(`${url}/v1/accounts`, { headers });
      await response.text();
      statuses.push(response.status);
    }
    expect(statuses.filter((status) => status === 200)).toHaveLength(REQUESTS);
  });

  it('D1-17: lose no acknowledged notification when one is killed, and its port stays open', async () => {
    const acknowledged: string[] = [];
    let isOver = false;
    const { username, password } = p.webhook;
    const send = async () => {
      const body = notification();
      const response = await fetch(`${url}/v2/webhooks/custodial`, {
        method: 'POST',
        headers: { authorization: basic(username, password), 'content-type': 'application/json', connection: 'close' },
        body: JSON.stringify(body),
      });
      await response.text();
      if (response.ok) acknowledged.push(body.id);
    };
    const load = Array.from({ length: 8 }, async () => {
      while (!isOver) await send().catch(() => undefined);
    });
    await vi.waitFor(() => expect(acknowledged.length).toBeGreaterThan(100));
    await gateways[0]?.kill('SIGKILL');
    const before = acknowledged.length;
    await vi.waitFor(() => expect(acknowledged.length).toBeGreaterThan(before + 100));
    isOver = true;
    await Promise.all(load);
    const kafka = new Kafka({ brokers: [p.env.KAFKA_BROKERS ?? ''], logLevel: 0 });
    const keys = new Set(await keysInLog(kafka, `${p.env.TOPIC_PREFIX}transactions.admin`));
    expect(acknowledged.filter((id) => !keys.has(id))).toEqual([]);
    await send();
  });
});
