import { randomBytes, randomUUID } from 'node:crypto';
import * as incubating from '@opentelemetry/semantic-conventions/incubating';
import { afterAll, beforeAll, expect, it } from 'vitest';
import { gatewayFile } from '../support/gateway/gateway-file.ts';
import { type EventReader, openStream } from '../support/graphql/event-reader.ts';
import { type Portcullis, startOnRealServers, startReplica } from '../support/harness.ts';
import { type CollectedSpan, type Collector, startCollector } from '../support/observability/collector.ts';
import { describeReal } from '../support/services/real.ts';
import { basic } from '../support/webhook/fixture.ts';

const SUBSCRIPTION = 'subscription { transactionUpdates { cursor transaction { id } } }';
const REGISTER = 'mutation ($input: RegisterTransactionInput!) { registerTransaction(input: $input) { __typename } }';
const AT = '2026-11-21T10:30:00Z';

/** A caller that traces. */
function caller() {
  const traceId = randomBytes(16).toString('hex');
  const spanId = randomBytes(8).toString('hex');
  return { traceId, spanId, traceparent: `00-${traceId}-${spanId}-01` };
}

/** Each span behind its parents, by their names. */
function paths(spans: readonly CollectedSpan[]): string[] {
  const byId = new Map(spans.map((span) => [span.spanId, span]));
  const pathOf = (span: CollectedSpan): string => {
    const parent = byId.get(span.parentSpanId ?? '');
    return `${parent ? `${pathOf(parent)} > ` : ''}${span.service}: ${span.name}`;
  };
  return spans.map(pathOf).sort();
}

