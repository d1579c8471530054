import type { Principal } from '../../../access/identity/principal.ts';
import type { Builder } from '../kit/builder.ts';
import { callerOf } from '../kit/graphql-context.ts';

/** The latest time that a Date can hold, in ms (ECMA-262, section 21.4.1.1); a token's expiry may be later. */
const LAST_DATE_MS = 8.64e15;

/** Adds the query `me`, which returns the principal of the token. */
export function addViewer(builder: Builder): void {
  const viewer = builder.objectRef<Principal>('Viewer').implement({
    description: 'Whom the token was issued for.',
    fields: (t) => ({
      nodeId: t.exposeID('nodeId', { description: 'The node whose data the token reaches.' }),
      clientId: t.exposeID('clientId', { nullable: true, description: 'The client that the token was issued to.' }),
      subject: t.exposeString('subject', { description: 'The supervisor, or the client itself.' }),
      tokenUse: t.exposeString('tokenUse', { description: '`login` for a supervisor, `api` for a client.' }),
      permissions: t.stringList({
        description: 'The permissions of the token, such as `accounts:read`.',
        resolve: ({ permissions }) => [...permissions],
      }),
      expiresAt: t.field({
        type: 'DateTime',
        nullable: true,
        description: 'When the token ends; null where it does not.',
        resolve: ({ expiresAtMs }) =>
          expiresAtMs === undefined ? null : new Date(Math.min(expiresAtMs, LAST_DATE_MS)).toISOString(),
      }),
    }),
  });
  builder.queryField('me', (t) =>
    t.field({
      type: viewer,
      description: 'The caller. Needs any token.',
      authScopes: { token: true },
      resolve: (_root, _args, context) => callerOf(context),
    }),
  );
}
