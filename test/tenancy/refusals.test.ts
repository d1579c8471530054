import { randomUUID } from 'node:crypto';
import {
  CompiledQuery,
  ExpressionWrapper,
  Kysely,
  type OperationNode,
  OrNode,
  PostgresQueryCompiler,
  type SqlBool,
  sql,
} from 'kysely';
import { beforeEach, describe, expect, it } from 'vitest';
import { scopedDialect } from '../../src/platform/database/database.ts';
import { NodeScope, NodeScopeError } from '../../src/platform/database/node-scope.ts';

const NODE = randomUUID();
const OTHER = randomUUID();

/** The builders without their types, on which the door does not lean. */
type Untyped = Kysely<Record<string, Record<string, string>>>;

const SCOPES = {
  tenant: new Set(['accounts', 'users', 'wallets']),
  global: new Set(['networks']),
};

/** The tenant's door without a database behind it; `texts` keeps the SQL that came through. */
function paperDoor(nodeId: string): { k: Untyped; texts: string[] } {
  const texts: string[] = [];
  const compiler = new PostgresQueryCompiler();
  const dialect = scopedDialect(new NodeScope(nodeId, SCOPES), {
    compile: (statement, queryId) => compiler.compileQuery(statement, queryId),
    runCompiled: async (query) => {
      texts.push(query.sql);
      return { rows: [] };
    },
  });
  return { k: new Kysely({ dialect }), texts };
}

let door: ReturnType<typeof paperDoor>;

beforeEach(() => {
  door = paperDoor(NODE);
});

type Attempt = (k: Untyped) => { execute(): Promise<unknown> };

const row = { id: randomUUID(), name: 'x' };
type Builder = Pick<Untyped, 'selectFrom'>;
const all = (k: Builder, table: string) => k.selectFrom(table).selectAll();
const ids = (k: Builder, table: string) => k.selectFrom(table).select('id');
/** With a common table that reads another one. */
const common = (k: Untyped, name: string, reads: string) => k.with(name, (q) => all(q, reads)) as unknown as Untyped;

