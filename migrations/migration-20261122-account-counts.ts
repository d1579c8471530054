import { Migration } from '@mikro-orm/migrations';

/** Accounts of a block, and blocks of a superblock: each is split when it has more than twice as many. */
const BLOCK = 128;
const SUPERBLOCK = 64;
const FIRST = "'-infinity'::timestamptz, '00000000-0000-0000-0000-000000000000'::uuid";
const LAST = "'infinity'::timestamptz, 'ffffffff-ffff-ffff-ffff-ffffffffffff'::uuid";

const TABLES = [
  ...['account_superblocks', 'account_blocks'].map(
    (table) => `create table ${table} (
      node_id uuid not null references nodes on delete cascade, start_at timestamptz(6) not null,
      start_id uuid not null, live integer not null, total integer not null,
      primary key (node_id, start_at, start_id)) with (fillfactor = 70)`,
  ),
  `create table account_changes (
    node_id uuid not null references nodes on delete cascade, at timestamptz(6) not null, id uuid not null,
    live integer not null, total integer not null)`,
  'create index account_changes_of_node on account_changes (node_id, at, id)',
];

/** What a statement has done to the list, by the place in it. */
const CHANGES = {
  insert: `select node_id, created_at as at, id, (deleted_at is null)::integer as live, 1 as total from new_rows`,
  delete: `select node_id, created_at as at, id, -(deleted_at is null)::integer as live, -1 as total from old_rows`,
  update: `select node_id, at, id, sum(live)::integer as live, sum(total)::integer as total from (
      select node_id, created_at as at, id, (deleted_at is null)::integer as live, 1 as total from new_rows
      union all
      select node_id, created_at, id, -(deleted_at is null)::integer, -1 from old_rows) both_rows
    group by node_id, at, id having sum(live) <> 0 or sum(total) <> 0`,
};

/**
 * The writer that has the node's lock adds its changes, and those that others left, to the counts. Every other writer
 * leaves its changes as rows of their own: nobody waits. Only read committed sees the counts as they are now.
 */
function countingFunction(event: keyof typeof CHANGES): string {
  return `create function count_account_${event}() returns trigger language plpgsql as $$
    declare
      one uuid;
    begin
      for one in select distinct node_id from (${CHANGES[event]}) changed loop
        if current_setting('transaction_isolation') = 'read committed'
            and pg_try_advisory_xact_lock(72050011, hashtext(one::text)) then
          insert into account_blocks select one, ${FIRST}, 0, 0
            where not exists (select from account_blocks where node_id = one);
          insert into account_superblocks select one, ${FIRST}, 0, 0
            where not exists (select from account_superblocks where node_id = one);
          with left_over as (
            delete from account_changes where node_id = one returning at, id, live, total
          ), change as (
            select at, id, live, total from left_over
            union all select at, id, live, total from (${CHANGES[event]}) changed where node_id = one
          ), of_block as (
            select b.start_at, b.start_id, sum(c.live)::integer as live, sum(c.total)::integer as total
            from change c cross join lateral (
              select start_at, start_id from account_blocks
              where node_id = one and (start_at, start_id) <= (c.at, c.id)
              order by start_at desc, start_id desc limit 1) b
            group by b.start_at, b.start_id
          ), counted as (
            update account_blocks a set live = a.live + o.live, total = a.total + o.total from of_block o
            where a.node_id = one and a.start_at = o.start_at and a.start_id = o.start_id
          ), of_superblock as (
            select s.start_at, s.start_id, sum(o.live)::integer as live, sum(o.total)::integer as total
            from of_block o cross join lateral (
              select start_at, start_id from account_superblocks
              where node_id = one and (start_at, start_id) <= (o.start_at, o.start_id)
              order by start_at desc, start_id desc limit 1) s
            group by s.start_at, s.start_id
          )
          update account_superblocks a set live = a.live + o.live, total = a.total + o.total from of_superblock o
          where a.node_id = one and a.start_at = o.start_at and a.start_id = o.start_id;
        else
          insert into account_changes (node_id, at, id, live, total)
          select node_id, at, id, live, total from (${CHANGES[event]}) changed where node_id = one;
        end if;
      end loop;
      return null;
    end $$`;
}

/**
 * At the commit, when all changes of the transaction are in the counts or left over: a block of more than twice its
 * size is counted anew in pieces. What is left over has places of its own, so that it is in no piece's count.
 */
