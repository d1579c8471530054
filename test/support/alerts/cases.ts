import { VERSION } from '../../../src/platform/health.ts';

/** A number that stays while all is well, in the fault and in what is just not one; undefined where there is no series. */
interface Level {
  well: number | undefined;
  fault: number | undefined;
  almost: number | undefined;
}

/** A number that rises so much a minute while all is well, in the fault and in what is just not one, and begins at `start`. */
interface Rise {
  start: number;
  well: number;
  fault: number;
  almost: number;
}

/** A number whose scrapes fail for some minutes from the beginning of the fault, and what it is before and after them. */
interface Gap {
  minutes: number;
  before: number;
  fault: number;
  almost: number;
}

export type Series = { level: Level } | { rise: Rise } | { gap: Gap };

/** When an alert fires, and when it does not. The times are minutes since the fault began. */
export interface AlertCase {
  alert: string;
  /** Tells cases of one alert apart. */
  when: string;
  series: Record<string, Series>;
  lasts: number;
  fires: number;
  quiet: number;
  /** How long lasts what is just not a fault. */
  almostLasts: number;
  labels: Record<string, string>;
  /** What the person on call reads. */
  description: string;
  /** Alerts that cannot but fire with it. */
  also: string[];
}

const JOB = 'job="portcullis"';
const GATEWAY_1 = `instance="gateway-1:4001",${JOB}`;
const GATEWAY_2 = `instance="gateway-2:4001",${JOB}`;
const WORKER = `instance="worker-1:4001",${JOB}`;
const onGateway = { instance: 'gateway-1:4001', job: 'portcullis' };
const onWorker = { instance: 'worker-1:4001', job: 'portcullis' };
const build = (role: string, at: string) => `portcullis_build_info{role="${role}",version="${VERSION}",${at}}`;
const BUILDS = { gateway1: build('gateway', GATEWAY_1), gateway2: build('gateway', GATEWAY_2) };

/** Longer than alerts look back, but for the rise of what is not registered. */
export const WELL_MINUTES = 20;
/** How long is looked on after the end of an alert. */
export const AFTER_MINUTES = 2;

const SERVER = 'http_server_request_duration_seconds';
const CLIENT = 'http_client_request_duration_seconds';
const TRANSFERS = `messaging_consumer_group_name="portcullis.transactions",messaging_destination_name="transactions.user",${WORKER}`;
const transfers = {
  messaging_consumer_group_name: 'portcullis.transactions',
  messaging_destination_name: 'transactions.user',
};
const batches = (errorType: string) =>
  `messaging_process_duration_seconds_count{error_type="${errorType}",${TRANSFERS}}`;
const requests = (status: number) =>
  `${SERVER}_count{http_request_method="GET",http_response_status_code="${status}",http_route="/v1/accounts",${GATEWAY_1}}`;
const upTo = (seconds: string) => `${SERVER}_bucket{http_route="/v1/accounts",le="${seconds}",${GATEWAY_1}}`;
const operations = (outcome: string) =>
  `graphql_operation_duration_seconds_count{graphql_operation_type="query",outcome="${outcome}",${GATEWAY_1}}`;
const tools = (outcome: string) => `portcullis_tool_calls_total{outcome="${outcome}",${GATEWAY_1}}`;
const asked = (service: string) => ({
  closed: `portcullis_upstream_circuit_closed{service="${service}",${GATEWAY_1}}`,
  requests: `portcullis_upstream_requests_total{outcome="refused",service="${service}",${GATEWAY_1}}`,
});
const wallets = asked('wallets');
const unasked = asked('unasked');
const attempts = (errorType: string) => `${CLIENT}_count{error_type="${errorType}",service="wallets",${GATEWAY_1}}`;
const part = (name: string, at: string) => `portcullis_part_up{part="${name}",${at}}`;
const revocationLag = `portcullis_revocation_lag_seconds{${GATEWAY_1}}`;
const loopAge = `portcullis_loop_age_seconds{loop="event_log",${GATEWAY_1}}`;
const unregistered = `portcullis_transactions_unregistered{${WORKER}}`;
const letters = `portcullis_dead_letters_total{messaging_destination_name="transactions.user",${WORKER}}`;
const lost = `portcullis_audit_records_lost_total{reason="spool",${GATEWAY_1}}`;
const webhookRequests = `${SERVER}_count{http_route="/v2/webhooks/custodial",${GATEWAY_1}}`;
const webhookPasswords = (kind: string) => `portcullis_webhook_wrong_passwords_total{kind="${kind}",${GATEWAY_1}}`;

