import { randomUUID } from 'node:crypto';
import { rename, writeFile } from 'node:fs/promises';
import { connect } from 'node:net';
import { setTimeout as delay } from 'node:timers/promises';
import { Kafka, logLevel } from 'kafkajs';
import { TOPICS } from '../../../src/events/bus/topics.ts';
import type { Victim } from '../faults/cluster.ts';
import { tokenOf } from '../faults/faults.ts';
import { redisCommand } from '../faults/redis-replica.ts';
import { browserForm } from '../graphql/upload-requests.ts';
import { withPostgres } from '../services/pg-client.ts';
import { basic } from '../webhook/fixture.ts';
import type { Fixture } from './fixture.ts';
import { attempt } from './traffic.ts';

/** Something that goes wrong, and the alerts on it. */
export interface AlertFault {
  name: string;
  /** The section of the runbooks that the alerts lead to. */
  runbook: string;
  fires: readonly string[];
  /** What may fire with them, by necessity. */
  follows?: Readonly<Record<string, string>>;
  /** Does it; what ends it is deferred. */
  make(fixture: Fixture, end: AsyncDisposableStack): Promise<void>;
}

const JSON_TYPE = { 'content-type': 'application/json' };
/** More than an alert on waiting messages or registrations looks for. */
const MANY = { messages: 10_500, strangers: 1_100 };

const killed =
  (...victimsOf: ((fixture: Fixture) => Victim)[]) =>
  async (fixture: Fixture, end: AsyncDisposableStack): Promise<void> => {
    const victims = victimsOf.map((victimOf) => victimOf(fixture));
    end.defer(async () => void (await Promise.all(victims.map((victim) => victim.restart()))));
    await Promise.all(victims.map((victim) => victim.kill()));
  };

const firstGateway = ({ gateways }: Fixture) => gateways[0];
const secondGateway = ({ gateways }: Fixture) => gateways[1];
const GROWS = 'the spool grows, on a disk of 64 MiB';
const WAITS = 'messages wait for the batch that cannot be applied';
const PROCESSES_ARE_TARGETS = 'the configuration names the processes, and each that answers no scrape is down';

