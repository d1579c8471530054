import type { Principal } from '../../access/identity/callers.ts';
import { type Builder, implement } from '../../api/graphql/kit/builder.ts';
import { callerOf } from '../../api/graphql/kit/resolvers.ts';
import { iso } from '../../lib/instants.ts';

/** Adds the query `me`, which returns the principal of the token. */
export function addViewer(builder: Builder): void {
  const viewer = implement(
    builder.objectRef<Principal>('Viewer'),
    'The identity in the access token.',
    {
      nodeId: ['ID', 'The tenant (node) whose data the token gives access to.'],
      clientId: ['ID?', 'The client that the token was issued to.'],
      subject: ['String', 'The supervisor, or the client itself.'],
      tokenUse: ['String', '`login` for a supervisor, `api` for a client.'],
    },
    (t) => ({
      username: t.string({
        nullable: true,
        description: 'The username of a supervisor; null for a client.',
        resolve: async ({ nodeId, subject, tokenUse }, _args, { services }) =>
          tokenUse === 'login' ? (await services.supervisors.find(nodeId, subject))?.username : undefined,
      }),
      tenantName: t.string({
        nullable: true,
        description: 'The name of the tenant.',
        resolve: ({ nodeId }, _args, { services }) => services.directory.nodeName(nodeId),
      }),
      permissions: t.stringList({
        description: 'The permissions of the token, such as `accounts:read`.',
        resolve: ({ permissions }) => [...permissions],
      }),
      expiresAt: t.field({
        type: 'DateTime',
        nullable: true,
        description: 'When the token expires; null if it does not.',
        resolve: ({ expiresAtMs }) => (expiresAtMs === undefined ? null : iso(expiresAtMs)),
      }),
    }),
  );
  builder.queryField('me', (t) =>
    t.field({
      type: viewer,
      description: 'The caller. Needs any token.',
      authScopes: { token: true },
      resolve: (_root, _args, context) => callerOf(context),
    }),
  );
}
