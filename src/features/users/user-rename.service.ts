import type { Db } from '../../platform/database/database.ts';
import { renameIdentifier } from '../../platform/database/identifier-column.ts';
import { notFound } from '../../platform/errors.ts';
import { UserStore } from './user-store.service.ts';
import type { UserRow } from './users.rules.ts';
import { emailOf } from './users.rules.ts';

/**
 * Gives a user of a tenant another email.
 * @throws Refusal `not_found` when the tenant has no such user, or the user is erased, `duplicate` when another user has
 * the email.
 */
export function renameUser(db: Db, nodeId: string, id: string, email: string): Promise<UserRow> {
  return renameIdentifier(db, ['users', 'email'], { nodeId, id, text: email }, async () => {
    await new UserStore(db).noteRows(nodeId, id);
    const [row] = await db.forNode(nodeId).run((k) =>
      k
        .updateTable('users')
        .set({ email: emailOf(email), email_clash: 0 })
        .where('id', '=', id)
        .where('erased_at', 'is', null)
        .returningAll(),
    );
    if (!row) throw notFound();
    return row;
  });
}
