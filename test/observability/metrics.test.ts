import { randomUUID } from 'node:crypto';
import { readFileSync } from 'node:fs';
import { afterAll, beforeAll, expect, it, vi } from 'vitest';
import { parseGatewayConfig } from '../../src/gateway/endpoints/gateway-config.ts';
import { uuidV7 } from '../../src/lib/uuid-v7.ts';
import { anchorsOf } from '../support/docs/markdown.ts';
import { startUpstream } from '../support/gateway/forwarder.ts';
import { gatewayFile } from '../support/gateway/gateway-file.ts';
import { openStream } from '../support/graphql/event-reader.ts';
import { type Portcullis, startOnRealServers } from '../support/harness.ts';
import { alerts, dashboardExpressions, documented } from '../support/observability/documents.ts';
import { readExpression, strangersIn } from '../support/observability/promql.ts';
import { familyOf, type Scrape, scrape } from '../support/observability/scrape.ts';
import { describeReal } from '../support/services/real.ts';
import { basic } from '../support/webhook/fixture.ts';

const AT = '2026-11-21T10:30:00Z';
const SERVER = 'http_server_request_duration_seconds';
const CLIENT = 'http_client_request_duration_seconds';
const OPERATION = 'graphql_operation_duration_seconds';
const SENT = 'messaging_client_operation_duration_seconds';
const NETWORK = '11111111-2222-4333-8444-555555555555';
const BUCKETS = ['0.005', '0.01', '0.025', '0.05', '0.075', '0.1', '0.25', '0.5', '0.75', '1', '2.5', '5', '7.5', '10'];

let p: Portcullis;
let routes: Set<string>;
let told: Scrape;
const stack = new AsyncDisposableStack();
const parked = uuidV7();
const unknownPath = `/v1/${randomUUID()}`;

async function traffic(): Promise<void> {
  const token = await p.clientToken();
  const graphql = (query: string) => p.call('POST', '/graphql', { token, json: { query } });
  const accounts = await p.call('GET', '/v1/accounts', { token, headers: { 'x-target-server': 'accounts' } });
  expect(accounts.status).toBe(200);
  const wallet = randomUUID();
  await p.call('POST', `/v1/wallets/${wallet}/rules`, { token, json: {} });
  await p.call('GET', unknownPath, { token });
  await p.call('QUERY', '/v1/accounts', { token });
  await p.call('GET', '/v1/accounts');
  await p.call('GET', '/far/things', { token });
  await p.call('POST', '/v2/oauth/token', {
    json: { grant_type: 'client_credentials', client_id: p.demo.client.client_id, client_secret: 'wrong' },
  });
  await graphql('{ me { subject } }');
  await graphql(
    'mutation { registerTransaction(input: {id: "", collection: USER_TRANSACTIONS, type: 1}) { __typename } }',
  );
  const { username, password } = p.webhook;
  const authorization = basic(username, password);
  const json = { id: parked, type: 1, status: 3, created_at: AT, updated_at: AT };
  expect((await p.call('POST', '/v2/webhooks/custodial', { json, headers: { authorization } })).status).toBe(200);
  const poison = { topic: 'transactions.registered', key: 'k', value: Buffer.from('no registration'), headers: {} };
  await p.service.context.bus.publish([poison]);
  await p.call('GET', '/v2/blockchain/gas-fee', { token });
  const subscribe = () => openStream(p, token, 'subscription { transactionUpdates { cursor } }');
  await (await subscribe())[Symbol.asyncDispose]();
  stack.use(await subscribe());
}

