import type { Database } from '../../../src/platform/database/open-database.ts';

/** Every version of a rule as the table has it, oldest first. */
export function versionsOf({ db }: Pick<Database, 'db'>, ruleId: string) {
  return db
    .unscoped('a test looks at its rows')
    .run((k) => k.selectFrom('wallet_rule_versions').selectAll().where('rule_id', '=', ruleId).orderBy('version'));
}

/** The rule itself as the newest of its versions has it, without its author and without a reason; undefined when there is none. */
export async function newestOf({ db }: Pick<Database, 'db'>, ruleId: string) {
  const [row] = await db
    .unscoped('a test looks at its rows')
    .run((k) => k.selectFrom('wallet_rules').selectAll().where('id', '=', ruleId));
  if (!row) return undefined;
  const { id, created_at: _created, updated_at, ...content } = row;
  return { ...content, rule_id: id, at: updated_at, deleted: false, reason: null };
}
