import type { Query } from './two-nodes.ts';

/** Queries of every builder that reads, by what they show. */
export const reads: Record<string, Query> = {
  'a table': (k) => k.selectFrom('accounts').selectAll(),
  'an alias': (k) => k.selectFrom('accounts as a').select('a.id').orderBy('a.id', 'desc'),
  'an alias that is the name of another table': (k) => k.selectFrom('users as accounts').select('accounts.email'),
  'two tables': (k) => k.selectFrom(['accounts as a', 'users as u']).select(['a.id as account', 'u.id as user']),
  'an inner join': (k) =>
    k.selectFrom('accounts as a').innerJoin('wallets as w', 'w.account_id', 'a.id').select(['a.name', 'w.id']),
  'a join on what all nodes share': (k) =>
    k.selectFrom('wallets as a').innerJoin('wallets as b', 'a.chain_id', 'b.chain_id').select(['a.id', 'b.id as b']),
  'a left join': (k) =>
    k.selectFrom('accounts as a').leftJoin('wallets as w', 'w.account_id', 'a.id').select(['a.name', 'w.id']),
  'a left join from a table of all nodes': (k) =>
    k
      .selectFrom('networks as n')
      .leftJoin('wallet_networks as w', 'w.network_id', 'n.id')
      .select(['n.name', 'w.wallet_id']),
  'a left join with an or': (k) =>
    k
      .selectFrom('accounts as a')
      .leftJoin('users as u', (join) =>
        join.on((eb) => eb.or([eb('u.name', '=', ''), eb('u.id', '=', eb.ref('a.id'))])),
      )
      .select(['a.name', 'u.id']),
  'a cross join': (k) => k.selectFrom('networks as n').crossJoin('users as u').select(['n.name', 'u.id']),
  'a lateral join': (k) =>
    k
      .selectFrom('networks as n')
      .leftJoinLateral(
        (eb) => eb.selectFrom('assets').select('assets.id as asset').whereRef('network_id', '=', 'n.id').as('x'),
        (join) => join.onTrue(),
      )
      .select(['n.name', 'x.asset']),
  'a lateral join to the elements of an array': (k) =>
    k
      .selectFrom((eb) =>
        eb
          .fn<{ value: string }>('json_array_elements_text', [
            eb.cast<string>(eb.val('["account 0", "account 1"]'), 'json'),
          ])
          .as('wanted'),
      )
      .innerJoinLateral(
        (eb) => eb.selectFrom('accounts').select('accounts.id').whereRef('accounts.name', '=', 'wanted.value').as('x'),
        (join) => join.onTrue(),
      )
      .select(['wanted.value', 'x.id']),
  'a subquery to select from': (k) =>
    k.selectFrom((eb) => eb.selectFrom('users').select(['id', 'email']).as('u')).selectAll(),
  'a subquery in where': (k) =>
    k
      .selectFrom('networks')
      .select('name')
      .where('id', 'in', (eb) => eb.selectFrom('wallet_networks').select('network_id')),
  'a subquery in select': (k) =>
    k
      .selectFrom('networks as n')
      .select(['n.name', (eb) => eb.selectFrom('users').select(eb.fn.countAll<string>().as('n')).as('users')]),
  'a query of its own as a subquery': (k) =>
    k.selectFrom('networks').select('name').where('id', 'in', k.selectFrom('assets').select('network_id')),
  exists: (k) =>
    k
      .selectFrom('networks as n')
      .select('n.name')
      .where((eb) => eb.exists(eb.selectFrom('assets as a').select('a.id').whereRef('a.network_id', '=', 'n.id'))),
  'a top-level or': (k) =>
    k
      .selectFrom('users')
      .select('id')
      .where((eb) => eb('email', '=', '0@example.com').or('email', '=', '1@example.com')),
  'group by, having and an aggregate with a filter': (k) =>
    k
      .selectFrom('wallets')
      .select(['chain_id', (eb) => eb.fn.count<string>('id').filterWhere('id', 'is not', null).as('wallets')])
      .groupBy('chain_id')
      .having((eb) => eb.fn.count('id'), '>', 0),
  'a window': (k) => k.selectFrom('users').select(['id', (eb) => eb.fn.countAll<string>().over().as('users')]),
  'a row lock': (k) => k.selectFrom('users').select('id').forUpdate(),
  'a common table': (k) =>
    k
      .with('mine', (q) => q.selectFrom('users').select('id'))
      .selectFrom('mine')
      .selectAll(),
  'common tables, one on another': (k) =>
    k
      .with('one', (q) => q.selectFrom('users').select('id'))
      .with('two', (q) => q.selectFrom('one').innerJoin('users as u', 'u.id', 'one.id').select('u.email'))
      .selectFrom('two')
      .selectAll(),
  'a recursive common table': (k) =>
    k
      .withRecursive('reached(id)', (q) =>
        q
          .selectFrom('accounts')
          .select('id')
          .union(
            q
              .selectFrom('reached')
              .innerJoin('wallets as w', 'w.account_id', 'reached.id')
              .select('w.account_id as id'),
          ),
      )
      .selectFrom('reached')
      .selectAll(),
  'a common table within a subquery': (k) =>
    k
      .selectFrom('networks')
      .select('name')
      .where(
        'id',
        'in',
        k
          .with('held', (q) => q.selectFrom('assets').select('network_id'))
          .selectFrom('held')
          .select('network_id'),
      ),
  'a union': (k) => k.selectFrom('users').select('id').union(k.selectFrom('accounts').select('id')),
  'except and intersect': (k) =>
    k
      .selectFrom('networks')
      .select('id')
      .except((eb) => eb.selectFrom('wallet_networks').select('network_id as id'))
      .intersect((eb) => eb.selectFrom('networks').select('id')),
  'a table of all nodes': (k) => k.selectFrom('networks').selectAll(),
  'a table of all nodes with one of its own': (k) =>
    k.selectFrom('wallets as w').innerJoin('chains as c', 'c.id', 'w.chain_id').select(['w.id', 'c.name']),
};

