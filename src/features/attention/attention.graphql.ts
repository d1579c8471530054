import { type Builder, enumOf, implement } from '../../api/graphql/kit/builder.ts';
import { callerOf, errorsOf, orMember, PreconditionError } from '../../api/graphql/kit/resolvers.ts';
import { boundedTextInput, textInput } from '../../lib/input.ts';
import { MAX_LENGTHS } from '../../tables/text-lengths.ts';
import { ATTENTION_NEEDS, type Attention, type SeenRow } from './attention.service.ts';

/** Adds the query for what needs a person's decision, and the mutation that marks a group of it as seen. */
export function addAttention(builder: Builder): void {
  const kind = enumOf<Attention['kind']>(builder, 'AttentionKind', "A kind of what needs a person's decision.", {
    failed: `Transactions that failed within a day, by their error. Needs ${ATTENTION_NEEDS.failed[0]}.`,
    stuck: `Transactions without a report for an hour, by their status. Needs ${ATTENTION_NEEDS.stuck[0]}.`,
    conflict: `Transactions that were reported as done and as failed. Needs ${ATTENTION_NEEDS.conflict[0]}.`,
    locked: `Supervisors who are locked after wrong passwords. Needs ${ATTENTION_NEEDS.locked[0]}.`,
    quota: `Clients that have used 80 % of the requests of the month. Needs ${ATTENTION_NEEDS.quota[0]}.`,
    migration: `User migrations of seven days that failed, or of which rows did. Needs ${ATTENTION_NEEDS.migration[0]}.`,
  });
  const attention = implement(
    builder.objectRef<Attention>('Attention'),
    'Things of one kind that need a decision for one reason.',
    {
      id: ['ID', 'Identifies the group with its current members: it changes when something joins or leaves.'],
      kind: [kind, 'Its kind.'],
      reason: [
        'String?',
        'What they have in common: the error of failed transactions, the status code of stuck ones, the username, `used of limit` of a quota, the status of a migration.',
      ],
      count: ['Int', 'How many they are: of transactions among the last 1,000, of a migration its failed rows.'],
      since: ['DateTime', 'When the first of them became so.'],
      ids: [['ID'], 'The ids of at most ten of them.'],
      seen: [
        implement(builder.objectRef<SeenRow>('AttentionSeen'), 'Who has seen a group.', {
          seen_by: ['String', 'The `sub` of the token.'],
          seen_at: ['DateTime', 'When it was marked.'],
          note: ['String?', 'The note that was left; otherwise null.'],
        }),
        'Who has seen it; null if nobody has, more than 30 days ago, or something has joined it since.',
        'nullable',
      ],
    },
    (t) => ({
      marking: t.string({
        description: 'The permission to mark it as seen.',
        resolve: ({ kind }) => ATTENTION_NEEDS[kind][1],
      }),
    }),
  );
  builder.queryField('needsAttention', (t) =>
    t.field({
      type: [attention],
      description:
        "What needs a person's decision, by kind and reason; each kind only with its permission. Needs any token.",
      authScopes: { token: true },
      resolve: (_root, _args, { services, principal }) => services.attention.find(principal),
    }),
  );
  builder.mutationField('markSeen', (t) =>
    t.field({
      type: attention,
      description:
        'Marks a group of what needs a decision as seen, for all people of the tenant, or as not seen. Something new in it makes it unseen. Without `id`, its `kind` and `reason` tell which. Needs any token with the permission that the group names as `marking`.',
      authScopes: { token: true },
      errors: errorsOf(
        'The group; or PreconditionError: there is no such group, or something has joined or left the one with this id, or several groups have this reason; ForbiddenError: the caller lacks the permission; ValidationError: `note` is too long; NotFoundError: reserved for later versions.',
        PreconditionError,
      ),
      args: {
        kind: t.arg({ type: kind, required: true, description: 'The kind of the group.' }),
        reason: t.arg.string({
          description: 'The `reason` of the group; any by default.',
          validate: { schema: textInput() },
        }),
        id: t.arg.id({
          description: 'The `id` of the group: then nothing is marked that has joined it since it was read.',
        }),
        seen: t.arg.boolean({ required: true, defaultValue: true, description: 'Whether it is seen.' }),
        note: t.arg.string({
          description: 'A note for the others: at most 1,024 characters.',
          validate: { schema: boundedTextInput(MAX_LENGTHS.seen_attention.note) },
        }),
      },
      resolve: (_root, { seen: isSeen, note, ...group }, context) =>
        orMember(context.services.attention.mark(callerOf(context), group, isSeen, note || null)),
    }),
  );
}
