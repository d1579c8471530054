import { type Builder, connectionOf, implement, needs } from '../../api/graphql/kit/builder.ts';
import { callerOf, connectionResolver, errorsOf, orMember, rowResolver } from '../../api/graphql/kit/resolvers.ts';
import type { Seal } from '../../audit/seals.ts';
import { searchInput } from '../../lib/input.ts';
import type { UserRow } from './users.rules.ts';

declare module '../../api/graphql/kit/builder.ts' {
  interface ObjectRows {
    User: UserRow;
  }
}

const idOptions = { required: true, description: "The user's UUID." } as const;

/** What the erasures of a user have done, by GraphQL names. */
interface ErasureReceipt {
  /** PostgreSQL's text in UTC. */
  erasedAt: string;
  records: number;
  responses: number;
  by: string | null;
  migrations: readonly string[] | null;
  seal: Seal | null;
}

/** Returns the receipt; null for a user who was not erased, or whose erasure was not counted to its end. */
function receiptOf(row: UserRow): ErasureReceipt | null {
  const { erased_at: erasedAt, erased_records: records, erased_responses: responses, erased_by: by } = row;
  if (erasedAt === null || records === null || responses === null) return null;
  const { erased_migrations: migrations, erased_seal: seal } = row;
  return { erasedAt, records, responses, by, migrations, seal: seal && JSON.parse(seal) };
}

/** Adds the type of users, the queries for them and the mutation that erases a user. */
export function addUsers(builder: Builder): void {
  const kyc = builder.objectRef<UserRow>('Kyc').implement({
    description: 'Whether a user is verified, and the KYC token that records it.',
    fields: (t) => ({
      isVerified: t.exposeBoolean('kyc_verified', { description: 'Whether the user is verified.' }),
      tokenSent: t.exposeBoolean('kyc_token_sent', { description: 'Whether the token was sent.' }),
      tokenSentAt: t.expose('kyc_token_sent_at', {
        type: 'DateTime',
        nullable: true,
        description: 'When it was sent.',
      }),
      tokenTxHash: t.exposeString('kyc_token_tx_hash', {
        nullable: true,
        description: 'The hash of the transaction that sent it; null if unknown.',
      }),
    }),
  });
  const receipt = implement(builder.objectRef<ErasureReceipt>('ErasureReceipt'), 'The receipt of an erasure.', {
    erasedAt: ['DateTime', 'When the user was last erased.'],
    records: [
      'Int',
      'The number of audit records whose bodies and query string were removed, by all erasures of the user.',
    ],
    responses: ['Int', 'The number of stored idempotent responses that were erased, likewise.'],
    by: ['String?', 'The `sub` of the token that last erased the user; null for the command line.'],
    migrations: [['ID'], 'The ids of the migrations whose rows were erased; null of an earlier version.', 'nullable'],
    seal: [
      implement(builder.objectRef<Seal>('ErasureSeal'), 'The signed statement in the audit that a user is erased.', {
        body: ['String', 'The JSON that is signed, with the id of the key and of the user.'],
        signature: ['String?', 'Its Ed25519 signature in hexadecimal digits; null if the installation has no key.'],
      }),
      'Its seal; null of an earlier version.',
      'nullable',
    ],
  });
  implement(
    builder.objectRef<UserRow>('User'),
    'A migrated user.',
    {
      id: ['ID', 'A UUID, the same as in REST.'],
      external_id: ['String?', 'The identifier of the user in the system that migrated it.'],
      name: ['String', 'The given name; empty if there is none.'],
      surname: ['String', 'The family name; empty if there is none.'],
      email: ['String', 'The email, trimmed and in NFC; empty if there is none.'],
      address: ['String', "The wallet's address, lower-cased."],
      identity_number: ['String', 'The identity number; empty if there is none.'],
      created_at: ['DateTime', 'When it was migrated.'],
      erased_at: ['DateTime?', 'When its personal data was erased; null if it was not.'],
    },
    (t) => ({
      erasure: t.field({
        type: receipt,
        nullable: true,
        description: 'The receipt of its erasure; null if it was not erased, or by an earlier version.',
        resolve: receiptOf,
      }),
      kyc: t.field({
        type: kyc,
        nullable: true,
        description: 'The KYC token; null if it was not sent.',
        resolve: (row) => (row.kyc_token_sent || row.kyc_verified ? row : null),
      }),
    }),
  );
  builder.mutationField('eraseUser', (t) =>
    t.field({
      type: 'User',
      ...needs(
        'users:erase',
        "Erases a user's personal data permanently: in the user, in migrations, and in the stored responses and audit records of requests that created, changed, returned or matched the user.",
      ),
      errors: errorsOf(
        'The user with blank personal data, and the receipt; or NotFoundError: there is no such user; ForbiddenError: the caller lacks users:erase; ValidationError: reserved for later versions.',
      ),
      args: { id: t.arg.id(idOptions) },
      resolve: (_root, { id }, context) =>
        orMember(context.services.userErasure.erase(context.principal.nodeId, id, callerOf(context))),
    }),
  );
  const filter = builder.inputType('UserFilter', {
    description: 'Filters users; all given members must match.',
    fields: (t) => ({
      search: t.string({
        description: 'Part of the name, surname, email, external id or address, ignoring case.',
        validate: { schema: searchInput() },
      }),
      kycVerified: t.boolean({ description: 'Whether the user is verified.' }),
    }),
  });
  const connection = connectionOf(builder, 'User', 'A page of users.', 'A user and its cursor.');
  builder.queryFields((t) => ({
    users: t.field({
      type: connection,
      ...needs('users:read', "The tenant's users, oldest first."),
      args: {
        filter: t.arg({ type: filter, description: 'Filters the users; all by default.' }),
        ...t.arg.connectionArgs(),
      },
      resolve: connectionResolver('users', ({ userPages }) => userPages),
    }),
    user: t.field({
      type: 'User',
      nullable: true,
      ...needs('users:read', 'One user; null if the id is unknown or belongs to another tenant.'),
      args: { id: t.arg.id(idOptions) },
      resolve: rowResolver(({ userPages }, nodeId, id) => userPages.find(nodeId, id)),
    }),
  }));
}