/** Queries of every builder that writes. */
export const writes: Record<string, Query> = {
  'an update': (k) => k.updateTable('users').set({ name: 'x' }).returning('id'),
  'an update with a top-level or': (k) =>
    k
      .updateTable('users')
      .set('name', 'x')
      .where((eb) => eb('address', '=', '0x0').or('address', '=', '0x1')),
  'an update from another table': (k) =>
    k
      .updateTable('wallets as w')
      .from('accounts as a')
      .set((eb) => ({ updated_at: '2027-01-01T00:00:00Z', account_id: eb.ref('a.id') }))
      .where('a.name', '=', 'account 2')
      .returning(['w.id', 'a.id as account']),
  'an update from a join': (k) =>
    k
      .updateTable('users as u')
      .from('networks as n')
      .innerJoin('assets as s', 's.network_id', 'n.id')
      .set((eb) => ({ name: eb.ref('s.name') }))
      .where('n.name', '=', 'network 0')
      .returning(['u.id', 's.id as asset']),
  'an update by a subquery': (k) =>
    k.updateTable('users').set((eb) => ({ name: eb.selectFrom('accounts').select(eb.fn.max('name').as('name')) })),
  'a delete': (k) => k.deleteFrom('wallet_networks').returningAll(),
  'a delete using another table': (k) =>
    k
      .deleteFrom('wallet_networks as x')
      .using('wallets as w')
      .whereRef('w.chain_id', '=', 'w.chain_id')
      .returning(['x.wallet_id', 'w.id']),
  'a delete in a common table': (k) =>
    k
      .with('gone', (q) => q.deleteFrom('users').returning('id'))
      .selectFrom('gone')
      .selectAll(),
};