export const FAULTS: readonly AlertFault[] = [
  {
    name: 'a gateway is killed',
    runbook: 'processes.md#a-process-is-down',
    fires: ['PortcullisDown'],
    make: killed(firstGateway),
  },
  {
    name: 'both gateways are killed',
    runbook: 'processes.md#a-process-is-down',
    fires: ['PortcullisNoGateway'],
    follows: { PortcullisDown: PROCESSES_ARE_TARGETS },
    make: killed(firstGateway, secondGateway),
  },
  {
    name: 'the worker is killed',
    runbook: 'processes.md#a-process-is-down',
    fires: ['PortcullisNoWorker'],
    follows: { PortcullisDown: PROCESSES_ARE_TARGETS },
    make: killed(({ worker }) => worker),
  },
  {
    name: 'a gateway has too little CPU',
    runbook: 'processes.md#a-process-is-busy',
    fires: ['PortcullisEventLoopSlow'],
    async make({ gateways: [gateway] }, end) {
      again(end, 200, async () => {
        await gateway.freeze();
        await delay(400);
        gateway.thaw();
      });
    },
  },
  {
    name: 'PostgreSQL is killed',
    runbook: 'postgresql.md#the-database-is-down',
    fires: ['PortcullisDatabaseAway'],
    follows: {
      PortcullisErrors: 'what needs rows is answered 500',
      PortcullisAuditSpoolRunsOut: GROWS,
      PortcullisConsumerStandsStill: 'messages wait for the database',
    },
    make: killed(({ cluster }) => cluster.servers.postgres),
  },
  {
    name: 'a table of PostgreSQL is locked',
    runbook: 'postgresql.md#connections-are-used-up',
    fires: ['PortcullisPoolExhausted'],
    make: (fixture, end) => held(fixture, end, 'lock table accounts in access exclusive mode'),
  },
  {
    name: 'Redis is killed',
    runbook: 'redis.md#redis-is-down-or-rejects-commands',
    fires: ['PortcullisCacheAway', 'PortcullisCountsAlone'],
    make: killed(({ cluster }) => cluster.servers.redis),
  },
  {
    name: 'Redis has no replica, and refuses writes',
    runbook: 'redis.md#redis-is-down-or-rejects-commands',
    fires: ['PortcullisCacheAway', 'PortcullisCountsAlone'],
    async make({ cluster }, end) {
      const { redis } = cluster.servers;
      end.defer(() =>
        redisCommand(redis.address(), 'CONFIG', 'SET', 'min-replicas-to-write', '0').then(() => undefined),
      );
      await redisCommand(redis.address(), 'CONFIG', 'SET', 'min-replicas-to-write', '1');
    },
  },
  {
    name: 'the table of revocations is locked',
    runbook: 'postgresql.md#revocations-are-not-read',
    fires: ['PortcullisRevocationsLate'],
    follows: {
      PortcullisErrors: 'requests with tokens are answered 503',
      PortcullisSlow: 'they are so after two seconds',
    },
    make: (fixture, end) => held(fixture, end, 'lock table access_changes in access exclusive mode'),
  },
  {
    name: 'Redis is killed, PostgreSQL stores no quotas, and a client with an unknown quota sends requests',
    runbook: 'redis.md#redis-is-down-or-rejects-commands',
    fires: ['PortcullisGuardsFail'],
    follows: {
      PortcullisCacheAway: 'Redis is down',
      PortcullisCountsAlone: 'other clients are counted by each process',
      PortcullisErrors: 'the client is answered 503',
    },
    async make(fixture, end) {
      const { cluster, gateways } = fixture;
      const token = await tokenOf(cluster, await fixture.limitedClient());
      await diskFull(fixture, end, 'client_quotas', 'insert', 'true');
      await killed(() => cluster.servers.redis)(fixture, end);
      // The first gateway, which gave the token, has counted that.
      again(end, 300, async () => {
        await attempt(`${gateways[1].baseUrl}/v1/accounts`, { headers: { authorization: `Bearer ${token}` } });
      });
    },
  },
  {
    name: 'Kafka is killed',
    runbook: 'kafka.md#the-bus-is-down',
    fires: ['PortcullisBusAway', 'PortcullisOutboxStuck'],
    follows: {
      PortcullisErrors: 'the webhook answers 500',
      PortcullisSlow: 'it does so after four seconds',
    },
    make: killed(({ cluster }) => cluster.servers.kafka),
  },
  {
    name: 'the rows of many notifications are locked',
    runbook: 'kafka.md#consumers-are-behind',
    fires: ['PortcullisConsumerLag'],
    follows: { PortcullisConsumerStandsStill: 'they wait for the rows' },
    make: (fixture, end) => aboutLockedRows(fixture, end, 100, MANY.messages),
  },
  {
    name: 'a consumer hangs, and few messages wait',
    runbook: 'kafka.md#a-consumer-stands-still',
    fires: ['PortcullisConsumerStandsStill'],
    make: (fixture, end) => aboutLockedRows(fixture, end, 1, 10),
  },
  {
    name: 'the outbox is locked, and nothing is in it',
    runbook: 'processes.md#a-background-loop-has-stopped',
    fires: ['PortcullisLoopStopped'],
    follows: { PortcullisSlow: 'changes of users write to it' },
    make: (fixture, end) => held(fixture, end, 'lock table outbox in access exclusive mode'),
  },
  {
    name: 'the event log is locked',
    runbook: 'processes.md#a-background-loop-has-stopped',
    fires: ['PortcullisLoopStopped'],
    follows: {
      PortcullisConsumerStandsStill: 'consumers append to it',
      PortcullisPoolExhausted: 'those that wait for it hold connections',
      PortcullisSlow: 'GraphQL reads it, and other requests wait for connections',
    },
    make: (fixture, end) => held(fixture, end, 'lock table transaction_events in access exclusive mode'),
  },
  {
    name: 'PostgreSQL rejects every notification',
    runbook: 'kafka.md#consumers-are-behind',
    fires: ['PortcullisConsumerFails'],
    follows: {
      PortcullisBatchesFail: 'batches fail',
      PortcullisConsumerStandsStill: WAITS,
      PortcullisGraphqlErrors: 'registering a transaction writes to the same table',
    },
    make: (fixture, end) => diskFull(fixture, end, 'transaction_ids', 'insert', 'true'),
  },
  {
    name: 'PostgreSQL always rejects one notification',
    runbook: 'kafka.md#consumers-are-behind',
    fires: ['PortcullisBatchesFail'],
    follows: { PortcullisConsumerStandsStill: WAITS },
    async make(fixture, end) {
      const id = randomUUID();
      await diskFull(fixture, end, 'parked_notifications', 'insert', `new.id = '${id}'`);
      await publish(fixture, TOPICS.user, [notificationOf(id)]);
    },
  },
  {
    name: 'a malformed registration is published',
    runbook: 'kafka.md#there-are-dead-letters',
    fires: ['PortcullisDeadLetters'],
    async make(fixture) {
      await publish(fixture, TOPICS.registered, [{ key: 'k', value: 'no registration' }]);
    },
  },
  {
    name: 'the owner of transactions registers none',
    runbook: 'unregistered-transactions.md#notifications-wait-for-registrations',
    fires: ['PortcullisUnregistered'],
    async make(fixture, end) {
      const ids: string[] = [];
      const strangers = async (count: number) => {
        const more = Array.from({ length: count }, () => randomUUID());
        ids.push(...more);
        await publish(fixture, TOPICS.user, more.map(notificationOf));
      };
      end.defer(() => {
        const registrations = ids.map((id) => registrationOf(fixture, id));
        return publish(fixture, TOPICS.registered, registrations);
      });
      await strangers(MANY.strangers);
      again(end, 1_000, () => strangers(10));
    },
  },
  {
    name: 'an upstream responds with 500',
    runbook: 'errors.md#an-endpoint-fails',
    fires: ['PortcullisErrors'],
    make: (fixture, end) => answering(fixture, end, (_req, res) => void res.writeHead(500).end()),
  },
  {
    name: 'a table of PostgreSQL is missing',
    runbook: 'errors.md#graphql-operations-fail',
    fires: ['PortcullisGraphqlErrors', 'PortcullisToolsFail', 'PortcullisErrors'],
    async make(fixture, end) {
      await sql(fixture, 'alter table accounts rename to accounts_elsewhere');
      end.defer(() => sql(fixture, 'alter table accounts_elsewhere rename to accounts'));
    },
  },
  {
    name: 'an upstream responds slowly',
    runbook: 'errors.md#an-endpoint-is-slow',
    fires: ['PortcullisSlow'],
    make: (fixture, end) => answering(fixture, end, (_req, res) => void setTimeout(() => res.end('late'), 1_500)),
  },
  {
    name: 'an upstream is unreachable',
    runbook: 'remote-services.md#a-remote-service-is-down',
    fires: ['PortcullisCircuitOpen', 'PortcullisUpstreamErrors'],
    follows: { PortcullisErrors: 'its endpoint answers 502 and 503' },
    async make({ remote }, end) {
      end.defer(() => remote.proxy.set('passing'));
      remote.proxy.set('cut');
    },
  },
  {
    name: 'an upstream sometimes aborts its responses',
    runbook: 'remote-services.md#a-remote-service-is-down',
    fires: ['PortcullisUpstreamErrors'],
    follows: { PortcullisErrors: 'its endpoint answers 502' },
    async make(fixture, end) {
      let requests = 0;
      await answering(fixture, end, (req, res) => {
        requests += 1;
        if (requests % 4 === 0) req.socket.destroy();
        else res.end('far');
      });
    },
  },
  {
    name: 'the RPC provider of a network is unreachable',
    runbook: 'errors.md#gas-fees-are-unavailable',
    fires: ['PortcullisGasFeeUnavailable'],
    async make({ provider }, end) {
      end.defer(() => {
        provider.answers = undefined;
      });
      provider.answers = (req) => req.socket.destroy();
    },
  },
  {
    name: 'the table of audit records is locked',
    runbook: 'audit.md#the-audit-spool-fills',
    fires: ['PortcullisAuditSpoolStuck', 'PortcullisAuditSpoolRunsOut'],
    make: (fixture, end) => held(fixture, end, 'lock table audit_records in exclusive mode'),
  },
  {
    name: 'the disk of an audit spool is full',
    runbook: 'audit.md#the-audit-spool-fills',
    fires: ['PortcullisAuditSpoolFills', 'PortcullisAuditRecordsLost'],
    follows: { PortcullisErrors: 'its process answers 503', PortcullisAuditSpoolRunsOut: GROWS },
    async make({ spoolDisk }, end) {
      end.defer(() => spoolDisk.empty());
      // Records that are in the database make room again.
      again(end, 100, () =>
        spoolDisk.fill(0).catch((error: NodeJS.ErrnoException) => {
          // A record has come in between.
          if (error.code !== 'ENOSPC') throw error;
        }),
      );
    },
  },
  {
    name: 'PostgreSQL rejects a value in audit records',
    runbook: 'audit.md#audit-records-are-lost',
    fires: ['PortcullisAuditRecordsLost'],
    async make(fixture, end) {
      const isOne = `new.correlation_id = 'bad value'`;
      await refusing(fixture, end, 'audit_records', 'insert', isOne, 'untranslatable_character');
      await attempt(`${fixture.gateways[0].baseUrl}/v1/nowhere`, { headers: { 'x-correlation-id': 'bad value' } });
    },
  },
  {
    name: 'a client guesses a secret',
    runbook: 'secrets.md#somebody-guesses-secrets',
    fires: ['PortcullisSecretsGuessed'],
    async make({ cluster, gateways }, end) {
      const { client_id } = cluster.demo.client;
      again(end, 100, () => grant(gateways[0], { client_id, client_secret: 'guess' }));
    },
  },
  {
    name: 'a server of a client was left out of a rotation',
    runbook: 'secrets.md#a-clients-secrets-are-wrong',
    fires: ['PortcullisClientSecretWrong'],
    async make(fixture, end) {
      const [gateway] = fixture.gateways;
      const client = await fixture.limitedClient();
      end.defer(() => grant(gateway, client));
      again(end, 4_000, async () => {
        await grant(gateway, client);
        await grant(gateway, { ...client, client_secret: 'the one before' });
      });
    },
  },
  {
    name: 'a client has used up its quota',
    runbook: 'clients.md#a-quota-will-be-used-up',
    fires: ['PortcullisQuotaRunsOut'],
    async make(fixture, end) {
      const client = await fixture.limitedClient(3);
      end.defer(() => sql(fixture, `update clients set monthly_limit = null where id = '${client.client_id}'`));
      for (let request = 0; request < 3; request += 1) await grant(fixture.gateways[0], client);
    },
  },
  {
    name: 'the clock of the chain processor is ten minutes ahead',
    runbook: 'errors.md#the-webhook-rejects-notifications',
    fires: ['PortcullisWebhookRejects'],
    async make({ cluster, gateways: [{ baseUrl }] }, end) {
      again(end, 100, async () => {
        const headers = {
          ...JSON_TYPE,
          authorization: cluster.webhook,
          'webhook-id': randomUUID(),
          'webhook-timestamp': String(Math.floor(Date.now() / 1_000) + 600),
          'webhook-signature': 'v1,signed',
        };
        await attempt(`${baseUrl}/v2/webhooks/custodial`, { method: 'POST', headers, body: '{}' });
      });
    },
  },
  {
    name: "somebody guesses the webhook's password",
    runbook: 'secrets.md#somebody-guesses-the-webhooks-password',
    fires: ['PortcullisWebhookPasswordsGuessed'],
    follows: { PortcullisWebhookRejects: 'most requests to the webhook are guesses' },
    async make({ gateways }, end) {
      const headers = { ...JSON_TYPE, authorization: basic('chain-processor', 'guess') };
      again(end, 100, async () => {
        await attempt(`${gateways[0].baseUrl}/v2/webhooks/custodial`, { method: 'POST', headers, body: '{}' });
      });
    },
  },
  {
    name: 'a client pipelines requests and reads no response',
    runbook: 'capacity.md#connections-are-refused',
    fires: ['PortcullisConnectionsRefused'],
    async make({ gateways }, end) {
      const { port } = new URL(gateways[0].baseUrl);
      again(end, 200, async () => {
        const socket = connect(Number(port), '127.0.0.1').on('error', () => undefined);
        socket.write('GET /health HTTP/1.1\r\nHost: gateway\r\n\r\n'.repeat(100));
        await delay(100);
        socket.destroy();
      });
    },
  },
  {
    name: 'a tenant sends bodies without their last byte',
    runbook: 'errors.md#requests-are-refused-for-lack-of-memory',
    fires: ['PortcullisMemoryExhausted'],
    follows: { PortcullisErrors: 'what is refused for lack of memory is a 503' },
    async make({ gateways: [gateway], token }, end) {
      const { port } = new URL(gateway.baseUrl);
      const head = `POST /graphql HTTP/1.1\r\nHost: gateway\r\nAuthorization: Bearer ${token}\r\nContent-Type: application/json\r\n`;
      // More than the total that the requests of a process may hold.
      const sockets = Array.from({ length: 300 }, () => {
        const socket = connect(Number(port), '127.0.0.1').on('error', () => undefined);
        socket.write(`${head}Content-Length: 1000000\r\n\r\n${' '.repeat(999_999)}`);
        return socket;
      });
      end.defer(() => {
        for (const socket of sockets) socket.destroy();
      });
      again(end, 200, async () => {
        const socket = connect(Number(port), '127.0.0.1').on('error', () => undefined);
        socket.write(`${head}Content-Length: 1000000\r\n\r\n${' '.repeat(999_999)}`);
        await delay(1_000);
        socket.destroy();
      });
    },
  },
  {
    name: 'gateway.yaml is replaced by a truncated file',
    runbook: 'gateway-file.md#gatewayyaml-was-refused',
    fires: ['PortcullisGatewayFileRefused'],
    async make({ gateways: [gateway], gatewayFile }, end) {
      await rename(gatewayFile, `${gatewayFile}.good`);
      end.defer(async () => {
        await rename(`${gatewayFile}.good`, gatewayFile);
        gateway.signal('SIGHUP');
      });
      await writeFile(gatewayFile, 'services: {');
      gateway.signal('SIGHUP');
    },
  },
  {
    name: 'PostgreSQL prevents workers from leasing a file of users',
    runbook: 'user-files.md#migrations-make-no-progress',
    fires: ['PortcullisMigrationsStuck'],
    async make(fixture, end) {
      await diskFull(fixture, end, 'migration_jobs', 'update', 'true');
      const body = browserForm(`wallet_address\n0x${randomUUID()}\n`);
      const headers = { authorization: `Bearer ${fixture.token}` };
      await attempt(`${fixture.gateways[0].baseUrl}/graphql`, { method: 'POST', headers, body });
    },
  },
  {
    name: 'the trace collector rejects spans',
    runbook: 'traces.md#traces-are-lost',
    fires: ['PortcullisSpansLost'],
    async make({ collector }, end) {
      end.defer(() => {
        collector.mood = 'taking';
      });
      collector.mood = 'refusing';
    },
  },
];

