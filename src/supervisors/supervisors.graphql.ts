import DataLoader from 'dataloader';
import type { Builder } from '../graphql/builder.ts';
import type { GraphqlContext } from '../graphql/context.ts';
import { connectionOf, pageRequest } from '../graphql/pages.ts';
import { perOperation } from '../graphql/per-operation.ts';
import type { Refs } from '../graphql/refs.ts';
import { isoFromPg } from '../lib/pg-time.ts';
import { permissionsOfRole } from '../oauth/permissions.rules.ts';
import { addSupervisorMutations } from './supervisor-mutations.graphql.ts';

const CONNECTION = 'supervisors';

/** What a supervisor can be. */
export type SupervisorStatus = ReturnType<typeof supervisorStatus>;

/** Adds the type of supervisors, the query for them and the mutations of them. */
export function addSupervisors(builder: Builder, refs: Refs): void {
  const status = supervisorStatus(builder);
  implementSupervisor(refs, status);
  addSupervisorMutations(builder, refs, status);
  const connection = builder.connectionObject(
    { type: refs.supervisor, name: 'SupervisorConnection', description: 'A page of supervisors.' },
    { name: 'SupervisorEdge', description: 'A supervisor and the place in the list.' },
  );
  builder.queryField('supervisors', (t) =>
    t.field({
      type: connection,
      description: "The node's supervisors, active or not, oldest first. Needs clients:manage.",
      authScopes: { permission: 'clients:manage' },
      args: t.arg.connectionArgs(),
      resolve: async (_root, args, context) => {
        const { services, principal } = context;
        const request = pageRequest(args, context, CONNECTION);
        return connectionOf({
          page: await services.supervisorPages.page(principal.nodeId, request),
          request,
          connection: CONNECTION,
          context,
          keyOf: (row) => ({ at: row.created_at, id: row.id }),
          nodeOf: (row) => row,
          totalCount: () => services.supervisorPages.count(principal.nodeId),
        });
      },
    }),
  );
}

function supervisorStatus(builder: Builder) {
  return builder.enumType('SupervisorStatus', {
    description: 'Whether a supervisor can log in.',
    values: {
      ACTIVE: { value: 'active' as const, description: 'Can log in.' },
      DISABLED: { value: 'disabled' as const, description: 'Cannot, and has no session.' },
    },
  });
}

function implementSupervisor({ supervisor }: Refs, status: SupervisorStatus): void {
  const locks = perOperation(lockLoader);
  supervisor.implement({
    description: 'A person who logs in by the password grant.',
    fields: (t) => ({
      id: t.exposeID('id', { description: 'A UUID: the `sub` of the tokens.' }),
      username: t.exposeString('username', {
        description: 'The name to log in with, in any case of its letters; unique in the node.',
      }),
      role: t.exposeString('role', { description: '`admin`, `operator` or `viewer`.' }),
      permissions: t.stringList({
        description: 'What the role allows, such as `accounts:read`.',
        resolve: ({ role }) => [...permissionsOfRole(role)],
      }),
      status: t.field({
        type: status,
        description: 'Whether the supervisor can log in.',
        resolve: (row) => row.status,
      }),
      lockedUntil: t.field({
        type: 'DateTime',
        nullable: true,
        description: 'Until when logins are refused after too many wrong passwords; null: they are not.',
        resolve: ({ username }, _args, context) => locks(context).load(username),
      }),
      createdAt: t.field({
        type: 'DateTime',
        description: 'When the supervisor was created.',
        resolve: (row) => isoFromPg(row.created_at),
      }),
    }),
  });
}

/** Remembers nothing: a mutation after another tells what is true then. */
function lockLoader({ services, principal }: GraphqlContext): DataLoader<string, string | null> {
  return new DataLoader(
    async (usernames) => {
      const locked = await services.locks.lockedUntil(principal.nodeId, usernames);
      return usernames.map((username) => {
        const untilMs = locked.get(username);
        return untilMs === undefined ? null : new Date(untilMs).toISOString();
      });
    },
    { cache: false },
  );
}
