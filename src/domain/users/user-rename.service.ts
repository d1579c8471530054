import { identifierKey } from '../../lib/identifier-key.ts';
import type { Db } from '../../platform/database/database.ts';
import { notFound, Refusal } from '../../platform/errors.ts';
import { emailOf } from './identifiers.rules.ts';
import { UserStore } from './user-store.ts';
import type { UserRow } from './users.service.ts';

/**
 * Gives a user of a tenant another email.
 * @throws Refusal `not_found` when the tenant has no such user, `duplicate` when another user has the email.
 */
export function renameUser(db: Db, nodeId: string, id: string, email: string): Promise<UserRow> {
  const store = new UserStore(db);
  const users = db.forNode(nodeId);
  return db.transaction(async () => {
    await store.lock(nodeId);
    const [before] = await users.run((k) => k.selectFrom('users').select('email').where('id', '=', id));
    const others = await users.run((k) =>
      k
        .selectFrom('users')
        .select('id')
        .where((eb) => eb(eb.fn<string>('identifier_key', ['email']), '=', identifierKey(email)))
        .where('email', '<>', '')
        .where('id', '<>', id),
    );
    if (others.length > 0) throw new Refusal('duplicate', { taken: 'duplicate_email', message: 'the email is taken' });
    const [row] = await users.run((k) =>
      k
        .updateTable('users')
        .set({ email: emailOf(email), email_clash: 0 })
        .where('id', '=', id)
        .returningAll(),
    );
    if (!before || !row) throw notFound();
    await store.holdKey(nodeId, identifierKey(before.email));
    return row;
  });
}