/** Acts again and again, with a rest in between, until the end. */
function again(end: AsyncDisposableStack, restMs: number, act: () => Promise<void>): void {
  let isOver = false;
  const run = async () => {
    while (!isOver) {
      await act();
      await delay(restMs);
    }
  };
  const running = run();
  running.catch(() => undefined);
  end.defer(() => {
    isOver = true;
    return running;
  });
}

/** Asks for a token with a client's secret. */
async function grant({ baseUrl }: Fixture['gateways'][0], client: object): Promise<void> {
  const body = JSON.stringify({ grant_type: 'client_credentials', ...client });
  await attempt(`${baseUrl}/v2/oauth/token`, { method: 'POST', headers: JSON_TYPE, body });
}

/** Locks the rows of new transactions, and publishes messages about them. */
async function aboutLockedRows(
  fixture: Fixture,
  end: AsyncDisposableStack,
  rows: number,
  messages: number,
): Promise<void> {
  const ids = Array.from({ length: rows }, () => randomUUID());
  const list = ids.map((id) => `'${id}'`).join();
  await sql(fixture, `insert into transaction_ids (id) select unnest(array[${list}])`);
  await sql(
    fixture,
    `insert into transactions (id, node_id, collection, registered_type, registered_by, type)
     select unnest(array[${list}]), '${fixture.cluster.demo.node_id}', 'token_transactions', 1, 'topic', 1`,
  );
  await held(fixture, end, `select 1 from transaction_ids where id in (${list}) for update`);
  const all = Array.from({ length: messages }, (_, at) => notificationOf(ids[at % ids.length] ?? ''));
  await publish(fixture, TOPICS.admin, all);
}

