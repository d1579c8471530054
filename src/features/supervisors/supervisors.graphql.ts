import type { InputRef } from '@pothos/core';
import { permissionsOfRole } from '../../access/identity/permissions.rules.ts';
import type { SupervisorRow } from '../../access/supervisors/supervisors.service.ts';
import { type Builder, connectionOf, enumOf, implement, needs, parsedArgument } from '../../api/graphql/kit/builder.ts';
import {
  callerOf,
  connectionResolver,
  DuplicateError,
  errorsOf,
  loaderPerOperation,
  orMember,
  PreconditionError,
  rowResolver,
  tenantAndAdministrator,
} from '../../api/graphql/kit/resolvers.ts';
import { currentPasswordInput, passwordInput, roleInput, supervisorInput } from './supervisor.input.ts';

declare module '../../api/graphql/kit/builder.ts' {
  interface ObjectRows {
    Supervisor: SupervisorRow;
  }
}

const authScopes = { permission: 'clients:manage' } as const;
const idOptions = { required: true, description: "The supervisor's UUID." } as const;
const passwordOptions = {
  required: true,
  description: '8 to 1024 characters after normalisation to NFC.',
} as const;
const roleOptions = { required: true, description: '`admin`, `operator` or `viewer`.' } as const;
const changed =
  'The supervisor; or ValidationError: an argument is invalid; NotFoundError: there is no such supervisor; PreconditionError: no active admin would be left; ForbiddenError: the caller lacks clients:manage or a permission of the role.';

/** Adds the mutations that administer supervisors, and those by which supervisors change themselves. */
function addSupervisorMutations(builder: Builder, status: InputRef<SupervisorRow['status']>): void {
  const input = builder.inputType('SupervisorInput', {
    description: 'A supervisor.',
    fields: (t) => ({
      username: t.string({
        required: true,
        description:
          'The name to log in with, trimmed: 1 to 255 characters; unique within the tenant. Letter case, composition and invisible characters do not count.',
      }),
      password: t.string(passwordOptions),
      role: t.string(roleOptions),
    }),
  });
  const own =
    'The supervisor; or NotFoundError: the token was not issued by a login; ForbiddenError: reserved for later versions;';
  builder.mutationFields((t) => ({
    createSupervisor: t.field({
      type: 'Supervisor',
      description:
        'Creates an active supervisor. Has the same requirements as setting the password: needs clients:manage and every permission of the role.',
      authScopes,
      errors: errorsOf(
        'The supervisor; or ValidationError: a member of `input` is invalid; DuplicateError: the username is taken; ForbiddenError: the caller lacks clients:manage, or a permission of the role; NotFoundError: reserved for later versions.',
        DuplicateError,
      ),
      args: { input: t.arg({ ...parsedArgument(input, supervisorInput), description: 'The supervisor.' }) },
      resolve: (_root, { input: supervisor }, context) =>
        orMember(context.services.supervisorAdministration.create(...tenantAndAdministrator(context), supervisor)),
    }),
    changeOwnPassword: t.field({
      type: 'Supervisor',
      description:
        "Changes the caller's password and revokes the caller's sessions, this one too. Needs a login token. Five wrong current passwords in fifteen minutes lock the change.",
      authScopes: { token: true },
      errors: errorsOf(`${own} ValidationError: the current password is wrong, or the new one is invalid.`),
      args: {
        current: t.arg.string({
          required: true,
          description: 'The current password.',
          validate: { schema: currentPasswordInput },
        }),
        new: t.arg.string({ ...passwordOptions, validate: { schema: passwordInput.out.shape.password } }),
      },
      resolve: (_root, args, context) =>
        orMember(
          context.services.supervisorAdministration.changeOwnPassword(callerOf(context), args.current, args.new),
        ),
    }),
    endOwnSessions: t.field({
      type: 'Supervisor',
      description: "Revokes all of the caller's sessions immediately, this one too. Needs a login token.",
      authScopes: { token: true },
      errors: errorsOf(`${own} ValidationError: reserved for later versions.`),
      resolve: (_root, _args, context) =>
        orMember(context.services.supervisorAdministration.endOwnSessions(callerOf(context))),
    }),
    setSupervisorStatus: t.field({
      type: 'Supervisor',
      description:
        'Enables or disables a supervisor. Disabling revokes the sessions and needs clients:manage only. Enabling, like setting the password, also needs every permission of the role. The last active admin cannot be disabled.',
      authScopes,
      errors: errorsOf(changed, PreconditionError),
      args: {
        id: t.arg.id(idOptions),
        status: t.arg({ type: status, required: true, description: 'The new status.' }),
      },
      resolve: (_root, args, context) =>
        orMember(
          context.services.supervisorAdministration.setStatus(...tenantAndAdministrator(context), args.id, args.status),
        ),
    }),
    setSupervisorPassword: t.field({
      type: 'Supervisor',
      description:
        'Sets the password and revokes the sessions. Needs clients:manage and every permission of the role. An API token cannot set a password if its client has restrictions (addresses, certificate, rate, quota).',
      authScopes,
      errors: errorsOf(changed, PreconditionError),
      args: {
        id: t.arg.id(idOptions),
        password: t.arg.string({ ...passwordOptions, validate: { schema: passwordInput.out.shape.password } }),
      },
      resolve: (_root, { id, password }, context) =>
        orMember(
          context.services.supervisorAdministration.setPassword(...tenantAndAdministrator(context), id, password),
        ),
    }),
    setSupervisorRole: t.field({
      type: 'Supervisor',
      description:
        'Sets the role and revokes the sessions. Has the same requirements as setting the password, for both roles: needs clients:manage and every permission of each. The last active admin cannot lose that role.',
      authScopes,
      errors: errorsOf(changed, PreconditionError),
      args: {
        id: t.arg.id(idOptions),
        role: t.arg.string({ ...roleOptions, validate: { schema: roleInput.out.shape.role } }),
      },
      resolve: (_root, { id, role }, context) =>
        orMember(context.services.supervisorAdministration.setRole(...tenantAndAdministrator(context), id, role)),
    }),
    unlockSupervisor: t.field({
      type: 'Supervisor',
      description:
        'Ends a lockout after wrong passwords, so that the supervisor can log in immediately. Has the same requirements as setting the password: needs clients:manage and every permission of the role.',
      authScopes,
      errors: errorsOf(changed, PreconditionError),
      args: { id: t.arg.id(idOptions) },
      resolve: (_root, { id }, context) =>
        orMember(context.services.supervisorAdministration.unlock(...tenantAndAdministrator(context), id)),
    }),
    revokeSessions: t.field({
      type: 'Supervisor',
      ...needs('clients:manage', 'Revokes every session of a supervisor immediately.'),
      errors: errorsOf(changed, PreconditionError),
      args: { supervisorId: t.arg.id(idOptions) },
      resolve: (_root, { supervisorId }, context) =>
        orMember(
          context.services.supervisorAdministration.revokeSessions(...tenantAndAdministrator(context), supervisorId),
        ),
    }),
  }));
}

