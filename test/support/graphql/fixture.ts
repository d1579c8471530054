import { createServer, ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import { promisify } from 'node:util';
import type { TypedDocumentNode } from '@graphql-typed-document-node/core';
import { print } from 'graphql';
import { Passwords } from '../../../src/access/credentials/passwords.ts';
import { InvalidTokenError, type Principal } from '../../../src/access/identity/callers.ts';
import { PERMISSIONS, type Permission } from '../../../src/access/identity/permissions.rules.ts';
import type { ClientGuards } from '../../../src/access/limits/client-guards.ts';
import { AccessDirectory, DenyList } from '../../../src/access/revocation/access-cache.ts';
import { AccessWatch } from '../../../src/access/revocation/access-watch.ts';
import { createGraphqlServer } from '../../../src/api/graphql/graphql-server.ts';
import type { GraphqlDependencies } from '../../../src/api/graphql/runtime.ts';
import type { OperationRecord } from '../../../src/api/graphql/sockets/socket-operations.ts';
import type { FeatureServices } from '../../../src/api/shared/services.ts';
import { buildAdministration } from '../../../src/app/access.ts';
import { buildFeatures } from '../../../src/app/features.ts';
import { graphqlSchema } from '../../../src/app/graphql-schema.ts';
import { EmbeddedBus } from '../../../src/events/bus/embedded-bus.ts';
import { databaseEventLog } from '../../../src/events/streams/event-log.ts';
import { EventStreams } from '../../../src/events/streams/event-streams.ts';
import { MemoryWakeUps } from '../../../src/events/streams/wake-ups.ts';
import { AttentionFinder } from '../../../src/features/attention/attention.service.ts';
import {
  AuditExportPages,
  AuditExports,
  AuditPages,
} from '../../../src/features/audit-records/audit-records.service.ts';
import { Search } from '../../../src/features/search/search.service.ts';
import type { TransactionTopic } from '../../../src/features/transactions/type-codes.rules.ts';
import { Exchange } from '../../../src/gateway/exchange/exchange.ts';
import { refuse } from '../../../src/gateway/exchange/responses.ts';
import { PageCursors } from '../../../src/lib/keyset.ts';
import type { Log } from '../../../src/lib/log.ts';
import type { Database } from '../../../src/platform/database/open-database.ts';
import { MemoryAccounts } from '../../../src/platform/held-memory.ts';
import { auditErasureIn, SEAL_KEY } from '../harness/audit-seals.ts';
import { beforeTests } from '../harness/before-tests.ts';
import { scratchDatabase } from '../harness/databases.ts';
import { EventReader } from './event-reader.ts';

export const NODE = 'aaaaaaaa-0000-4000-8000-000000000001';
export const OTHER_NODE = 'bbbbbbbb-0000-4000-8000-000000000002';
/** Guards that let everyone in. */
export const UNGUARDED: Pick<ClientGuards, 'check'> = { check: async () => ({ headers: [] }) };
const CHAIN = 'cccccccc-0000-4000-8000-000000000003';

interface Answer {
  status: number;
  headers: Headers;
  text: string;
  // biome-ignore lint/suspicious/noExplicitAny: tests look into answers of many shapes.
  json: any;
}

interface QueryOptions {
  variables?: Record<string, unknown>;
  operationName?: string;
  token?: string | undefined;
  headers?: Record<string, string>;
}

/** GraphQL over an embedded database with two nodes, behind a door that knows tokens by heart. */
export type Fixture = Awaited<ReturnType<typeof startFixtureOn>>;

let serial = 0;

interface TokenOptions {
  nodeId?: string;
  permissions?: readonly Permission[];
  use?: Principal['tokenUse'];
  expiresAtMs?: number;
}

/** What a test puts in the place of parts of the server, and of its services. */
interface FixtureDeps extends Partial<Omit<GraphqlDependencies, 'services'>> {
  services?: Partial<FeatureServices>;
}

/** Starts one on a database that it disposes of; `deps` replaces parts of the server. */
export async function startFixture(deps?: FixtureDeps, given?: Database): Promise<Fixture> {
  const database = given ?? (await scratchDatabase());
  const fixture = await startFixtureOn(database, deps);
  return {
    ...fixture,
    [Symbol.asyncDispose]: async () => {
      await fixture[Symbol.asyncDispose]();
      await database[Symbol.asyncDispose]();
    },
  };
}

/** Starts one before the tests of a file or group, and disposes of it after them. */
export function useFixture(): Fixture {
  return beforeTests(startFixture);
}

/** Starts one on a database that others have used before, and empties it; disposing leaves it open. */
export async function startFixtureOn(database: Database, { services: replaced, ...deps }: FixtureDeps = {}) {
  const { db } = database;
  await db
    .unscoped('a test begins with nothing')
    .raw((sql) => sql`truncate nodes, chains, transaction_ids, wallet_rule_versions cascade`);
  const wakeUps = new MemoryWakeUps();
  const faults: object[] = [];
  const log: Log = { debug() {}, info() {}, warn() {}, error: (fields) => void faults.push(fields) };
  const streams = new EventStreams({
    log: databaseEventLog(db),
    wakeUps,
    onError: (error) => faults.push({ err: error }),
  });
  const principals = new Map<string, Principal>();
  const records: OperationRecord[] = [];
  const stack = new AsyncDisposableStack();
  const domain = buildFeatures({
    database,
    bus: stack.adopt(new EmbeddedBus(db, () => undefined), (bus) => bus.stop()),
    log,
    nowMs: Date.now,
    gasSources: new Map(),
    registersByMutation: true,
    wake: (nodeId, seq) => wakeUps.notify(nodeId, seq),
    auditErasure: auditErasureIn(db),
    auditSettled: async () => undefined,
  });
  const pepper = { current: 'pepper', previous: undefined };
  const nowMs = Date.now;
  const administration = buildAdministration({
    database,
    pepper,
    passwords: new Passwords(),
    maxSessions: 10,
    nowMs,
    isOwnClock: true,
    onError: () => undefined,
  });
  const { transactions } = domain;
  const auditPages = new AuditPages(db, []);
  const services: FeatureServices = {
    ...domain,
    ...administration,
    directory: new AccessDirectory({
      db,
      pepper,
      denied: new DenyList({ db, waitUntilFresh: () => undefined, nowMs }),
      nowMs,
    }),
    auditExports: new AuditExports({ db, log, nowMs, keys: [SEAL_KEY], downloadPath: () => '' }),
    auditExportPages: new AuditExportPages(db),
    auditPages,
    attention: new AttentionFinder({ db, locks: administration.locks, nowMs }),
    search: new Search({ db, nowMs, auditPages, ...domain }),
    streams,
    cursors: new PageCursors(Buffer.from('a test')),
  };
  const check = async (principal: Principal) => {
    if (![...principals.values()].includes(principal)) throw new InvalidTokenError('revoked');
    if ((principal.expiresAtMs ?? Number.POSITIVE_INFINITY) <= Date.now()) throw new InvalidTokenError('expired');
  };
  const watch = new AccessWatch({
    check,
    recheck: async () => undefined,
    guards: UNGUARDED,
    nowMs: Date.now,
    onError: () => undefined,
  });
  const server = createGraphqlServer({
    schema: async () => graphqlSchema(),
    services: { ...services, ...replaced },
    authenticateSocket: async (token) => {
      const principal = token === undefined ? undefined : principals.get(token);
      return principal?.tokenUse === 'forgot_password' ? undefined : principal;
    },
    recheck: check,
    watch,
    isAuditFull: () => false,
    recordOperation: async (record) => void records.push(record),
    log,
    maxCost: 5_000,
    persistedMode: 'off',
    persistedDocuments: () => new Map(),
    introspection: true,
    jit: true,
    production: false,
    graphiql: {},
    ...deps,
  });
  const memory = new MemoryAccounts();
  const door = createServer((req, res) => {
    const exchange = new Exchange(req, res);
    exchange.guards = UNGUARDED;
    exchange.correlationId = String(req.headers['x-correlation-id'] ?? 'none');
    exchange.state.principal = principals.get(/^Bearer (.+)$/.exec(req.headers.authorization ?? '')?.[1] ?? '');
    try {
      server.handle(exchange);
    } catch (error) {
      refuse(exchange, error, log);
    }
  });
  door.on('upgrade', (req, socket, head) => {
    const exchange = new Exchange(req, new ServerResponse(req), { socket, head });
    exchange.guards = UNGUARDED;
    exchange.held = memory.open('unidentified');
    server.handle(exchange);
  });
  await new Promise<void>((resolve) => door.listen(0, '127.0.0.1', resolve));
  const url = `http://127.0.0.1:${(door.address() as AddressInfo).port}/graphql`;

  const newToken = ({ nodeId = NODE, permissions = PERMISSIONS, use = 'api', expiresAtMs }: TokenOptions = {}) => {
    const token = `token-${principals.size + 1}`;
    principals.set(token, {
      tokenClass: 'user',
      tokenUse: use,
      subject: 'somebody',
      nodeId,
      clientId: 'dddddddd-0000-4000-8000-000000000004',
      sessionId: undefined,
      tokenId: token,
      familyId: undefined,
      issuedAt: undefined,
      permissions: new Set(permissions),
      expiresAtMs,
    });
    return token;
  };
  const token = newToken();
  const test = db.unscoped('a test sets its rows');
  await test.run((k) => k.insertInto('nodes').values([NODE, OTHER_NODE].map((id) => ({ id, name: id }))));
  await test.run((k) => k.insertInto('chains').values({ id: CHAIN, name: 'ethereum' }));

  const fetchText = async (init: RequestInit, query = ''): Promise<Answer> => {
    const response = await fetch(`${url}${query}`, init);
    const text = await response.text();
    return { status: response.status, headers: response.headers, text, json: parsed(text) };
  };

  const queryOf = (document: string, options: QueryOptions = {}): RequestInit => {
    const bearer = 'token' in options ? options.token : token;
    const { variables, operationName, headers } = options;
    return {
      method: 'POST',
      headers: {
        'content-type': 'application/json',
        ...(bearer === undefined ? {} : { authorization: `Bearer ${bearer}` }),
        ...headers,
      },
      body: JSON.stringify({ query: document, variables, operationName }),
    };
  };
  const query = (document: string, options?: QueryOptions) => fetchText(queryOf(document, options));
  /** Sends a body of JSON: a batch, or a text as it is. */
  const post = (body: unknown, headers?: Record<string, string>) => {
    const own = { 'content-type': 'application/json', authorization: `Bearer ${token}`, ...headers };
    return fetchText({ method: 'POST', headers: own, body: typeof body === 'string' ? body : JSON.stringify(body) });
  };

  return {
    server,
    database,
    transactions,
    streams,
    watch,
    url,
    /** A token with every permission of `NODE`. */
    token,
    records,
    faults,
    newToken,
    /** The token is good no more. */
    revoke: (ended: string) => void principals.delete(ended),
    fetch: fetchText,
    /** The number of open connections. */
    connections: () => promisify(door.getConnections.bind(door))(),
    query,
    post,
    /** Opens a stream of events. */
    stream: async (document: string, options: QueryOptions = {}) => {
      const headers = { accept: 'text/event-stream', ...options.headers };
      return new EventReader(await fetch(url, queryOf(document, { ...options, headers })));
    },
    /** A generated operation, whose answer must be without errors. */
    run: async <Result, Variables extends Record<string, unknown>>(
      document: TypedDocumentNode<Result, Variables>,
      variables: Variables,
      options?: QueryOptions,
    ): Promise<Result> => {
      const { json, text } = await query(print(document), { ...options, variables });
      if (json?.errors) throw new Error(text);
      return json.data;
    },
    /** Makes accounts of a node, a day apart, and gives their ids. */
    addAccounts: async (count: number, { nodeId = NODE, at = dayOf, deleted = false } = {}) => {
      const rows = Array.from({ length: count }, (_, index) => ({
        id: newId(),
        node_id: nodeId,
        name: `Account ${index}`,
        type: index % 2 === 0 ? 'organisation' : 'customer-segregated',
        status: 1,
        created_at: at(index),
        updated_at: at(index),
        deleted_at: deleted ? at(index) : null,
      }));
      if (rows.length > 0) await test.run((k) => k.insertInto('accounts').values(rows));
      return rows.map(({ id }) => id);
    },
    addWallets: async (accountId: string, count: number, nodeId = NODE) => {
      const rows = Array.from({ length: count }, (_, index) => ({
        id: newId(),
        node_id: nodeId,
        account_id: accountId,
        chain_id: CHAIN,
        created_at: dayOf(index),
        updated_at: dayOf(index),
      }));
      await test.run((k) => k.insertInto('wallets').values(rows));
      return rows.map(({ id }) => id);
    },
    register: async (id: string, nodeId = NODE) => {
      await transactions.register({ id, nodeId, collection: 'user_transactions', type: 1, assetId: null });
    },
    notify: async (id: string, status: number, more: object = {}) => {
      const at = new Date(Date.UTC(2026, 5, 1) + ++serial * 1_000).toISOString();
      const body = Buffer.from(JSON.stringify({ id, type: 1, status, created_at: at, updated_at: at, ...more }));
      const topic: TransactionTopic = 'transactions.user';
      await transactions.applyBatch(topic, [{ body, correlationId: `of-${id}-${status}` }]);
    },
    [Symbol.asyncDispose]: async () => {
      await stack.disposeAsync();
      await server.stop();
      streams.stop();
      door.closeAllConnections();
      await new Promise((resolve) => door.close(resolve));
    },
  };
}

/** Waits until something holds; the test's own deadline ends it. */
export async function until(holds: () => boolean): Promise<void> {
  while (!holds()) await new Promise((resolve) => setTimeout(resolve, 5));
}

function dayOf(index: number): string {
  return new Date(Date.UTC(2026, 0, 1) + index * 86_400_000).toISOString();
}

function newId(): string {
  serial += 1;
  return `eeeeeeee-0000-4000-8000-${String(serial).padStart(12, '0')}`;
}

function parsed(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return undefined;
  }
}
