import { randomUUID } from 'node:crypto';
import { createServer, ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import { buildSchema, type GraphQLSchema } from 'graphql';
import type { Principal } from '../../../src/access/identity/callers.ts';
import { createGraphqlRuntime } from '../../../src/api/graphql/runtime.ts';
import type { FeatureServices } from '../../../src/api/shared/services.ts';
import { AuditChain, type AuditRecord, jsonOf, type UnchainedRecord } from '../../../src/audit/audit-record.ts';
import { AuditLog } from '../../../src/gateway/exchange/audit.ts';
import { Exchange } from '../../../src/gateway/exchange/exchange.ts';
import { normalTarget } from '../../../src/gateway/exchange/request-head.ts';
import { refuse } from '../../../src/gateway/exchange/responses.ts';
import type { Log } from '../../../src/lib/log.ts';
import { MemoryAccounts } from '../../../src/platform/held-memory.ts';
import { ENDLESS } from '../harness/endless.ts';
import { UNGUARDED } from './fixture.ts';

/** A schema whose fields, arguments and input fields have the names of secrets, and others. */
const SDL = `
  type Query {
    client(id: ID!): Client!
    clients(name: String): [Client!]!
    things: [Thing!]!
    check(token: String, search: String, codes: [String!], settings: Settings): Boolean
    missing: Client!
  }
  type Mutation {
    createSupervisor(input: SupervisorInput!): Boolean
    createSupervisors(inputs: [SupervisorInput!]!): Boolean
    setSupervisorPassword(id: ID!, password: String!): Boolean
    createClient(name: String!): Created!
  }
  type Subscription { created(token: String): Created! }
  type Client { id: ID! name: String! secret: Settled owner: Client }
  type Settled { since: String }
  type Created { client: Client! clientSecret: String! }
  union Thing = Client | Created
  input SupervisorInput { name: String! password: String! age: Int contact: Contact }
  input Contact { city: String apiToken: String keys: [Key!] }
  input Key { label: String clientSecret: String! }
  input Settings { label: String search: String secret: Key }
`;

export const SECRET = 'ZQ-hunter2';

export const schema: GraphQLSchema = buildSchema(SDL);

const client = { __typename: 'Client', id: '1', name: 'Ada', secret: { since: SECRET } };
const created = { __typename: 'Created', client, clientSecret: SECRET };
const rootValue = {
  client: { ...client, owner: client },
  clients: [client],
  things: [client, created],
  check: true,
  missing: null,
  createSupervisor: true,
  createSupervisors: true,
  setSupervisorPassword: true,
  createClient: created,
};

/** GraphQL over a schema, by default that one, with its audit records. */
export async function startAuditFixture(served: GraphQLSchema = withResolvers()) {
  const lines: string[] = [];
  const line = (fields: object, message: string) =>
    void lines.push(
      JSON.stringify({ ...fields, message }, (_key, value) => (value instanceof Error ? `${value.stack}` : value)),
    );
  const log: Log = { debug: line, info: line, warn: line, error: line };
  const records: AuditRecord[] = [];
  const chain = new AuditChain(randomUUID(), {
    append: (text) => void records.push(JSON.parse(jsonOf(Buffer.from(text ?? '')))),
  });
  const keep = (record: UnchainedRecord, kept?: () => void) => {
    chain.append(record);
    kept?.();
  };
  const audit = new AuditLog({ add: keep, commit: () => undefined }, log);
  const runtime = createGraphqlRuntime(served, {
    services: {
      migrationProgress: { stop: () => undefined },
      watch: { watch: () => () => undefined },
    } as unknown as FeatureServices,
    authenticateSocket: async () => principal,
    recheck: async () => undefined,
    watch: ENDLESS,
    isAuditFull: () => false,
    recordOperation: (record) => audit.recordOperation(record),
    log,
    maxCost: 100_000,
    introspection: true,
    jit: true,
    persistedMode: 'allow',
    persistedDocuments: () => new Map(),
    production: false,
    graphiql: false,
  });
  const door = createServer(async (req, res) => {
    const exchange = new Exchange(req, res);
    exchange.guards = UNGUARDED;
    exchange.target = normalTarget(req.url ?? '');
    res.setHeader('X-Correlation-ID', 'an id');
    exchange.audit.capture.install((aborted, kept) => audit.record(exchange, aborted, kept));
    try {
      await runtime.answer(exchange, principal);
    } catch (error) {
      refuse(exchange, error, log);
    }
  });
  const memory = new MemoryAccounts();
  door.on('upgrade', (req, socket, head) => {
    const exchange = new Exchange(req, new ServerResponse(req), { socket, head });
    exchange.guards = UNGUARDED;
    exchange.held = memory.open('unidentified');
    runtime.accept(exchange);
  });
  await new Promise<void>((resolve) => door.listen(0, '127.0.0.1', resolve));
  const url = `http://127.0.0.1:${(door.address() as AddressInfo).port}/graphql`;
  return {
    url,
    records,
    lines,
    post: async (body: unknown, headers?: Record<string, string>) => {
      const text = typeof body === 'string' ? body : JSON.stringify(body);
      const all = { 'content-type': 'application/json', ...headers };
      return (await fetch(url, { method: 'POST', headers: all, body: text })).text();
    },
    get: async (query: string) =>
      (await fetch(`${url}?${query}`, { headers: { 'content-type': 'application/json' } })).text(),
    [Symbol.asyncDispose]: async () => {
      await runtime.stop();
      door.closeAllConnections();
      await new Promise((resolve) => door.close(resolve));
    },
  };
}

const principal: Principal = {
  tokenClass: 'user',
  tokenUse: 'api',
  subject: 'somebody',
  nodeId: 'aaaaaaaa-0000-4000-8000-000000000001',
  clientId: 'dddddddd-0000-4000-8000-000000000004',
  sessionId: undefined,
  tokenId: 'a token',
  familyId: undefined,
  issuedAt: undefined,
  permissions: new Set(),
  expiresAtMs: undefined,
};

/** Root fields answer the same to whoever asks. */
function withResolvers(): GraphQLSchema {
  const roots = [schema.getQueryType(), schema.getMutationType()];
  for (const [name, field] of roots.flatMap((root) => Object.entries(root?.getFields() ?? {}))) {
    field.resolve = () => rootValue[name as keyof typeof rootValue];
  }
  const subscription = schema.getSubscriptionType()?.getFields().created;
  if (!subscription) throw new Error('the schema has it');
  subscription.subscribe = async function* () {
    yield { created };
    yield { created };
  };
  return schema;
}
