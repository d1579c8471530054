import type { Selectable } from 'kysely';
import type { Db } from '../../platform/database/database.ts';
import { type NestedList, nestedList } from '../../platform/database/keyset-list.ts';
import type { Tables } from '../../tables/tables.ts';

/** A change of something; times are PostgreSQL's text in UTC, to the microsecond. */
export type ActivityRow = Omit<Selectable<Tables['activity']>, 'node_id'>;

/** Makes the reader of the changes of each thing as a nested list, newest first. */
export function activityLists(db: Db): NestedList<ActivityRow> {
  return nestedList(db, {
    ownerIds: 'uuid',
    rows: (k) =>
      k
        .selectFrom('activity')
        .select(['id', 'of_id', 'at', 'is_new', 'changes', 'subject', 'client_id', 'correlation_id']),
    owner: 'of_id',
    order: ['at', 'id'],
    isNewestFirst: true,
  });
}
