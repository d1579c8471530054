import { passwordInput, roleInput, supervisorInput } from '../../../access/administration/supervisor.input.ts';
import { permissionsOfRole } from '../../../access/identity/permissions.rules.ts';
import { type Builder, connectionOf, implement, needs } from '../kit/builder.ts';
import { parsedArgument } from '../kit/camel-input.ts';
import { tenantAndAdministrator } from '../kit/graphql-context.ts';
import { DuplicateError, errorsOf, orMember, PreconditionError } from '../kit/graphql-errors.ts';
import { loaderPerOperation } from '../kit/loaders.ts';
import { connectionResolver } from '../kit/pages.ts';
import type { TypeRefs } from '../kit/type-refs.ts';

const authScopes = { permission: 'clients:manage' } as const;
const idOptions = { required: true, description: "The supervisor's UUID." } as const;
const passwordOptions = {
  required: true,
  description: '8 to 1024 characters, after it is normalised to NFC.',
} as const;
const roleOptions = { required: true, description: '`admin`, `operator` or `viewer`.' } as const;
const changed =
  'The supervisor; or ValidationError: an argument is not valid; NotFoundError: the supervisor; PreconditionError: no active admin would be left; ForbiddenError: without clients:manage, or a permission of the role.';

/** Adds the mutations that administer supervisors. */
function addSupervisorMutations(builder: Builder, refs: TypeRefs): void {
  addSupervisorCreation(builder, refs);
  builder.mutationFields((t) => ({
    setSupervisorStatus: t.field({
      type: refs.supervisor,
      description:
        'Disabling ends the sessions and needs clients:manage only. Enabling, like setting the password, also needs every permission of the role. The last active admin cannot be disabled.',
      authScopes,
      errors: errorsOf(changed, PreconditionError),
      args: {
        id: t.arg.id(idOptions),
        status: t.arg({ type: refs.supervisorStatus, required: true, description: 'The new status.' }),
      },
      resolve: (_root, args, context) =>
        orMember(
          context.services.supervisorAdministration.setStatus(...tenantAndAdministrator(context), args.id, args.status),
        ),
    }),
    setSupervisorPassword: t.field({
      type: refs.supervisor,
      description:
        "Sets the password and ends the sessions. Needs clients:manage and every permission of the role; a client's own token cannot do it if the client has limits (addresses, certificate, rate, quota).",
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
      type: refs.supervisor,
      description:
        'Sets the role and ends the sessions. Needs clients:manage and every permission of both roles, as setting the password does. The last active admin stays.',
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
      type: refs.supervisor,
      description:
        'Ends a lockout after wrong passwords, so that the supervisor can log in at once. Needs clients:manage and every permission of the role, as setting the password does.',
      authScopes,
      errors: errorsOf(changed, PreconditionError),
      args: { id: t.arg.id(idOptions) },
      resolve: (_root, { id }, context) =>
        orMember(context.services.supervisorAdministration.unlock(...tenantAndAdministrator(context), id)),
    }),
    revokeSessions: t.field({
      type: refs.supervisor,
      ...needs('clients:manage', 'Ends every session of a supervisor at once.'),
      errors: errorsOf(changed, PreconditionError),
      args: { supervisorId: t.arg.id(idOptions) },
      resolve: (_root, { supervisorId }, context) =>
        orMember(
          context.services.supervisorAdministration.revokeSessions(...tenantAndAdministrator(context), supervisorId),
        ),
    }),
  }));
}

function addSupervisorCreation(builder: Builder, refs: TypeRefs): void {
  const input = builder.inputType('SupervisorInput', {
    description: 'A supervisor.',
    fields: (t) => ({
      username: t.string({
        required: true,
        description:
          'The name to log in with, normalised to NFC: 1 to 255 characters; unique in the node in any letter case.',
      }),
      password: t.string(passwordOptions),
      role: t.string(roleOptions),
    }),
  });
  builder.mutationField('createSupervisor', (t) =>
    t.field({
      type: refs.supervisor,
      description:
        'Creates an active supervisor. Needs clients:manage and every permission of the role, as setting the password does.',
      authScopes,
      errors: errorsOf(
        'The supervisor; or ValidationError: a member of `input` is not valid; DuplicateError: the username is taken; ForbiddenError: without clients:manage, or a permission of the role; NotFoundError: never returned today.',
        DuplicateError,
      ),
      args: { input: t.arg({ ...parsedArgument(input, supervisorInput), description: 'The supervisor.' }) },
      resolve: (_root, { input: supervisor }, context) =>
        orMember(context.services.supervisorAdministration.create(...tenantAndAdministrator(context), supervisor)),
    }),
  );
}

/** Adds the type of supervisors, with its query and mutations. */
export function addSupervisors(builder: Builder, refs: TypeRefs): void {
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
  implement(refs.supervisor, 'A person who logs in by the password grant.', {
    id: ['ID', 'A UUID: the `sub` of the tokens.'],
    username: ['String', 'The name to log in with, in any case of its letters; unique in the node.'],
    role: ['String', '`admin`, `operator` or `viewer`.'],
    status: [refs.supervisorStatus, 'Whether the supervisor can log in.'],
    created_at: ['DateTime', 'When the supervisor was created.'],
  });
  builder.objectFields(refs.supervisor, (t) => ({
    permissions: t.stringList({
      description: 'The permissions of the role, such as `accounts:read`.',
      resolve: ({ role }) => [...permissionsOfRole(role)],
    }),
    lockedUntil: t.field({
      type: 'DateTime',
      nullable: true,
      description: 'When the lockout after too many wrong passwords ends; null without one.',
      resolve: ({ username }, _args, context) => locks(context).load(username),
    }),
  }));
  addSupervisorMutations(builder, refs);
  const connection = connectionOf(builder, refs.supervisor, 'A page of supervisors.', 'A supervisor and the cursor.');
  builder.queryField('supervisors', (t) =>
    t.field({
      type: connection,
      ...needs('clients:manage', "The node's supervisors, active or not, oldest first."),
      args: t.arg.connectionArgs(),
      resolve: connectionResolver('supervisors', ({ supervisorPages }) => supervisorPages),
    }),
  );
}
