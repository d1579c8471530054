import { randomInt, randomUUID } from 'node:crypto';
import { readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';
import type { Demo } from '../../../src/app/demo/demo.ts';
import type { Db } from '../../../src/platform/database/database.ts';
import { openDatabase } from '../../../src/platform/database/open-database.ts';
import { type Disagreements, Journal } from '../audit/kill-journal.ts';
import { startPortcullis } from '../harness.ts';
import { mirrorOn } from '../transactions/fixture.ts';
import { basic } from '../webhook/fixture.ts';
import { startInstance } from './process.ts';

const REGISTERED = 2_000;
const LATER_MS = 25;
const LANES = 8;
/** Of so many lanes one notifies of ids that are not registered. */
const STRANGERS_EVERY = 4;
const STATUSES = [1, 2, 3];
const TOPICS = 'transactions.admin,transactions.user';
const COUNTED = 'killed-';

/** A notification that was sent. Those of a transaction follow each other, each after the answer to the one before. */
interface SentNotification {
  correlationId: string;
  id: string;
  status: number;
  isAcknowledged: boolean;
}

/** What clients sent over all lives of an instance, and what they were told. */
export interface Told {
  /** Who they are, and transactions that are registered and not yet notified. */
  demo: Demo & { webhook: { username: string; password: string } };
  registered: string[];
  notifications: SentNotification[];
  requests: Journal;
}

/** What is not as clients were told; every list is empty if nothing was lost or invented. */
export interface Losses {
  /** Acknowledged notifications that are not in both topics exactly once, and others that are in one of them. */
  published: string[];
  /** Transactions whose changes are not what was acknowledged, and perhaps the rest, each once, up to their row. */
  changes: string[];
  /** Unregistered transactions that lack an acknowledged notification. */
  parked: string[];
  /** Nodes whose sequence has a gap or repeats a number. */
  sequences: string[];
  audit: Disagreements;
}

export const NO_LOSSES: Losses = {
  ...{ published: [], changes: [], parked: [], sequences: [] },
  audit: { lost: [], twice: [], invented: [], untrue: [] },
};

/** Reads the credentials of an instance that was started before, and registers transactions. */
export async function prepare(dataDir: string): Promise<Told> {
  const demo = JSON.parse(await readFile(join(dataDir, 'demo.json'), 'utf8'));
  await using database = await openDatabase({ dataDir: join(dataDir, 'postgres') });
  const registered = Array.from({ length: REGISTERED }, () => randomUUID());
  const plain = { nodeId: demo.node_id, collection: 'token_transactions', type: 1, assetId: null } as const;
  await mirrorOn(database.db).registerAllByOwner(registered.map((id) => ({ id, ...plain })));
  return { demo, registered, notifications: [], requests: new Journal() };
}

export function acknowledgedIn({ notifications }: Told): number {
  return notifications.filter(({ isAcknowledged }) => isAcknowledged).length;
}

/**
 * Kills an instance with SIGKILL at random moments under load and starts it again on the same `DATA_DIR`. A kill comes
 * after an acknowledgement and a random number of answers below `mostAnswers`, and a random moment later.
 */
export async function killUnderLoad(dataDir: string, { kills, mostAnswers }: { kills: number; mostAnswers: number }) {
  const told = await prepare(dataDir);
  for (let kill = 0; kill < kills; kill += 1) {
    await using instance = await startInstance({ DATA_DIR: dataDir });
    const load = loadUntilDeath(instance.baseUrl, told);
    const enough = told.requests.answered + randomInt(mostAnswers);
    while (told.requests.answered < enough || acknowledgedIn(told) < kill + 2) await delay(1);
    await delay(randomInt(LATER_MS));
    await instance.kill('SIGKILL');
    await load;
  }
  const losses = await lossesAfterRestart(dataDir, told);
  return { kills, acknowledged: acknowledgedIn(told), answered: told.requests.answered, losses };
}

/** Sends notifications, account pages and what is refused in several lanes until the instance dies. */
export async function loadUntilDeath(baseUrl: string, { demo, registered, notifications, requests }: Told) {
  const json = { 'content-type': 'application/json' };
  const hook = { ...json, authorization: basic(demo.webhook.username, demo.webhook.password) };

  /** Returns the answer; undefined if it did not arrive whole. */
  async function send(path: string, headers = {}, body?: object, correlationId = `${COUNTED}${randomUUID()}`) {
    const entry = requests.begin(correlationId, path);
    const method = body ? 'POST' : 'GET';
    try {
      const answer = await fetch(baseUrl + path, {
        method,
        headers: { ...headers, 'x-correlation-id': correlationId },
        ...(body && { body: JSON.stringify(body) }),
      });
      const text = await answer.text();
      requests.answer(entry, answer.status);
      return { status: answer.status, text };
    } catch {
      return undefined;
    }
  }

  async function notify(id: string, status: number): Promise<boolean> {
    const sent = { correlationId: `${COUNTED}${randomUUID()}`, id, status, isAcknowledged: false };
    notifications.push(sent);
    const at = new Date(Date.UTC(2026, 0, 1) + status * 1_000).toISOString();
    const body = { id, type: 1, status, transaction_hash: `0x${status}`, created_at: at, updated_at: at };
    const answer = await send('/v2/webhooks/custodial', hook, body, sent.correlationId);
    sent.isAcknowledged = answer?.status === 200;
    return answer !== undefined;
  }

  async function lane(number: number): Promise<void> {
    for (;;) {
      const id = (number % STRANGERS_EVERY > 0 && registered.pop()) || `stranger-${randomUUID()}`;
      for (const status of STATUSES) if (!(await notify(id, status))) return;
      if (!(await send('/v1/accounts?limit=5', { authorization: `Bearer ${token}` }))) return;
      if (!(await send(number % 2 === 0 ? '/v1/accounts' : '/nowhere'))) return;
    }
  }

  const issued = await send('/v2/oauth/token', json, { grant_type: 'client_credentials', ...demo.client });
  const token = issued && JSON.parse(issued.text).access_token;
  await Promise.all(Array.from({ length: LANES }, (_, number) => lane(number)));
}

/** Starts an instance once more, which applies what is left and writes the audit records, and compares. */
export async function lossesAfterRestart(
  dataDir: string,
  told: Told,
  env: Record<string, string> = {},
): Promise<Losses> {
  await using portcullis = await startPortcullis({ dataDir, env });
  const { auditWriter, database } = portcullis.service.context;
  const door = database.db.unscoped('a test waits for every group');
  for (;;) {
    const [left] = await door.raw(
      (sql) => sql<{ count: number }>`
        select count(*)::int as count from bus_messages join bus_offsets using (topic)
        where bus_messages.position > bus_offsets.position`,
    );
    if (left?.count === 0) break;
    await delay(20);
  }
  await auditWriter.flush();
  return await lossesIn(database.db, told);
}

/** Compares an instance's rows with what its clients know. */
export async function lossesIn(
  db: Db,
  { notifications, requests }: Pick<Told, 'notifications' | 'requests'>,
): Promise<Losses> {
  const door = db.unscoped('a test compares everything');
  const published = await door.raw(
    (sql) => sql<{ id: string; topics: string }>`
      select headers ->> 'correlation-id' as id, string_agg(topic, ',' order by topic) as topics
      from bus_messages group by 1`,
  );
  const topicsOf = new Map(published.map(({ id, topics }) => [id, topics]));
  const found = await door.raw(
    (sql) => sql<{ id: string; status: number | null; changes: string | null; before: string | null }>`
      select t.id, t.status, string_agg(e.status::text, ',' order by e.seq) as changes,
        string_agg(coalesce(e.previous_status::text, ''), ',' order by e.seq) as before
      from transactions t left join transaction_events e on e.transaction_id = t.id group by t.id`,
  );
  const rows = new Map(found.map((row) => [row.id, row]));
  const parked = await door.raw(
    (sql) => sql<{ id: string; count: number }>`
      select id, count(*)::int as count from parked_notifications group by id`,
  );
  const parkedOf = new Map(parked.map(({ id, count }) => [id, count]));
  const sequences = await door.raw(
    (sql) => sql<{ node: string }>`
      select node_id as node from transaction_events group by node_id having count(*) <> max(seq) or min(seq) <> 1`,
  );
  const audited = await door.run((k) =>
    k
      .selectFrom('audit_records')
      .select(['correlation_id', 'status_code', 'aborted'])
      .where('correlation_id', 'like', `${COUNTED}%`),
  );

  /** Whether a registered transaction went through each acknowledged status once, perhaps others that were sent, in order. */
  function isChanged(id: string, sent: readonly SentNotification[]): boolean {
    const { status = null, changes, before } = rows.get(id) ?? {};
    const statuses = changes?.split(',').map(Number) ?? [];
    const acknowledged = sent.filter(({ isAcknowledged }) => isAcknowledged);
    return (
      acknowledged.every((one) => statuses.includes(one.status)) &&
      statuses.every((one, at) => one > (statuses[at - 1] ?? 0) && sent.some((other) => other.status === one)) &&
      (before ?? '') === ['', ...statuses.slice(0, -1)].join() &&
      status === (statuses.at(-1) ?? null)
    );
  }

  const transactions = [...Map.groupBy(notifications, ({ id }) => id)];
  const isStranger = (id: string) => id.startsWith('stranger-');
  return {
    published: notifications
      .map(({ correlationId, isAcknowledged }) => ({
        correlationId,
        isAcknowledged,
        topics: topicsOf.get(correlationId),
      }))
      .filter(({ topics, isAcknowledged }) => topics !== TOPICS && (isAcknowledged || topics !== undefined))
      .map(({ correlationId, topics }) => `${correlationId}: ${topics}`),
    changes: transactions.filter(([id, sent]) => !isStranger(id) && !isChanged(id, sent)).map(([id]) => id),
    parked: transactions
      .filter(([id]) => isStranger(id))
      .filter(([id, sent]) => (parkedOf.get(id) ?? 0) < sent.filter(({ isAcknowledged }) => isAcknowledged).length)
      .map(([id]) => id),
    sequences: sequences.map(({ node }) => node),
    audit: requests.compare(audited),
  };
}
