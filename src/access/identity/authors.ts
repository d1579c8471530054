import { correlationKey } from '../../audit/masked-names.ts';
import { cutTo } from '../../lib/input.ts';
import type { Db, ScopedKysely } from '../../platform/database/database.ts';
import { MAX_LENGTHS } from '../../tables/text-lengths.ts';
import type { Caller } from './callers.ts';

/** Who changes something, in the request with this correlation id, and why. */
export type Author = Pick<Caller, 'nodeId' | 'subject' | 'clientId' | 'correlationId'> & {
  reason?: string | null | undefined;
};

/** Tells the database who changes something: what it keeps of changes until the end of the transaction has this author. */
export async function setAuthor(db: Db, { subject, clientId, correlationId, reason }: Author): Promise<void> {
  const author = {
    // The claims of another issuer's token may be of any length.
    subject: cutTo(subject, MAX_LENGTHS.wallet_rule_versions.subject),
    client_id: clientId === undefined ? null : cutTo(clientId, MAX_LENGTHS.wallet_rule_versions.client_id),
    correlation_id: correlationKey(correlationId),
    reason,
  };
  await db
    .unscoped('a setting of the transaction')
    .raw((sql) => sql`select set_config('portcullis.rule_author', ${JSON.stringify(author)}, true)`);
}

/** Runs a statement by an author, and returns the first row that it has written. */
export function writeAs<Row>(
  db: Db,
  author: Author,
  write: (k: ScopedKysely) => { execute(): Promise<Row[]> },
): Promise<Row | undefined> {
  return db.transaction(async () => {
    await setAuthor(db, author);
    return (await db.forNode(author.nodeId).run(write))[0];
  });
}
