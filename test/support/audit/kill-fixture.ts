import { once } from 'node:events';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { setTimeout as delay } from 'node:timers/promises';
import { gatewayFile } from '../gateway/gateway-file.ts';
import { type Portcullis, startOnRealServers } from '../harness.ts';
import { addClient, type ClientCredentials } from '../oauth/clients.ts';
import { type FaultProxy, faultProxy } from '../services/fault-proxy.ts';

/** What requests are made of. */
export interface Credentials {
  token: string;
  /** Of clients without the permission to list accounts, and with a limit that is used up. */
  weakToken: string;
  limitedToken: string;
  client: ClientCredentials;
  /** The value of an `Authorization` header. */
  webhook: string;
  transactionId: string;
}

/** The stores of an instance that is going to be killed, and what it is started with. */
export interface KillFixture extends AsyncDisposable {
  p: Portcullis;
  env: Record<string, string>;
  spoolDir: string;
  credentials: Credentials;
  /** Its way to PostgreSQL. */
  database: FaultProxy;
}

/** More than passes in one piece. */
const LONG = Buffer.alloc(100_000, 'long ');
const PIECES = 3;
const PIECE_EVERY_MS = 2;

/** Real stores, a service of another process, and clients of every kind. */
export async function killFixture(spoolDir: string): Promise<KillFixture> {
  await using stack = new AsyncDisposableStack();
  const p = stack.use(await startOnRealServers({ env: { PORTCULLIS_ROLE: 'gateway' } }));
  const moved = stack.use(await startMoved());
  const file = stack.use(
    await gatewayFile({ moved: moved.url }, [
      { methods: ['GET', 'POST'], path: '/v1/moved/**', services: ['moved'], visibility: 'public' },
    ]),
  );
  const databaseUrl = p.env.DATABASE_URL ?? '';
  const database = stack.use(await faultProxy(Number(new URL(databaseUrl).port)));
  const credentials = await credentialsOf(p);
  const held = stack.move();
  return {
    p,
    env: { ...p.env, DATABASE_URL: database.urlOf(databaseUrl), GATEWAY_CONFIG: file.path, AUDIT_SPOOL_DIR: spoolDir },
    spoolDir,
    credentials,
    database,
    [Symbol.asyncDispose]: () => held.disposeAsync(),
  };
}

async function credentialsOf(p: Portcullis): Promise<Credentials> {
  const { username, password } = p.webhook;
  return {
    token: await p.clientToken(),
    weakToken: await p.clientToken(await addClient(p, { scopes: ['wallets:read'] })),
    limitedToken: await p.clientToken(await addClient(p, { requests_per_hour: 2 })),
    client: p.demo.client,
    webhook: `Basic ${Buffer.from(`${username}:${password}`).toString('base64')}`,
    transactionId: p.demo.transactions.otc_transactions,
  };
}

/** Answers in pieces; `/endless` for as long as somebody reads, `/long` at once and with a length. */
async function startMoved(): Promise<{ url: string } & AsyncDisposable> {
  const server = createServer(async (req, res) => {
    req.resume();
    if (req.url?.endsWith('/long')) return void res.end(LONG);
    const pieces = req.url?.endsWith('/endless') ? Number.POSITIVE_INFINITY : PIECES;
    for (let piece = 0; piece < pieces && !res.destroyed; piece += 1) {
      res.write(`piece ${piece}\n`);
      await delay(PIECE_EVERY_MS);
    }
    res.end();
  });
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  return {
    url: `http://127.0.0.1:${(server.address() as AddressInfo).port}`,
    async [Symbol.asyncDispose]() {
      server.closeAllConnections();
      await new Promise((resolve) => server.close(resolve));
    },
  };
}
