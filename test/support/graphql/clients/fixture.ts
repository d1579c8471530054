import { randomUUID } from 'node:crypto';
import { rm } from 'node:fs/promises';
import { type Portcullis, startedDataDir, startPortcullis } from '../../harness.ts';
import { addClient } from '../../oauth/clients.ts';
import { type FaultProxy, faultProxy } from '../../services/fault-proxy.ts';
import { type Door, type RealClient, soon, type Told } from './real-client.ts';

const SCOPES = ['accounts:read', 'transactions:read', 'transactions:write', 'users:migrate'];

interface SentRequest {
  method: string;
  accept: string | null;
  body: unknown;
}

/** The whole service behind a way that can be cut, with a client of four permissions. */
export interface Fixture extends AsyncDisposable {
  door: Door;
  proxy: FaultProxy;
  /** What has come in by fetch. */
  requests: SentRequest[];
  /** Makes a transaction known. @returns its id. */
  register(): Promise<string>;
  /** Notifies of a status past the way. @returns the cursor of its event, which is in the log then. */
  bring(id: string, status: number): Promise<string>;
  stop(): Promise<void>;
  /** Starts it again with what it knew, on another port, which the way does not know yet. @returns the port. */
  start(): Promise<number>;
}

/** Starts it, on embedded stores. */
export async function startFixture(): Promise<Fixture> {
  const dataDir = await startedDataDir();
  let p = await startPortcullis({ dataDir });
  const proxy = await faultProxy(portOf(p));
  const token = await p.clientToken(await addClient(p, { scopes: SCOPES }));
  const requests: SentRequest[] = [];
  const recorded: typeof fetch = (input, init) => {
    const { method = 'GET', body } = init ?? {};
    requests.push({ method, accept: new Headers(init?.headers).get('accept'), body });
    return fetch(input, init);
  };

  const data = async (query: string) => {
    const { json, text } = await p.call('POST', '/graphql', { token, json: { query } });
    if (json?.errors) throw new Error(text);
    return json.data;
  };
  const cursors = async (id: string): Promise<string[]> => {
    const { transaction } = await data(`{ transaction(id: "${id}") { events { edges { node { cursor } } } } }`);
    return transaction.events.edges.map(({ node }: { node: { cursor: string } }) => node.cursor);
  };

  return {
    door: { url: `${proxy.urlOf(p.url)}graphql`, token, fetch: recorded },
    proxy,
    requests,
    async register() {
      const id = randomUUID();
      const input = `{id: "${id}", collection: OTC_TRANSACTIONS, type: 1}`;
      await data(`mutation { registerTransaction(input: ${input}) { __typename } }`);
      return id;
    },
    async bring(id, status) {
      const known = (await cursors(id)).length;
      await notify(p, id, status);
      for (;;) {
        await soon();
        const cursor = (await cursors(id))[known];
        if (cursor !== undefined) return cursor;
      }
    },
    async stop() {
      await p[Symbol.asyncDispose]();
    },
    async start() {
      p = await startPortcullis({ dataDir });
      return portOf(p);
    },
    async [Symbol.asyncDispose]() {
      await proxy[Symbol.asyncDispose]();
      await p[Symbol.asyncDispose]();
      await rm(dataDir, { recursive: true, force: true });
    },
  };
}

/** What a subscription tells, and whether it is over. */
export interface Followed {
  told: Told[];
  isOver: boolean;
  end: () => void;
}

/** Subscribes, and keeps what comes. */
export function follow(client: RealClient, ...[document, variables = {}]: Parameters<RealClient['run']>): Followed {
  const followed: Followed = { told: [], isOver: false, end: () => undefined };
  followed.end = client.subscribe(document, variables, {
    told: (result) => void followed.told.push(result),
    over: () => void Object.assign(followed, { isOver: true }),
  });
  return followed;
}

function portOf({ url }: Portcullis): number {
  return Number(new URL(url).port);
}

async function notify({ call, webhook }: Portcullis, id: string, status: number): Promise<void> {
  const { username, password } = webhook;
  const answer = await call('POST', '/v2/webhooks/custodial', {
    headers: { authorization: `Basic ${Buffer.from(`${username}:${password}`).toString('base64')}` },
    json: { id, type: 1, status, created_at: '2026-11-21T10:00:00Z', updated_at: `2026-11-21T10:00:0${status}Z` },
  });
  if (answer.status !== 200) throw new Error(`not notified: ${answer.status} ${answer.text}`);
}
