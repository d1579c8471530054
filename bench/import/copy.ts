import { createReadStream } from 'node:fs';
import { createRequire } from 'node:module';
import type { Writable } from 'node:stream';
import { pipeline } from 'node:stream/promises';

/** What became of the rows. */
export interface Counts {
  success: number;
  skipped: number;
}

interface CopyClient {
  connect(): Promise<void>;
  query(statement: Writable): Writable;
  query(sql: string, values?: unknown[]): Promise<{ rows: Record<string, string>[] }>;
  end(): Promise<void>;
}

const LOADED = 'staging (wallet_address, email, external_id, name, surname, kyc_sent)';

/** The rows with what the product decides of each, and the ids that it gives. */
const JUDGED = `
  create temp table judged on commit drop as
  with rows as (
    select s.n, gen_random_uuid() as id, trim(s.name) as name, s.surname, s.email, s.external_id, lower(trim(s.wallet_address))
      as address, coalesce(s.kyc_sent, false) as kyc_sent,
      row_number() over (partition by lower(s.email) order by s.n) > 1
        or exists (select from users u where u.node_id = $1 and lower(u.email) = lower(s.email) and u.email <> '') as has_email,
      row_number() over (partition by s.external_id order by s.n) > 1
        or exists (select from users u where u.node_id = $1 and u.external_id = s.external_id) as has_external_id,
      row_number() over (partition by lower(trim(s.wallet_address)) order by s.n) > 1
        or exists (select from users u where u.node_id = $1 and u.address = lower(trim(s.wallet_address)) and u.address <> '')
        as has_address
    from staging s
  )
  select *, case when has_email then 'duplicate_email' when has_external_id then 'duplicate_external_id'
    when has_address then 'duplicate_wallet' end as reason from rows`;

const USERS = `
  insert into users (id, node_id, external_id, name, surname, email, address, kyc_verified, kyc_token_sent,
    kyc_token_sent_at, created_at)
  select id, $1, external_id, name, surname, email, address, kyc_sent, kyc_sent, case when kyc_sent then now() end,
    now() + n * interval '1 microsecond'
  from judged where reason is null order by n`;

const OUTBOX = `
  insert into outbox (id, topic, key, event_type, payload, correlation_id, created_at)
  select e.id, 'users.kyc-token', j.id, 'user.kyc_token.requested', json_build_object('id', e.id, 'event',
    'user.kyc_token.requested', 'user_id', j.id, 'node_id', $1::uuid, 'wallet_address', j.address, 'external_id',
    j.external_id, 'occurred_at', now())::text, 'copy', now()
  from judged j cross join lateral (select gen_random_uuid() as id where j.id is not null) e
  where j.reason is null and not j.kyc_sent order by j.n`;

const RECORDED = `
  insert into migration_rows (migration_id, index, node_id, email, external_id, user_id, status, reason)
  select $2, n, $1, email, external_id, case when reason is null then id end,
    case when reason is null then 'created' else 'skipped' end, reason
  from judged order by n`;

const MIGRATION = `
  insert into migrations (id, node_id, status, created_by, created_at, finished_at)
  values (gen_random_uuid(), $1, 'done', 'copy', now(), now()) returning id`;

const COUNTED = `
  select count(*) filter (where reason is null) as success, count(*) filter (where reason is not null) as skipped from judged`;

/** The same file by hand: COPY into a temporary table, and one statement for each table, in one transaction. */
export async function importByCopy(url: string, file: string, nodeId: string): Promise<{ ms: number; counts: Counts }> {
  const { Client } = createRequire(import.meta.url)('pg') as { Client: new (options: object) => CopyClient };
  const { from } = createRequire(import.meta.url)('pg-copy-streams') as { from(sql: string): Writable };
  const startedAt = performance.now();
  const client = new Client({ connectionString: url });
  await client.connect();
  await client.query('begin');
  await client.query(`create temp table staging (n integer generated always as identity, wallet_address text, email text,
    external_id text, name text, surname text, kyc_sent boolean) on commit drop`);
  await pipeline(createReadStream(file), client.query(from(`copy ${LOADED} from stdin with (format csv, header)`)));
  await client.query('select pg_advisory_xact_lock(hashtextextended($1, 0))', [`users of ${nodeId}`]);
  await client.query('analyze staging');
  await client.query(JUDGED, [nodeId]);
  const { rows: migrations } = await client.query(MIGRATION, [nodeId]);
  await client.query(USERS, [nodeId]);
  await client.query(OUTBOX, [nodeId]);
  await client.query(RECORDED, [nodeId, migrations[0]?.id]);
  const { rows } = await client.query(COUNTED);
  await client.query('commit');
  await client.end();
  const counts = { success: Number(rows[0]?.success), skipped: Number(rows[0]?.skipped) };
  return { ms: performance.now() - startedAt, counts };
}
