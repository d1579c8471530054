import { identifierKey } from '../../lib/identifier-key.ts';
import { Refusal, sqlState, UNIQUE_VIOLATION } from '../errors.ts';
import type { Db } from './database.ts';

/**
 * A column whose texts are unique within a tenant by their keys. Rows of 0.1.0 may have one key: a second column numbers
 * them, and the row with 0 keeps new ones out.
 */
type IdentifierColumn =
  | readonly [table: 'users', column: 'email']
  | readonly [table: 'supervisors', column: 'username'];

/** Returns the refusal of a text that another row of the tenant has. */
export function identifierTaken(column: IdentifierColumn[1]): Refusal {
  return new Refusal('duplicate', { taken: `duplicate_${column}`, message: `the ${column} is taken` });
}

/** Lets the first of a tenant's rows with the key of a text hold it. Call it when another row has ceased to. */
export async function holdIdentifier(
  db: Db,
  [table, column]: IdentifierColumn,
  nodeId: string,
  text: string,
): Promise<void> {
  await db.unscoped('the statement names its node').raw(
    (sql) => sql`
      update ${sql.id(table)} set ${sql.id(`${column}_clash`)} = 0 where id = (
        select id from ${sql.id(table)} where node_id = ${nodeId}::uuid
          and ${sql.id(column)} <> '' and identifier_key(${sql.id(column)}) = ${identifierKey(text)}
        order by ${sql.id(`${column}_clash`)} limit 1)`,
  );
}

/**
 * Changes the text of a row, which `write` does. In the same transaction, the next row with the key of the former text
 * holds it.
 * @throws Refusal `duplicate` when another row of the tenant has the key of the new text.
 */
export function renameIdentifier<Row>(
  db: Db,
  at: IdentifierColumn,
  { nodeId, id, text }: { nodeId: string; id: string; text: string },
  write: () => Promise<Row>,
): Promise<Row> {
  const [table, column] = at;
  return db.transaction(async () => {
    const rows = await db.unscoped('the statement names its node').raw(
      (sql) => sql<{ id: string; former: string }>`
        select id, ${sql.id(column)} as former from ${sql.id(table)} where node_id = ${nodeId}::uuid and (id = ${id}::uuid
          or ${sql.id(column)} <> '' and identifier_key(${sql.id(column)}) = ${identifierKey(text)})`,
    );
    if (rows.some((row) => row.id !== id)) throw identifierTaken(column);
    const result = await write().catch((error: unknown) => {
      throw sqlState(error) === UNIQUE_VIOLATION ? identifierTaken(column) : error;
    });
    await holdIdentifier(db, at, nodeId, rows[0]?.former ?? '');
    return result;
  });
}