/** Puts another answer of the remote service in the place of its own. */
async function answering(
  { remote }: Fixture,
  end: AsyncDisposableStack,
  answer: Fixture['remote']['answer'],
): Promise<void> {
  const before = remote.answer;
  end.defer(() => {
    remote.answer = before;
  });
  remote.answer = answer;
}

async function sql({ cluster }: Fixture, statement: string): Promise<void> {
  await withPostgres(cluster.direct.databaseUrl, (client) => client.query(statement));
}

/** Runs a statement in a transaction that stays open, with its locks. */
async function held({ cluster }: Fixture, end: AsyncDisposableStack, statement: string): Promise<void> {
  const [done, released] = [Promise.withResolvers<void>(), Promise.withResolvers<void>()];
  const holding = withPostgres(cluster.direct.databaseUrl, async (client) => {
    await client.query('begin');
    await client.query(statement);
    done.resolve();
    await released.promise;
    await client.query('rollback');
  });
  end.defer(() => {
    released.resolve();
    return holding;
  });
  await Promise.race([done.promise, holding]);
}

type Event = 'insert' | 'update';

/** Has PostgreSQL refuse rows as one does whose disk is full. */
function diskFull(
  fixture: Fixture,
  end: AsyncDisposableStack,
  table: string,
  event: Event,
  condition: string,
): Promise<void> {
  return refusing(fixture, end, table, event, condition, 'disk_full');
}