describeReal(['postgres', 'redis', 'kafka'], 'traces', () => {
  const stack = new AsyncDisposableStack();
  const lines: Record<string, unknown>[] = [];
  let collector: Collector;
  let gateway: Portcullis;
  let front: Portcullis;
  let token: string;

  beforeAll(async () => {
    collector = stack.use(await startCollector());
    const tracing = (name: string) => ({
      OTEL_EXPORTER_OTLP_ENDPOINT: collector.url,
      OTEL_SERVICE_NAME: name,
      OTEL_BSP_SCHEDULE_DELAY: '50',
    });
    const keep = (fields: object) => void lines.push({ ...fields });
    const log = { debug: keep, info: keep, warn: keep, error: keep };
    gateway = stack.use(
      await startOnRealServers({ env: { PORTCULLIS_ROLE: 'gateway', ...tracing('gateway') }, overrides: { log } }),
    );
    stack.use(await startReplica(gateway, { env: { PORTCULLIS_ROLE: 'worker', ...tracing('worker') } }));
    const accounts = { accounts: { at: gateway.url, guards: 'upstream' } };
    const file = stack.use(await gatewayFile(accounts));
    const env = { PORTCULLIS_ROLE: 'gateway', GATEWAY_CONFIG: file.path, ...tracing('front') };
    front = stack.use(await startReplica(gateway, { env }));
    token = await gateway.clientToken();
  });
  afterAll(() => stack.disposeAsync());

  /** Hears each transaction update at the front. */
  async function subscriber(): Promise<EventReader> {
    return openStream(front, token, SUBSCRIPTION);
  }

  async function register(id: string): Promise<void> {
    const input = { id, collection: 'USER_TRANSACTIONS', type: 1 };
    const { json } = await gateway.call('POST', '/graphql', { token, json: { query: REGISTER, variables: { input } } });
    expect(json.data.registerTransaction.__typename).toBe('Transaction');
  }

  async function notify(id: string, headers: Record<string, string>): Promise<void> {
    const { username, password } = gateway.webhook;
    const authorization = basic(username, password);
    const told = await gateway.call('POST', '/v2/webhooks/custodial', {
      json: { id, type: 1, status: 3, created_at: AT, updated_at: AT },
      headers: { authorization, ...headers },
    });
    expect(told.status).toBe(200);
  }

  it('one trace spans the request of a notification, Kafka, the event log and the delivery to its subscriber', async () => {
    const id = `t-${randomUUID()}`;
    await register(id);
    await using reader = await subscriber();
    const { traceId, spanId, traceparent } = caller();
    await notify(id, { traceparent, 'x-correlation-id': `c-${traceId}` });
    expect((await reader.nextJson()).data.transactionUpdates.transaction.id).toBe(id);

    const spans = await collector.traceWith(traceId, 'deliver transaction_events');
    const way = 'gateway: POST /v2/webhooks/custodial';
    const wanted = [
      way,
      `${way} > gateway: send transactions.admin`,
      `${way} > gateway: send transactions.user`,
      `${way} > gateway: send transactions.user > worker: process transactions.user`,
      `${way} > gateway: send transactions.user > worker: process transactions.user > front: deliver transaction_events`,
    ];
    expect(paths(spans)).toEqual(expect.arrayContaining(wanted));
    expect(spans.find(({ name }) => name.startsWith('POST'))?.parentSpanId).toBe(spanId);
    expect(lines.find((line) => line.correlation_id === `c-${traceId}`)).toMatchObject({ trace_id: traceId });
  });

  it('a notification that waited for its registration is delivered in the trace of the notification', async () => {
    const id = `t-${randomUUID()}`;
    await using reader = await subscriber();
    const { traceId, traceparent } = caller();
    await notify(id, { traceparent });
    const { db } = gateway.service.context.database;
    const parked = () =>
      db.unscoped('a test').run((k) => k.selectFrom('parked_notifications').select('id').where('id', '=', id));
    await expect.poll(parked).toHaveLength(1);
    await register(id);
    expect((await reader.nextJson()).data.transactionUpdates.transaction.id).toBe(id);
    const spans = await collector.traceWith(traceId, 'deliver transaction_events');
    // Both topics bring it, and it is parked once.
    const ways = ['transactions.admin', 'transactions.user'].map(
      (topic) => `gateway: POST /v2/webhooks/custodial > gateway: send ${topic} > worker: process ${topic}`,
    );
    expect(ways.map((way) => `${way} > front: deliver transaction_events`)).toContainEqual(
      paths(spans).find((path) => path.endsWith('deliver transaction_events')),
    );
  });

  it('the KYC event of a user is sent in the trace of the request that migrated them', async () => {
    const { traceId, traceparent } = caller();
    const json = { wallet_address: `0x${randomBytes(20).toString('hex')}`, external_id: randomUUID(), kyc_sent: false };
    const path = '/v2/users/migrate/with-wallet';
    const migrated = await gateway.call('POST', path, { token, json, headers: { traceparent } });
    expect(migrated.status).toBe(201);
    const spans = await collector.traceWith(traceId, 'send users.kyc-token');
    expect(paths(spans)).toContain(`gateway: POST ${path} > worker: send users.kyc-token`);
  });

  it("a trace continues at an upstream, whose span is a child of the gateway's client span", async () => {
    const { traceId, spanId, traceparent } = caller();
    const headers = { traceparent, 'x-target-server': 'accounts' };
    expect((await front.call('GET', '/v1/accounts', { token, headers })).status).toBe(200);
    const spans = await collector.traceWith(traceId, 'GET');
    const way = 'front: GET /v1/accounts';
    const wanted = [way, `${way} > front: GET`, `${way} > front: GET > gateway: GET /v1/accounts`];
    await expect.poll(() => paths(collector.spans.filter((span) => span.traceId === traceId))).toEqual(wanted);
    expect(spans.find(({ parentSpanId }) => parentSpanId === spanId)?.service).toBe('front');
  });

  it('spans use the attribute names of the conventions, and contain no secrets or ids', async () => {
    const known = new Set<unknown>(Object.values(incubating));
    const own = new Set(['portcullis.transport']);
    const names = collector.spans.flatMap(({ attributes }) => Object.keys(attributes));
    expect(names).not.toEqual([]);
    expect([...new Set(names)].filter((name) => !known.has(name) && !own.has(name))).toEqual([]);
    const told = JSON.stringify(collector.spans.map(({ name, attributes }) => [name, attributes]));
    const { demo, webhook } = gateway;
    const hidden = [token, webhook.password, demo.node_id, demo.client.client_id, demo.client.client_secret];
    for (const secret of hidden) expect(told).not.toContain(secret);
    expect(told).not.toMatch(/[0-9a-f]{8}-[0-9a-f]{4}-/);
  });
});
