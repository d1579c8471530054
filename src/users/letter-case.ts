import type { Db } from '../db.ts';

/** Whether the database knows the case of letters beyond ASCII, by which emails are compared: in the locale C it does not. */
export async function knowsLetterCase(db: Db): Promise<boolean> {
  const [row] = await db
    .unscoped('the locale is of the database')
    .raw((sql) => sql<{ known: boolean }>`select lower('ÀЖ') = 'àж' as known`);
  return row?.known ?? false;
}