async function refusing(
  fixture: Fixture,
  end: AsyncDisposableStack,
  table: string,
  event: Event,
  condition: string,
  errorCode: string,
): Promise<void> {
  await sql(
    fixture,
    `create function refuse() returns trigger language plpgsql as $$
     begin if ${condition} then raise exception using errcode = '${errorCode}', message = 'refused'; end if; return new; end $$;
     create trigger refuse before ${event} on ${table} for each row execute function refuse()`,
  );
  // Rows are inserted into a table first and its partition next: what drops the triggers takes its locks in that order.
  const lock = `lock table ${table} in access exclusive mode`;
  end.defer(() => sql(fixture, `begin; ${lock}; drop function refuse cascade; commit`));
}

interface Message {
  key: string;
  value: string;
}

/** Publishes messages as the gateway or the owner of transactions does. */
async function publish({ cluster }: Fixture, topic: string, messages: readonly Message[]): Promise<void> {
  const { brokers, topicPrefix } = cluster.direct;
  const producer = new Kafka({ brokers: brokers.split(','), logLevel: logLevel.NOTHING }).producer();
  await producer.connect();
  await producer.send({ topic: topicPrefix + topic, messages: [...messages] });
  await producer.disconnect();
}

function notificationOf(id: string): Message {
  const at = new Date().toISOString();
  return { key: id, value: JSON.stringify({ id, type: 1, status: 1, created_at: at, updated_at: at }) };
}

function registrationOf({ cluster }: Fixture, id: string): Message {
  const { node_id } = cluster.demo;
  return { key: id, value: JSON.stringify({ id, collection: 'token_transactions', type: 1, node_id, asset_id: null }) };
}
