import type { Db } from '../db.ts';

/** Deletes what was kept of tokens that have ended by themselves by now. */
export async function deleteExpiredRows({ db, nowMs }: { db: Db; nowMs(): number }): Promise<void> {
  const now = new Date(nowMs()).toISOString();
  const door = db.unscoped('tokens end for every node');
  await door.run((k) => k.deleteFrom('spent_refresh_tokens').where('expires_at', '<=', now));
  await door.run((k) => k.deleteFrom('revoked_tokens').where('expires_at', '<=', now));
}
