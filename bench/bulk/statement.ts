import { randomUUID } from 'node:crypto';
import type { PostgresClient } from '../../test/support/services/pg-client.ts';
import type { NewRow } from './rows.ts';

/**
 * What somebody would write by hand for 500 users, in one statement: identifiers that are taken are looked up, also among
 * the rows before; users and their events are written; each row's outcome comes back.
 */
const STATEMENT = `
with given as (
  select * from unnest($2::uuid[], $3::text[], $4::text[], $5::text[], $6::text[], $7::text[], $8::uuid[])
    with ordinality as g (id, address, email, external_id, name, surname, event_id, place)
), judged as (
  select g.*, case
    when g.email is null and g.external_id is null then 'missing_email_and_external_id'
    when exists (select from users u where u.node_id = $1 and u.email <> '' and lower(u.email) = lower(g.email))
      or row_number() over (partition by lower(g.email) order by place) > 1 then 'duplicate_email'
    when exists (select from users u where u.node_id = $1 and u.external_id = g.external_id)
      or row_number() over (partition by g.external_id order by place) > 1 then 'duplicate_external_id'
    when exists (select from users u where u.node_id = $1 and u.address <> '' and u.address = g.address)
      or row_number() over (partition by g.address order by place) > 1 then 'duplicate_wallet'
    end as reason
  from given g
), created as (
  insert into users (id, node_id, external_id, name, surname, email, address, kyc_verified, kyc_token_sent, created_at)
  select id, $1, external_id, name, surname, email, address, false, false, now() from judged where reason is null
  returning id, address, external_id
), told as (
  insert into outbox (id, topic, key, event_type, payload, correlation_id, created_at)
  select j.event_id, 'users.kyc-token', c.id::text, 'user.kyc_token.requested',
    json_build_object('id', j.event_id, 'event', 'user.kyc_token.requested', 'user_id', c.id, 'node_id', $1::uuid,
      'wallet_address', c.address, 'external_id', c.external_id, 'occurred_at', now())::text, 'bench', now()
  from created c join judged j on j.id = c.id
)
select id, email, external_id, reason from judged order by place`;

/** Runs the statement for these rows; gives how many users it created. */
export async function insertByHand(client: PostgresClient, nodeId: string, rows: readonly NewRow[]): Promise<number> {
  const column = (name: keyof NewRow) => rows.map((row) => row[name]);
  const ids = () => rows.map(() => randomUUID());
  const { rows: outcomes } = await client.query(STATEMENT, [
    nodeId,
    ids(),
    column('wallet_address'),
    column('email'),
    column('external_id'),
    column('name'),
    column('surname'),
    ids(),
  ]);
  return outcomes.filter(({ reason }) => reason === null).length;
}