const DEFAULTS = { when: '', labels: {}, also: [] };

/**
 * An alert on something that lasts: it fires as soon as that has lasted `fires` minutes, and is quiet with its end. If the
 * series do not tell what is just not a fault, that is as long as a fault but for a scrape.
 */
function lasting(
  alert: string,
  fires: number,
  series: Record<string, Series>,
  rest: Pick<AlertCase, 'description'> & Partial<AlertCase>,
): AlertCase {
  const lasts = fires + 5;
  const isShorter = Object.values(series).every((one) => 'level' in one && one.level.fault === one.level.almost);
  const almostLasts = isShorter ? fires - 0.25 : lasts;
  return { ...DEFAULTS, alert, fires, series, lasts, quiet: lasts, almostLasts, ...rest };
}

/** An alert on anything that happens again and again for `fires` minutes: it is quiet when five minutes have been free of it. */
function repeated(
  alert: string,
  fires: number,
  series: string,
  rest: Pick<AlertCase, 'description'> & Partial<AlertCase>,
): AlertCase {
  const lasts = fires + 5;
  const often = { ...DEFAULTS, alert, fires, series: { [series]: rise(0, 4, 4) }, lasts, quiet: lasts + 4.75 };
  // What happens shortly is seen for a range longer.
  return { ...often, almostLasts: Math.max(fires - 5, 0.25), ...rest };
}

/** An alert on a part of what happens within five minutes: nearly all of these must be of the fault before it is more than the threshold. */
function proportion(
  alert: string,
  ofHundred: { fault: number; almost: number },
  [bad, good]: readonly [string, string],
  rest: Pick<AlertCase, 'description'> & Partial<AlertCase>,
): AlertCase {
  const { fault, almost } = ofHundred;
  const series = { [bad]: rise(0, fault, almost), [good]: rise(100, 100 - fault, 100 - almost) };
  const lasts = 15;
  return { ...DEFAULTS, alert, series, lasts, fires: 9.75, quiet: lasts, almostLasts: lasts, ...rest };
}

/**
 * An alert on a single thing that has happened, as it happens, before the first scrape, or while no scrape succeeds: it is
 * quiet a quarter of an hour later.
 */
function single(alert: string, series: string, labels: Record<string, string>, description: string): AlertCase[] {
  const once = { ...DEFAULTS, alert, labels, description, fires: 0, lasts: 0.25, quiet: 15, almostLasts: 0.25 };
  const atFirst = { when: 'the first scrape shows them', lasts: 20, almostLasts: 20 };
  return [
    // Just not: those of long ago.
    { ...once, series: { [series]: { rise: { start: 3, well: 0, fault: 4, almost: 0 } } } },
    { ...once, ...atFirst, series: { [series]: level(undefined, 1, 0) } },
    { ...once, ...atFirst, when: 'a process that was restarted has them', series: { [series]: level(3, 1, 3) } },
    {
      ...once,
      ...atFirst,
      when: 'they came while scrapes failed',
      // Just not: scrapes fail, and show afterwards what was there before.
      series: { [series]: { gap: { minutes: 10, before: 3, fault: 4, almost: 3 } } },
      fires: 10,
      lasts: 40,
      quiet: 25,
      almostLasts: 40,
    },
  ];
}

