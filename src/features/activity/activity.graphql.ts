import { type Builder, connectionOf, implement } from '../../api/graphql/kit/builder.ts';
import { ownedConnectionResolver } from '../../api/graphql/kit/resolvers.ts';
import type { ActivityRow } from './activity.service.ts';

/** Adds the type of changes, and the lists of them. */
export function addActivity(builder: Builder): void {
  const connection = connectionOf(
    builder,
    implement(builder.objectRef<ActivityRow>('Activity'), 'A change of something, and its author.', {
      id: ['ID', 'A UUID.'],
      at: ['DateTime', 'When it was made.'],
      is_new: ['Boolean', 'Whether it was created by this.'],
      changes: [
        'JSON',
        'By the names of its columns, the values before and after: `{"role": ["viewer", "operator"]}`. Secrets and personal data have null for both.',
      ],
      subject: ['String?', "The `sub` of the author's token; null if unknown, as of a command line."],
      client_id: ['ID?', 'The client of that token; null if it names none or is unknown.'],
      correlation_id: ['String?', 'The correlation id of the request, as in its audit record; null if unknown.'],
    }),
    'A page of changes.',
    'A change and its cursor.',
  );
  for (const type of ['Client', 'Supervisor', 'User', 'Wallet'] as const) {
    builder.objectField(type, 'activity', (t) =>
      t.field({
        type: connection,
        description: 'Its changes, each with its author and request, newest first. Needs any token that can read it.',
        args: t.arg.connectionArgs(),
        resolve: ownedConnectionResolver(`activityOf${type}`, (services) => services.activity),
      }),
    );
  }
}