/** Adds the type of supervisors, with its query and mutations. */
export function addSupervisors(builder: Builder): void {
  const status = enumOf(builder, 'SupervisorStatus', 'Whether a supervisor can log in.', {
    active: 'Can log in.',
    disabled: 'Cannot log in, and has no session.',
  });
  // Not cached, so that a mutation that follows another one returns the current lockout.
  const locks = loaderPerOperation<string | null>(
    async (usernames, { services, principal }) => {
      const locked = await services.locks.lockedUntil(principal.nodeId, usernames);
      return usernames.map((username) => {
        const untilMs = locked.get(username);
        return untilMs === undefined ? null : new Date(untilMs).toISOString();
      });
    },
    { cache: false },
  );
  implement(
    builder.objectRef<SupervisorRow>('Supervisor'),
    'A person who logs in with the password grant.',
    {
      id: ['ID', 'A UUID: the `sub` of the tokens.'],
      username: [
        'String',
        'The name to log in with; unique within the tenant. Letter case, composition and invisible characters do not count.',
      ],
      role: ['String', '`admin`, `operator` or `viewer`.'],
      status: [status, 'Whether the supervisor can log in.'],
      created_at: ['DateTime', 'When the supervisor was created.'],
    },
    (t) => ({
      permissions: t.stringList({
        description: 'The permissions of the role, such as `accounts:read`.',
        resolve: ({ role }) => [...permissionsOfRole(role)],
      }),
      lockedUntil: t.field({
        type: 'DateTime',
        nullable: true,
        description: 'When the lockout after too many wrong passwords ends; null if there is none.',
        resolve: ({ username }, _args, context) => locks(context).load(username),
      }),
    }),
  );
  addSupervisorMutations(builder, status);
  const connection = connectionOf(builder, 'Supervisor', 'A page of supervisors.', 'A supervisor and its cursor.');
  builder.queryFields((t) => ({
    supervisors: t.field({
      type: connection,
      ...needs('clients:manage', "The tenant's supervisors, active or not, oldest first."),
      args: t.arg.connectionArgs(),
      resolve: connectionResolver('supervisors', ({ supervisorPages }) => supervisorPages),
    }),
    supervisor: t.field({
      type: 'Supervisor',
      nullable: true,
      ...needs('clients:manage', 'One supervisor; null if the id is unknown or belongs to another tenant.'),
      args: { id: t.arg.id(idOptions) },
      resolve: rowResolver(({ supervisorPages }, nodeId, id) => supervisorPages.find(nodeId, id)),
    }),
  }));
}