/** For every alert of deploy/prometheus/alerts.yaml one case or more. */
export const CASES: readonly AlertCase[] = [
  lasting(
    'PortcullisDown',
    2,
    { [`up{${GATEWAY_2}}`]: level(1, 0, 0) },
    {
      labels: { instance: 'gateway-2:4001', job: 'portcullis' },
      description: 'gateway-2:4001 has not responded to scrapes for two minutes.',
    },
  ),
  lasting(
    'PortcullisNoGateway',
    2,
    {
      [BUILDS.gateway1]: level(1, undefined, undefined),
      [BUILDS.gateway2]: level(1, undefined, 1),
    },
    { description: 'No process with role all or gateway has been scraped for two minutes.' },
  ),
  lasting(
    'PortcullisNoWorker',
    2,
    { [build('worker', WORKER)]: level(1, undefined, undefined) },
    {
      description:
        'No process with role all or worker has been scraped for two minutes: no events are applied or published.',
    },
  ),
  lasting(
    'PortcullisDatabaseAway',
    1,
    { [part('database', WORKER)]: level(1, 0, 0) },
    {
      labels: { ...onWorker, part: 'database' },
      description: 'worker-1:4001 cannot reach PostgreSQL.',
    },
  ),
  lasting(
    'PortcullisCacheAway',
    2,
    { [part('cache', GATEWAY_1)]: level(1, 0, 0) },
    {
      labels: { ...onGateway, part: 'cache' },
      description:
        'gateway-1:4001 cannot reach Redis, or Redis rejects its commands: limits are counted by each process alone.',
    },
  ),
  lasting(
    'PortcullisRevocationsLate',
    1,
    { [revocationLag]: level(0.5, 6, 4.5), [part('database', GATEWAY_1)]: level(1, 1, 1) },
    {
      labels: onGateway,
      description: 'gateway-1:4001 last read revocations 6s ago: requests with tokens get 503.',
    },
  ),
  lasting(
    'PortcullisRevocationsLate',
    1,
    { [revocationLag]: level(0.5, 6, 6), [part('database', GATEWAY_1)]: level(1, 1, 0) },
    {
      when: 'the database answers',
      labels: onGateway,
      description: 'gateway-1:4001 last read revocations 6s ago: requests with tokens get 503.',
    },
  ),
  lasting(
    'PortcullisBusAway',
    2,
    { [part('bus', GATEWAY_1)]: level(1, 0, 0) },
    {
      labels: { ...onGateway, part: 'bus' },
      description: 'gateway-1:4001 cannot reach Kafka: notifications are rejected.',
    },
  ),
  proportion('PortcullisErrors', { fault: 2.1, almost: 1.9 }, [requests(503), requests(200)], {
    labels: { http_route: '/v1/accounts' },
    description: 'More than 2 % of the requests to /v1/accounts end with 5xx.',
  }),
  proportion('PortcullisGraphqlErrors', { fault: 2.1, almost: 1.9 }, [operations('failed'), operations('ok')], {
    labels: { graphql_operation_type: 'query' },
    description: 'More than 2 % of the operations of type query end with an internal error.',
  }),
  proportion('PortcullisToolsFail', { fault: 2.1, almost: 1.9 }, [tools('failed'), tools('ok')], {
    description: 'More than 2 % of MCP tool calls end with an internal error.',
  }),
  {
    ...DEFAULTS,
    alert: 'PortcullisSlow',
    series: {
      [upTo('1.0')]: rise(100, 98.9, 99.1),
      [upTo('2.5')]: rise(100, 100, 100),
      [upTo('+Inf')]: rise(100, 100, 100),
    },
    lasts: 20,
    fires: 14.5,
    quiet: 20.25,
    almostLasts: 20,
    labels: { http_route: '/v1/accounts' },
    description: 'One request in a hundred to /v1/accounts takes more than a second.',
  },
  lasting(
    'PortcullisCircuitOpen',
    2,
    { [wallets.closed]: level(1, 0, 1), [wallets.requests]: rise(4, 4, 4) },
    {
      labels: { ...onGateway, service: 'wallets' },
      description: 'The circuit breaker of wallets is open on gateway-1:4001.',
    },
  ),
  lasting(
    'PortcullisCircuitOpen',
    2,
    {
      [wallets.closed]: level(1, 0, 1),
      [wallets.requests]: rise(4, 0, 4),
      [unasked.closed]: level(1, 1, 0),
      [unasked.requests]: rise(0, 0, 0),
    },
    {
      when: 'nobody asks the service any more',
      lasts: 15,
      quiet: 9.75,
      labels: { ...onGateway, service: 'wallets' },
      description: 'The circuit breaker of wallets is open on gateway-1:4001.',
    },
  ),
  proportion('PortcullisUpstreamErrors', { fault: 5.2, almost: 4.8 }, [attempts('timeout'), attempts('')], {
    labels: { service: 'wallets' },
    description: 'More than 5 % of the requests to wallets get no response, or an invalid one.',
  }),
  lasting(
    'PortcullisConsumerLag',
    10,
    {
      [`portcullis_consumer_lag_messages{${TRANSFERS}}`]: level(0, 10_001, 10_000),
    },
    {
      labels: transfers,
      description: 'portcullis.transactions is 10001 messages of transactions.user behind.',
    },
  ),
  lasting(
    'PortcullisConsumerStandsStill',
    5,
    { [`portcullis_consumer_oldest_seconds{${TRANSFERS}}`]: level(0, 301, 300) },
    {
      labels: transfers,
      description: 'The oldest message of transactions.user has waited for portcullis.transactions for 5m 1s.',
    },
  ),
  {
    ...DEFAULTS,
    alert: 'PortcullisConsumerFails',
    // Just not: one partition fails, and others go on.
    series: { [batches('Error')]: rise(0, 4, 4), [batches('')]: { rise: { start: 0, well: 4, fault: 0, almost: 4 } } },
    lasts: 20,
    fires: 14.75,
    quiet: 20,
    almostLasts: 9,
    labels: transfers,
    description: 'Every batch of transactions.user has failed for ten minutes in portcullis.transactions.',
    also: ['PortcullisBatchesFail'],
  },
  repeated('PortcullisBatchesFail', 15, batches('Error'), {
    labels: transfers,
    description: 'Batches of transactions.user have failed repeatedly for 15 minutes in portcullis.transactions.',
    series: { [batches('Error')]: rise(0, 4, 4), [batches('')]: rise(4, 4, 4) },
  }),
  lasting(
    'PortcullisOutboxStuck',
    5,
    { [`portcullis_outbox_oldest_seconds{${WORKER}}`]: level(0, 301, 300) },
    {
      description: 'The oldest event in the outbox has waited for 5m 1s.',
    },
  ),
  lasting(
    'PortcullisLoopStopped',
    2,
    { [loopAge]: level(1, 121, 120), [part('database', GATEWAY_1)]: level(1, 1, 1) },
    {
      labels: { ...onGateway, loop: 'event_log' },
      description: 'The loop event_log of gateway-1:4001 last began a pass 2m 1s ago.',
    },
  ),
  lasting(
    'PortcullisLoopStopped',
    2,
    { [loopAge]: level(1, 121, 121), [part('database', GATEWAY_1)]: level(1, 1, 0) },
    {
      when: 'the database answers',
      labels: { ...onGateway, loop: 'event_log' },
      description: 'The loop event_log of gateway-1:4001 last began a pass 2m 1s ago.',
    },
  ),
  ...single(
    'PortcullisDeadLetters',
    letters,
    { messaging_destination_name: 'transactions.user' },
    'Messages of transactions.user could not be processed.',
  ),
  {
    ...DEFAULTS,
    alert: 'PortcullisUnregistered',
    series: { [unregistered]: { rise: { start: 900, well: 0, fault: 100, almost: 1 } } },
    lasts: 40,
    fires: 31,
    quiet: 69.75,
    almostLasts: 40,
    description: '4050 transactions are not registered, and their number grows.',
  },
  {
    ...DEFAULTS,
    alert: 'PortcullisUnregistered',
    when: 'they become more slowly',
    series: { [unregistered]: { rise: { start: 1_001, well: 0, fault: 0.4, almost: 0 } } },
    lasts: 35,
    fires: 30,
    quiet: 64.75,
    almostLasts: 35,
    description: '1013.2 transactions are not registered, and their number grows.',
  },
  lasting(
    'PortcullisUnregistered',
    30,
    { [unregistered]: level(0, 100_000, 99_999) },
    {
      when: 'so many that they are not counted any more',
      description: '100000 transactions are not registered, and their number grows.',
    },
  ),
  lasting(
    'PortcullisAuditSpoolStuck',
    5,
    { [`portcullis_audit_spool_age_seconds{${GATEWAY_1}}`]: level(0, 61, 60) },
    {
      labels: onGateway,
      description: 'gateway-1:4001 has written no audit record for 1m 1s.',
    },
  ),
  lasting(
    'PortcullisAuditSpoolFills',
    1,
    {
      [`portcullis_audit_spool_bytes{${GATEWAY_1}}`]: level(0, 2 ** 29 + 1, 2 ** 29),
    },
    {
      labels: onGateway,
      description: 'The audit spool of gateway-1:4001 is over half full; when it is full, requests are rejected.',
    },
  ),
  lasting(
    'PortcullisAuditSpoolFills',
    1,
    { [`portcullis_audit_spool_full{${GATEWAY_1}}`]: level(0, 1, 1) },
    {
      when: 'its disk is full',
      labels: onGateway,
      description: 'The audit spool of gateway-1:4001 is over half full; when it is full, requests are rejected.',
    },
  ),
  {
    ...DEFAULTS,
    alert: 'PortcullisAuditSpoolRunsOut',
    series: {
      [`portcullis_audit_spool_bytes_until_full{${GATEWAY_1}}`]: level(7_000, 7_000, 7_000),
      [`portcullis_audit_spool_bytes{${GATEWAY_1}}`]: rise(0, 60, 58),
    },
    lasts: 25,
    // The slope of ten minutes takes nine to become that of the rise, nearly.
    fires: 14,
    quiet: 25.75,
    almostLasts: 25,
    labels: onGateway,
    description:
      'At the present rate, the audit spool of gateway-1:4001 is full in 1h 56m 40s; then requests are rejected.',
  },
  ...single(
    'PortcullisAuditRecordsLost',
    lost,
    { reason: 'spool' },
    'Audit records of completed requests were not stored (reason: spool).',
  ),
  repeated('PortcullisCountsAlone', 5, `portcullis_requests_counted_alone_total{${GATEWAY_1}}`, {
    labels: onGateway,
    description: 'gateway-1:4001 counts client requests on its own: limits apply per process.',
  }),
  repeated('PortcullisGuardsFail', 5, `portcullis_guard_decisions_total{guard="rate",outcome="failed",${GATEWAY_1}}`, {
    labels: { guard: 'rate' },
    description: 'The guard rate cannot decide on requests.',
  }),
  repeated('PortcullisSecretsGuessed', 5, `portcullis_wrong_secrets_total{outcome="throttled",${GATEWAY_1}}`, {
    description: 'Client authentications are throttled after too many wrong secrets.',
  }),
  lasting(
    'PortcullisClientSecretWrong',
    0,
    { [`portcullis_client_secrets_wrong_seconds{${GATEWAY_1}}`]: level(0, 901, 900) },
    // The longest time of five minutes.
    { quiet: 9.75, description: 'A client has shown wrong secrets for 15m 1s.' },
  ),
  lasting(
    'PortcullisQuotaRunsOut',
    30,
    { [`portcullis_quotas_running_out{${WORKER}}`]: level(0, 1, 1) },
    {
      description:
        'At their rate of this month, 1 clients use up their quota before the month ends; then their requests get 429.',
    },
  ),
  repeated('PortcullisConnectionsRefused', 5, `portcullis_connections_refused_total{reason="peer",${GATEWAY_1}}`, {
    labels: { instance: 'gateway-1:4001', reason: 'peer' },
    description: 'gateway-1:4001 closes connections of clients (peer).',
  }),
  repeated('PortcullisMemoryExhausted', 5, `portcullis_memory_refusals_total{account="tenant",${GATEWAY_1}}`, {
    labels: { account: 'tenant', instance: 'gateway-1:4001' },
    description: 'gateway-1:4001 refuses requests whose account holds the most memory (tenant).',
  }),
  repeated('PortcullisWebhookPasswordsGuessed', 5, webhookPasswords('repeated'), {
    description: 'The webhook receives wrong passwords: over 20 a minute from one address, or over 60 in total.',
  }),
  {
    ...DEFAULTS,
    alert: 'PortcullisWebhookPasswordsGuessed',
    when: 'they come from many addresses',
    series: { [webhookPasswords('single')]: rise(0, 61, 59) },
    lasts: 15,
    fires: 9.75,
    quiet: 15,
    almostLasts: 15,
    description: 'The webhook receives wrong passwords: over 20 a minute from one address, or over 60 in total.',
  },
  {
    ...DEFAULTS,
    alert: 'PortcullisWebhookRejects',
    series: {
      [`portcullis_webhook_rejections_total{reason="future",${GATEWAY_1}}`]: rise(0, 10.5, 9.5),
      [webhookRequests]: rise(100, 100, 100),
    },
    lasts: 20,
    fires: 14.75,
    quiet: 20,
    almostLasts: 20,
    labels: { reason: 'future' },
    description: '10.5% of the webhook requests are rejected (reason: future): their notifications are not applied.',
  },
  lasting(
    'PortcullisPoolExhausted',
    5,
    { [`db_client_connection_pending_requests{${GATEWAY_1}}`]: level(0, 1, 1) },
    {
      labels: onGateway,
      description: 'gateway-1:4001 has had no free database connection for five minutes.',
    },
  ),
  lasting(
    'PortcullisEventLoopSlow',
    10,
    { [`nodejs_eventloop_lag_p99_seconds{${GATEWAY_1}}`]: level(0.02, 0.26, 0.25) },
    {
      labels: onGateway,
      description: 'The event loop of gateway-1:4001 is late by 260ms.',
    },
  ),
  lasting(
    'PortcullisGatewayFileRefused',
    1,
    { [`portcullis_gateway_file_in_force{${GATEWAY_1}}`]: level(1, 0, 0) },
    {
      labels: onGateway,
      description: 'gateway-1:4001 keeps using older routes.',
    },
  ),
  lasting(
    'PortcullisGasFeeUnavailable',
    15,
    {
      [`portcullis_gas_fee_networks{state="unavailable",${GATEWAY_1}}`]: level(0, 1, 1),
    },
    {
      labels: { ...onGateway, state: 'unavailable' },
      description: '1 networks have no gas fee.',
      // A range longer than the fault.
      quiet: 25,
      almostLasts: 9.5,
    },
  ),
  lasting(
    'PortcullisMigrationsStuck',
    15,
    {
      [`portcullis_migrations_waiting{${WORKER}}`]: level(0, 1, 1),
      [`portcullis_migrations_running{${WORKER}}`]: level(0, 0, 1),
    },
    { description: '1 migrations are waiting, and none is in progress.' },
  ),
  repeated('PortcullisSpansLost', 15, `portcullis_spans_exported_total{outcome="lost",${GATEWAY_1}}`, {
    description: 'The trace collector rejects spans.',
  }),
];

function level(well: number | undefined, fault: number | undefined, almost: number | undefined): Series {
  return { level: { well, fault, almost } };
}

function rise(well: number, fault: number, almost: number): Series {
  return { rise: { start: 0, well, fault, almost } };
}
