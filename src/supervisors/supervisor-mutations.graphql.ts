import { administrating } from '../graphql/administrating.ts';
import type { Builder } from '../graphql/builder.ts';
import { parsedInput } from '../graphql/camel-input.ts';
import {
  DuplicateError,
  ForbiddenError,
  NotFoundError,
  PreconditionError,
  ValidationError,
} from '../graphql/errors.ts';
import type { Refs } from '../graphql/refs.ts';
import { orMember } from '../graphql/refusals.ts';
import { passwordInput, roleInput, supervisorInput } from './supervisor.input.ts';
import type { SupervisorStatus } from './supervisors.graphql.ts';

const authScopes = { permission: 'clients:manage' } as const;
const idOptions = { required: true, description: "The supervisor's UUID." } as const;
const passwordOptions = { required: true, description: '8 to 1024 characters.' } as const;
const roleOptions = { required: true, description: '`admin`, `operator` or `viewer`.' } as const;
const changed =
  'The supervisor; or ValidationError: an argument is not valid; NotFoundError: the supervisor; PreconditionError: no active admin would be left; ForbiddenError: without clients:manage, or a permission of the role.';

/** Adds the mutations of supervisors. */
export function addSupervisorMutations(builder: Builder, refs: Refs, status: SupervisorStatus): void {
  addSupervisorCreation(builder, refs);
  const errorsOf = (name: string) => ({
    types: [ValidationError, NotFoundError, ForbiddenError, PreconditionError],
    union: { name, description: changed },
  });
  builder.mutationFields((t) => ({
    setSupervisorStatus: t.field({
      type: refs.supervisor,
      description:
        'Disabling ends the sessions and needs clients:manage alone; enabling needs every permission of the role too, as setting the password does. The last active admin stays.',
      authScopes,
      errors: errorsOf('SetSupervisorStatusResult'),
      args: {
        id: t.arg.id(idOptions),
        status: t.arg({ type: status, required: true, description: 'The status that the supervisor gets.' }),
      },
      resolve: (_root, args, context) =>
        orMember(context.services.supervisorAdministration.setStatus(...administrating(context), args.id, args.status)),
    }),
    setSupervisorPassword: t.field({
      type: refs.supervisor,
      description:
        'Sets the password and ends the sessions. Needs clients:manage and every permission of the role; the own token of a client with limits (addresses, certificate, rate, quota) may not.',
      authScopes,
      errors: errorsOf('SetSupervisorPasswordResult'),
      args: { id: t.arg.id(idOptions), password: t.arg.string(passwordOptions) },
      resolve: (_root, { id, ...args }, context) => {
        const { password } = parsedInput(passwordInput, args);
        return orMember(
          context.services.supervisorAdministration.setPassword(...administrating(context), id, password),
        );
      },
    }),
    setSupervisorRole: t.field({
      type: refs.supervisor,
      description:
        'Sets the role and ends the sessions. Needs clients:manage and every permission of both roles, as setting the password does. The last active admin stays.',
      authScopes,
      errors: errorsOf('SetSupervisorRoleResult'),
      args: { id: t.arg.id(idOptions), role: t.arg.string(roleOptions) },
      resolve: (_root, { id, ...args }, context) => {
        const { role } = parsedInput(roleInput, args);
        return orMember(context.services.supervisorAdministration.setRole(...administrating(context), id, role));
      },
    }),
    unlockSupervisor: t.field({
      type: refs.supervisor,
      description:
        'Forgets the wrong passwords, so that the supervisor can log in at once. Needs clients:manage and every permission of the role, as setting the password does.',
      authScopes,
      errors: errorsOf('UnlockSupervisorResult'),
      args: { id: t.arg.id(idOptions) },
      resolve: (_root, { id }, context) =>
        orMember(context.services.supervisorAdministration.unlock(...administrating(context), id)),
    }),
    revokeSessions: t.field({
      type: refs.supervisor,
      description: 'Ends every session of a supervisor at once. Needs clients:manage.',
      authScopes,
      errors: errorsOf('RevokeSessionsResult'),
      args: { supervisorId: t.arg.id(idOptions) },
      resolve: (_root, { supervisorId }, context) =>
        orMember(context.services.supervisorAdministration.revokeSessions(...administrating(context), supervisorId)),
    }),
  }));
}

function addSupervisorCreation(builder: Builder, refs: Refs): void {
  const input = builder.inputType('SupervisorInput', {
    description: 'A supervisor.',
    fields: (t) => ({
      username: t.string({
        required: true,
        description:
          'The name to log in with: 1 to 255 characters; no two of a node differ by the case of their letters alone.',
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
      errors: {
        types: [ValidationError, NotFoundError, ForbiddenError, DuplicateError],
        union: {
          name: 'CreateSupervisorResult',
          description:
            'The supervisor; or ValidationError: a member of `input` is not valid; DuplicateError: the username is taken; ForbiddenError: without clients:manage, or a permission of the role; NotFoundError: not at present.',
        },
      },
      args: { input: t.arg({ type: input, required: true, description: 'The supervisor.' }) },
      resolve: (_root, args, context) => {
        const supervisor = parsedInput(supervisorInput, args.input);
        return orMember(context.services.supervisorAdministration.create(...administrating(context), supervisor));
      },
    }),
  );
}
