import { identifierKeySql } from '../../lib/identifier-key.ts';
import { readConfig } from '../../platform/config/config.ts';
import type { CommandBody } from '../kit/command.ts';
import { openForCommand } from '../kit/open-services.ts';

/** `portcullis clashes`: lists users and supervisors whose identifiers count as one. */
export const clashes: CommandBody = {
  description: [
    'Lists by their ids the users of a tenant whose emails count as one, and its supervisors whose usernames do: they differ only',
    'in letter case, composed letters, blanks or invisible characters. 0.1.0 told some of them apart. They go on working by their',
    'exact spelling until users rename or supervisor rename resolves the clash. Runs on the schema of the previous release, too.',
  ].join('\n'),
  examples: ['portcullis clashes', 'DATABASE_URL=postgres://… portcullis clashes --json'],
  async run({ env, stack, answer }) {
    const { db } = await openForCommand(readConfig(env).config, stack);
    const unscoped = db.unscoped('operators look for clashes on all nodes');
    const clashes = await db.transaction(async () => {
      // The schema of the previous release has no such function.
      await unscoped.raw((sql) => sql`${sql.raw(identifierKeySql('pg_temp.clash_key'))}`);
      const rows = await unscoped.raw(
        (sql) => sql<{
          kind: 'user' | 'supervisor';
          node_id: string;
          /** The oldest first. */
          ids: string[];
        }>`
          select 'user' as kind, node_id, json_agg(id order by created_at, id) as ids
          from users where email <> '' group by node_id, pg_temp.clash_key(email) having count(*) > 1
          union all
          select 'supervisor', node_id, json_agg(id order by created_at, id)
          from supervisors group by node_id, pg_temp.clash_key(username) having count(*) > 1`,
      );
      await unscoped.raw((sql) => sql`drop function pg_temp.clash_key(text)`);
      return rows;
    });
    const lines = clashes.map(({ kind, node_id, ids }) => `${kind}  ${node_id}  ${ids.join(' ')}\n`);
    return answer({ clashes: clashes }, lines.join('') || 'No clashes.\n');
  },
};