describeReal(['postgres', 'redis', 'kafka'], 'metrics', () => {
  beforeAll(async () => {
    const upstream = stack.use(await startUpstream((_req, res) => void res.end('far')));
    const far = { methods: ['GET'], path: '/far/{thing}', services: ['far'] };
    const file = stack.use(
      await gatewayFile({ far: { at: upstream.url } }, [far], { transactions_lookup: { url: upstream.url } }),
    );
    const env = { GATEWAY_CONFIG: file.path, GAS_RPC_URLS: `${NETWORK}=http://127.0.0.1:9/` };
    p = await startOnRealServers({ env });
    routes = new Set(parseGatewayConfig('', readFileSync(file.path, 'utf8')).endpoints.map(({ path }) => path));
    await traffic();
    await vi.waitFor(
      async () => {
        told = await scrape(p.service);
        const dead = { messaging_destination_name: 'transactions.registered' };
        expect(told.value('portcullis_dead_letters_total', dead)).toBe(1);
        expect(told.value('portcullis_transaction_lookups_total', { outcome: 'failed' })).toBeGreaterThan(0);
        const waited = [
          'portcullis_parked_notifications',
          'portcullis_subscriptions',
          'portcullis_streams_ended_total',
        ];
        expect(waited.map((name) => told.value(name))).toEqual([1, 1, 1]);
      },
      { interval: 200 },
    );
  });
  afterAll(async () => {
    await stack.disposeAsync();
    await p?.[Symbol.asyncDispose]();
  });

  it.each([
    [
      'an endpoint',
      `${SERVER}_count`,
      'http_request_method=GET http_route=/v1/accounts http_response_status_code=200',
      1,
    ],
    ['a path parameter by its name', `${SERVER}_count`, 'http_route=/v1/wallets/{wallet_id}/rules', 1],
    ['refusals by status', `${SERVER}_count`, 'http_route=/v1/accounts http_response_status_code=401', 1],
    [
      'requests to no endpoint',
      `${SERVER}_count`,
      'http_route= http_request_method=GET http_response_status_code=404',
      1,
    ],
    ['an unknown method as _OTHER', `${SERVER}_count`, 'http_request_method=_OTHER http_route=', 1],
    [
      'an upstream',
      `${CLIENT}_count`,
      'service=far http_request_method=GET http_response_status_code=200 error_type=',
      1,
    ],
    ['queries', `${OPERATION}_count`, 'graphql_operation_type=query outcome=ok', 1],
    ['mutations', `${OPERATION}_count`, 'graphql_operation_type=mutation', 1],
    ['subscriptions', `${OPERATION}_count`, 'graphql_operation_type=subscription outcome=ok', 2],
    ['internal errors', `${OPERATION}_count`, 'outcome=failed', 0],
    ['sent messages', `${SENT}_count`, 'messaging_destination_name=transactions.user error_type=', 1],
    ['handled messages', 'messaging_client_consumed_messages_total', 'messaging_destination_name=transactions.user', 1],
    ['dead letters', 'portcullis_dead_letters_total', 'messaging_destination_name=transactions.registered', 1],
    ['lag', 'portcullis_consumer_lag_messages', 'messaging_consumer_group_name=portcullis.reference', 0],
    ['the outbox', 'portcullis_outbox_events', '', 0],
    ['unregistered transactions', 'portcullis_transactions_unregistered', '', 1],
    ['migrations', 'portcullis_migrations_running', '', 0],
    ['the audit spool', 'portcullis_audit_spool_full', '', 0],
    ['wrong secrets', 'portcullis_wrong_secrets_total', 'outcome=refused', 1],
    ['wrong webhook passwords', 'portcullis_webhook_wrong_passwords_total', 'kind=single', 0],
    ['guards', 'portcullis_guard_decisions_total', 'guard=certificate outcome=refused', 0],
    ['the state of the cache', 'portcullis_part_up', 'part=cache', 1],
    ['circuits', 'portcullis_upstream_circuit_closed', 'service=far', 1],
    ['networks of gas fees', 'portcullis_gas_fee_networks', 'state=unavailable', 1],
    ['the build', 'portcullis_build_info', 'role=all', 1],
  ])('count or measure %s', (_what, name, labels, value) => {
    const wanted = labels === '' ? [] : labels.split(' ').map((label) => label.split('='));
    expect(told.value(name, Object.fromEntries(wanted))).toBe(value);
  });

  it('durations have the buckets of the OpenTelemetry conventions, with cumulative counts', () => {
    const histograms = [...told.families.values()].filter(
      ({ name, type }) => type === 'histogram' && !name.startsWith('nodejs'),
    );
    expect(histograms.map(({ name }) => name)).toEqual(expect.arrayContaining([SERVER, CLIENT]));
    for (const { name } of histograms) {
      const buckets = told.samples.filter((sample) => sample.name === `${name}_bucket`);
      const series = Map.groupBy(buckets, ({ labels: { le: _le, ...labels } }) => JSON.stringify(labels));
      for (const [key, of] of series) {
        expect(of.map(({ labels }) => labels.le)).toEqual([...BUCKETS, '+Inf']);
        expect(of.map(({ value }) => value)).toEqual(of.map(({ value }) => value).toSorted((a, b) => a - b));
        expect(told.value(`${name}_count`, JSON.parse(key))).toBe(of.at(-1)?.value);
      }
    }
  });

  it('no label contains an id, a path, an address or a tenant; http_route is a route of the table', () => {
    for (const { name, labels } of told.samples.filter((sample) => !sample.name.startsWith('nodejs_'))) {
      for (const [label, value] of Object.entries(labels)) {
        if (label === 'http_route') expect([...routes, '']).toContain(value);
        else expect(value, `${name} ${label}`).toMatch(/^[\w.+-]{0,64}$/);
        expect(value, `${name} ${label}`).not.toMatch(/[0-9a-f]{8}-[0-9a-f]{4}|\d{1,3}\.\d{1,3}\.\d{1,3}\.\d{1,3}|@/i);
      }
    }
    const hidden = [p.demo.node_id, p.demo.client.client_id, parked, unknownPath, NETWORK];
    for (const one of hidden) expect(told.text).not.toContain(one);
  });

  it('names, types and help texts follow the rules of the Prometheus linter', () => {
    for (const { name, type, help } of told.families.values()) {
      expect(name).toMatch(/^[a-z][a-z0-9_]*$/);
      expect(help, name).not.toBe('');
      expect(['counter', 'gauge', 'histogram'], name).toContain(type);
      expect(name.endsWith('_total'), name).toBe(type === 'counter');
      expect(name, name).not.toMatch(/_(?:count|sum|bucket|info_.*|counter|gauge|histogram)$/);
      expect(name, name).not.toMatch(/(?:^|_)(?:ms|milliseconds?|minutes?|hours?|kb|mb|percent)(?:_|$)/);
      if (type === 'histogram') expect(name).toMatch(/_seconds$/);
    }
    for (const sample of told.samples) expect(familyOf(told, sample), sample.name).toBeDefined();
  });

  it('docs/operations/metrics.md lists exactly the metrics, with their labels and meaning', () => {
    const own = [...told.families.values()].filter(({ name }) => !/^(?:nodejs|process)_/.test(name));
    const labelsOf = (name: string) => {
      const of = told.samples.filter((sample) => familyOf(told, sample)?.name === name);
      return [...new Set(of.flatMap(({ labels }) => Object.keys(labels)))].filter((label) => label !== 'le').sort();
    };
    const present = own.map(({ name, help }) => [name, labelsOf(name), help]);
    expect(
      documented()
        .map(({ name, labels, meaning }) => [name, labels, meaning])
        .sort(),
    ).toEqual(present.sort());
  });

  it('every expression of the dashboard and the alerts is valid PromQL on existing metrics and labels', () => {
    const expressions = [...dashboardExpressions(), ...alerts().map(({ expr }) => expr)];
    expect(expressions.length).toBeGreaterThan(60);
    for (const expression of expressions) {
      const read = readExpression(expression);
      expect(read.faults, expression).toEqual([]);
      expect(strangersIn(read, told), expression).toEqual([]);
    }
  });

  it('alerts on metrics that other programs export too filter by job', () => {
    const shared = alerts().flatMap(({ alert, expr }) =>
      readExpression(expr)
        .selectors.filter(({ metric }) => !metric.startsWith('portcullis_'))
        .map(({ metric, labels }) => ({ alert, metric, labels })),
    );
    expect(shared.map(({ metric }) => metric)).toEqual(expect.arrayContaining(['up', `${SERVER}_count`]));
    expect(shared.filter(({ labels }) => !labels.includes('job'))).toEqual([]);
  });

  it('every alert has a summary, a description and a severity, and links to an existing section of its runbook', () => {
    expect(alerts().length).toBeGreaterThan(20);
    for (const { alert, labels, annotations } of alerts()) {
      expect(['page', 'ticket'], alert).toContain(labels.severity);
      expect(annotations.summary, alert).toMatch(/\w/);
      expect(annotations.description, alert).toMatch(/\.$/);
      const [page = '', anchor] = (annotations.runbook_url ?? '').split('#');
      expect(page, alert).toMatch(/^docs\/operations\/[\w-]+\.md$/);
      expect(anchorsOf(page), alert).toContain(anchor);
    }
  });
});
