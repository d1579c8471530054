import type { PostgreSqlSchemaHelper, SqlMikroORM } from '@mikro-orm/sql';
import type { Database } from '../src/platform/database/open-database.ts';

/**
 * Opens MikroORM to compare a database with the entities. It reads the `not valid` of a check as a part of its
 * condition, which is removed.
 */
export async function comparableOrm(database: Database): Promise<SqlMikroORM> {
  const orm = await database.openOrm();
  const helper = orm.driver.getPlatform().getSchemaHelper() as PostgreSqlSchemaHelper;
  const read = helper.getAllChecks.bind(helper);
  helper.getAllChecks = async (...args) => {
    const checks = await read(...args);
    for (const check of Object.values(checks).flat()) {
      check.expression = String(check.expression).replace(/^CHECK \((.*)\) NOT VALID$/, '$1');
    }
    return checks;
  };
  return orm;
}