const refused: Record<string, Attempt> = {
  'a table that the door does not know': (k) => all(k, 'audit'),
  'a table of the catalogue': (k) => all(k, 'pg_catalog.pg_authid'),
  'a known table in a schema': (k) => all(k, 'other.accounts'),
  'a schema for all tables': (k) => all(k.withSchema('other'), 'accounts'),
  'an unknown table in a join': (k) => k.selectFrom('users').innerJoin('audit', 'audit.id', 'users.id').selectAll(),
  'an unknown table in a subquery': (k) => all(k, 'users').where('id', 'in', ids(k, 'audit')),
  'an unknown table in a union': (k) => ids(k, 'users').union(ids(k, 'audit')),
  'an unknown table in a common table': (k) => all(common(k, 'x', 'audit'), 'x'),
  'a common table named like the unknown table that it reads': (k) => all(common(k, 'audit', 'audit'), 'audit'),
  'a common table that is named before it is there': (k) =>
    all(common(common(k, 'first', 'audit'), 'audit', 'users'), 'first'),
  'a common table of a subquery, named outside of it': (k) =>
    all(k, 'audit').where('id', 'in', ids(common(k, 'audit', 'users'), 'audit')),
  "a common table that hides a tenant's": (k) => all(common(k, 'users', 'networks'), 'users'),
  "a subquery's common table that hides a tenant's": (k) =>
    all(k, 'networks').where('id', 'in', ids(common(k, 'users', 'networks'), 'users')),
  'a common table as the target of a write': (k) => common(k, 'audit', 'users').deleteFrom('audit'),
  'a right join': (k) => k.selectFrom('networks').rightJoin('users', 'users.id', 'networks.id').selectAll(),
  'a full join': (k) => k.selectFrom('networks').fullJoin('users', 'users.id', 'networks.id').selectAll(),
  'an insert that names another node': (k) => k.insertInto('users').values({ ...row, node_id: OTHER }),
  'an insert of which a row names another node': (k) =>
    k.insertInto('users').values([NODE, OTHER].map((node_id) => ({ ...row, node_id }))),
  'an insert of which a row names no node': (k) => k.insertInto('users').values([{ ...row, node_id: NODE }, row]),
  'an insert whose node is an expression': (k) =>
    k.insertInto('users').values((eb) => ({ id: row.id, node_id: eb.selectFrom('networks').select('id') })),
  'an insert from a select': (k) =>
    k
      .insertInto('users')
      .columns(['id', 'node_id'])
      .expression(k.selectFrom('networks').select(['id', 'id'])),
  'an insert of defaults': (k) => k.insertInto('users').defaultValues(),
  'a conflict that moves the row': (k) => {
    const insert = k.insertInto('users').values(row);
    return insert.onConflict((conflict) => conflict.column('id').doUpdateSet({ node_id: OTHER }));
  },
  'an upsert of another database': (k) => k.insertInto('users').values(row).onDuplicateKeyUpdate({ name: 'x' }),
  'a replace': (k) => k.replaceInto('users').values(row),
  'an update of the node': (k) => k.updateTable('users').set({ node_id: OTHER }),
  'an update of the node by its name': (k) => k.updateTable('users').set('node_id', OTHER),
  'an update of the node through an alias': (k) => k.updateTable('users as u').set('u.node_id', OTHER),
  'an update of two tables': (k) => k.updateTable(['users', 'accounts']).set({ name: 'x' }),
  'an update of a table of all nodes': (k) => k.updateTable('networks').set({ name: 'x' }),
  'a delete from a table of all nodes': (k) => k.deleteFrom('networks'),
  'an insert into a table of all nodes': (k) => k.insertInto('networks').values(row),
  'a merge': (k) => k.mergeInto('users').using('accounts', 'accounts.id', 'users.id').whenMatched().thenDelete(),
  'raw text in select': (k) => k.selectFrom('users').select(sql<string>`(select 1)`.as('x')),
  'raw text in where': (k) => all(k, 'users').where(sql<boolean>`true or true`),
  'raw text in from': (k) => k.selectFrom(sql<{ id: string }>`audit`.as('x')).selectAll(),
  'raw text in a join': (k) => all(k, 'users').innerJoin(sql`audit`.as('x'), (on) => on.onTrue()),
  'raw text in an order': (k) => all(k, 'users').orderBy(sql`(select 1)`),
  'raw text at the end': (k) => all(k, 'users').modifyEnd(sql`union select * from audit`),
  'a table by raw text': (k) => k.selectFrom(sql.table<{ id: string }>('audit').as('x')).selectAll(),
  'raw text as a statement': (k) => ({ execute: () => sql`select * from audit`.execute(k) }),
  'a query that somebody else compiled': (k) => ({
    execute: () => k.executeQuery(CompiledQuery.raw('select * from audit')),
  }),
  'a function that runs a text': (k) =>
    k.selectFrom('users').select((eb) => eb.fn('query_to_xml', [eb.val('select * from audit')]).as('x')),
  'a function whose name is a text': (k) =>
    k.selectFrom('users').select((eb) => eb.fn('now(), (select 1) as x, lower', ['id']).as('y')),
  'an aggregate whose name is a text': (k) =>
    k.selectFrom('users').select((eb) => eb.fn.agg('max(1), count', ['id']).as('x')),
  'a function to select from': (k) =>
    k.selectFrom((eb) => eb.fn<{ id: string }>('lower', [eb.val('{}')]).as('x')).selectAll(),
  'a change of the schema': (k) => k.schema.dropTable('users'),
  'a view of another node': (k) => k.schema.createView('x').as(k.selectFrom('users').selectAll()),
  'a transaction of its own': (k) => ({ execute: () => k.transaction().execute(async () => undefined) }),
  'a connection of its own': (k) => ({
    execute: () => k.connection().execute((own) => own.executeQuery(CompiledQuery.raw('select 1'))),
  }),
};

describe('statements that a tenant-scoped query rejects', () => {
  it.each(Object.entries(refused))('D4-01: %s is rejected and never runs', async (_name, attempt) => {
    const tried = async () => attempt(door.k).execute();
    await expect(tried()).rejects.toThrow(NodeScopeError);
    expect(door.texts).toEqual([]);
  });

  it('D4-01: a stream is rejected', async () => {
    const stream = door.k.selectFrom('users').selectAll().stream();
    await expect(stream[Symbol.asyncIterator]().next()).rejects.toThrow(NodeScopeError);
  });

  it('D4-01: no builder method removes the node condition', async () => {
    for (const k of [door.k.withoutPlugins(), door.k.withTables<{ more: { id: string } }>()]) {
      await k.selectFrom('users').selectAll().execute();
    }
    expect(door.texts).toEqual(Array(2).fill('select * from "users" where "users"."node_id" = $1'));
  });

  it('D4-01: a condition with a bare OR stays within the node', async () => {
    const isNamed = (name: string): OperationNode => {
      const { where } = door.k.selectFrom('users').where('name', '=', name).toOperationNode();
      if (!where) throw new Error('there is a condition');
      return where.where;
    };
    const bare = new ExpressionWrapper<Record<string, Record<string, string>>, string, SqlBool>(
      OrNode.create(isNamed('x'), isNamed('y')),
    );
    await door.k.selectFrom('users').select('id').where(bare).execute();
    await door.k
      .selectFrom('networks')
      .innerJoin('users', (join) => join.on(bare))
      .select('users.id')
      .execute();
    expect(door.texts).toEqual([
      'select "id" from "users" where ("name" = $1 or "name" = $2) and "users"."node_id" = $3',
      'select "users"."id" from "networks" inner join "users" on ("name" = $1 or "name" = $2) and "users"."node_id" = $3',
    ]);
  });
});
