import { type Builder, enumOf, implement } from '../../api/graphql/kit/builder.ts';
import { ATTENTION_NEEDS, type Attention, type AttentionFinder } from './attention.service.ts';

declare module '../../api/shared/services.ts' {
  interface FeatureServices {
    attention: AttentionFinder;
  }
}

/** Adds the query for what needs a person's decision. */
export function addAttention(builder: Builder): void {
  const kind = enumOf<Attention['kind']>(builder, 'AttentionKind', "A kind of what needs a person's decision.", {
    failed: `Transactions that failed within a day, by their error. Needs ${ATTENTION_NEEDS.failed}.`,
    stuck: `Transactions without a report for an hour, by their status. Needs ${ATTENTION_NEEDS.stuck}.`,
    conflict: `Transactions that were reported as done and as failed. Needs ${ATTENTION_NEEDS.conflict}.`,
    locked: `Supervisors who are locked after wrong passwords. Needs ${ATTENTION_NEEDS.locked}.`,
    quota: `Clients that have used 80 % of the requests of the month. Needs ${ATTENTION_NEEDS.quota}.`,
    migration: `User migrations of seven days that failed, or of which rows did. Needs ${ATTENTION_NEEDS.migration}.`,
  });
  const attention = implement(
    builder.objectRef<Attention>('Attention'),
    'Things of one kind that need a decision for one reason.',
    {
      kind: [kind, 'Its kind.'],
      reason: [
        'String?',
        'What they have in common: the error of failed transactions, the status code of stuck ones, the username, `used of limit` of a quota, the status of a migration.',
      ],
      count: ['Int', 'How many they are: of transactions among the last 1,000, of a migration its failed rows.'],
      since: ['DateTime', 'When the first of them became so.'],
      ids: [['ID'], 'The ids of at most ten of them.'],
    },
  );
  builder.queryField('needsAttention', (t) =>
    t.field({
      type: [attention],
      description:
        "What needs a person's decision, by kind and reason; each kind only with its permission. Needs any token.",
      authScopes: { token: true },
      resolve: (_root, _args, { services, principal }) =>
        services.attention.find(principal.nodeId, principal.permissions),
    }),
  );
}