const SPLIT = `create function split_account_block() returns trigger language plpgsql as $$
  declare
    next_at timestamptz;
    next_id uuid;
    super_at timestamptz;
    super_id uuid;
  begin
    if not exists (select from account_blocks where node_id = new.node_id and start_at = new.start_at
        and start_id = new.start_id and total > ${2 * BLOCK}) then
      return null;
    end if;
    select start_at, start_id into next_at, next_id from (
      select start_at, start_id from account_blocks
      where node_id = new.node_id and (start_at, start_id) > (new.start_at, new.start_id)
      union all select ${LAST}) following
    order by start_at, start_id limit 1;
    with placed as (
      select created_at, id, deleted_at is null as is_live, row_number() over (order by created_at, id) - 1 as place
      from accounts where node_id = new.node_id
        and (created_at, id) >= (new.start_at, new.start_id) and (created_at, id) < (next_at, next_id)
    ), counted as (
      select place / ${BLOCK} as number, count(*) as total, count(*) filter (where is_live) as live
      from placed group by 1
    ), begun as (
      select place / ${BLOCK} as number, case when place = 0 then new.start_at else created_at end as at,
        case when place = 0 then new.start_id else id end as id
      from placed where place % ${BLOCK} = 0
    ), piece as (
      select b.at, b.id, c.live, c.total, lead(b.at, 1, next_at) over (order by b.number) as end_at,
        lead(b.id, 1, next_id) over (order by b.number) as end_id
      from begun b join counted c using (number)
    )
    insert into account_blocks (node_id, start_at, start_id, live, total)
    select new.node_id, p.at, p.id, p.live - coalesce(l.live, 0), p.total - coalesce(l.total, 0)
    from piece p cross join lateral (
      select sum(live) as live, sum(total) as total from account_changes
      where node_id = new.node_id and (at, id) >= (p.at, p.id) and (at, id) < (p.end_at, p.end_id)) l
    on conflict (node_id, start_at, start_id) do update set live = excluded.live, total = excluded.total;
    select start_at, start_id into super_at, super_id from account_superblocks
    where node_id = new.node_id and (start_at, start_id) <= (new.start_at, new.start_id)
    order by start_at desc, start_id desc limit 1;
    perform split_account_superblock(new.node_id, super_at, super_id);
    return null;
  end $$`;

/** A superblock of too many blocks becomes several. */
const SPLIT_SUPERBLOCK = `create function split_account_superblock(node uuid, at timestamptz, id uuid) returns void
  language plpgsql as $$
  declare
    next_at timestamptz;
    next_id uuid;
  begin
    select start_at, start_id into next_at, next_id from (
      select start_at, start_id from account_superblocks where node_id = node and (start_at, start_id) > (at, id)
      union all select ${LAST}) following
    order by start_at, start_id limit 1;
    with placed as (
      select start_at, start_id, live, total, row_number() over (order by start_at, start_id) - 1 as place,
        count(*) over () as blocks
      from account_blocks
      where node_id = node and (start_at, start_id) >= (at, id) and (start_at, start_id) < (next_at, next_id)
    ), counted as (
      select place / ${SUPERBLOCK} as number, sum(live)::integer as live, sum(total)::integer as total
      from placed where blocks > ${2 * SUPERBLOCK} group by 1
    )
    insert into account_superblocks (node_id, start_at, start_id, live, total)
    select node, p.start_at, p.start_id, c.live, c.total
    from placed p join counted c on p.place = c.number * ${SUPERBLOCK}
    on conflict (node_id, start_at, start_id) do update set live = excluded.live, total = excluded.total;
  end $$`;

const TRIGGERS = [
  'create trigger accounts_inserted after insert on accounts referencing new table as new_rows',
  'create trigger accounts_updated after update on accounts referencing old table as old_rows new table as new_rows',
  'create trigger accounts_deleted after delete on accounts referencing old table as old_rows',
].map((trigger) => `${trigger} for each statement execute function count_account_${trigger.split(' ')[4]}()`);

const TRUNCATION = [
  `create function forget_account_counts() returns trigger language plpgsql as $$
    begin
      delete from account_changes;
      delete from account_blocks;
      delete from account_superblocks;
      return null;
    end $$`,
  `create trigger accounts_truncated after truncate on accounts for each statement
    execute function forget_account_counts()`,
];

const FILL = ['account_blocks', 'account_superblocks'].map(
  (table) => `insert into ${table} (node_id, start_at, start_id, live, total)
    select node_id, ${FIRST}, count(*) filter (where deleted_at is null), count(*) from accounts group by node_id`,
);

/**
 * How many accounts a node has, and where a page of them begins, at a cost that does not grow with their number: live
 * counts of blocks of some accounts that follow each other in the list, and of superblocks of some such blocks.
 */
export class Migration20261122AccountCounts extends Migration {
  override up(): void {
    for (const statement of TABLES) this.addSql(statement);
    for (const event of ['insert', 'update', 'delete'] as const) this.addSql(countingFunction(event));
    for (const statement of [SPLIT_SUPERBLOCK, SPLIT, ...TRIGGERS, ...TRUNCATION]) this.addSql(statement);
    this.addSql(`create constraint trigger account_blocks_split after insert or update on account_blocks
      deferrable initially deferred for each row when (new.total > ${2 * BLOCK})
      execute function split_account_block()`);
    // Superblocks first: the blocks' split looks for them.
    for (const statement of FILL.toReversed()) this.addSql(statement);
    this.addSql('set constraints account_blocks_split immediate');
  }
}
