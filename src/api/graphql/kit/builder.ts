import SchemaBuilder from '@pothos/core';
import ErrorsPlugin from '@pothos/plugin-errors';
import RelayPlugin from '@pothos/plugin-relay';
import type { AuthFailure } from '@pothos/plugin-scope-auth';
import ScopeAuthPlugin from '@pothos/plugin-scope-auth';
import ZodPlugin from '@pothos/plugin-zod';
import type { Permission } from '../../../access/identity/permissions.rules.ts';
import type { Instant } from '../../../lib/instants.ts';
import type { ExactNumber } from '../../../lib/json.ts';
import type { GraphqlContext } from './graphql-context.ts';
import { badInputError, ForbiddenError, forbiddenError, inputIssues, ValidationError } from './graphql-errors.ts';
import type { Upload } from './upload.ts';

interface SchemaTypes {
  Context: GraphqlContext;
  DefaultFieldNullability: false;
  DefaultEdgesNullability: { list: false; items: false };
  DefaultNodeNullability: false;
  Scalars: {
    ID: { Input: string; Output: string };
    DateTime: { Input: Instant; Output: string };
    Decimal: { Input: ExactNumber; Output: string };
    JSON: { Input: unknown; Output: unknown };
    File: { Input: Upload; Output: never };
  };
  AuthScopes: { permission: Permission; token: boolean };
  Connection: { totalCount: () => Promise<number> };
}

/**
 * Creates a schema builder without types. The plugins nest as errors, then permissions, then validation: a missing
 * permission is reported before an invalid input, and both can be members of a mutation's union.
 */
export function createBuilder() {
  return new SchemaBuilder<SchemaTypes>({
    plugins: [ErrorsPlugin, ScopeAuthPlugin, ZodPlugin, RelayPlugin],
    defaultFieldNullability: false,
    errors: { directResult: true },
    scopeAuth: {
      authorizeOnSubscribe: true,
      authScopes: ({ principal }) => ({ token: true, permission: (name) => principal.permissions.has(name) }),
      unauthorizedError: (_parent, _context, info, { failure }) => {
        const permission = missingPermission(failure) ?? 'token';
        return info.parentType.name === 'Mutation' ? new ForbiddenError(permission) : forbiddenError(permission);
      },
    },
    zod: {
      validationError: (error, _args, _context, info) => {
        const issues = inputIssues(error);
        return info.parentType.name === 'Mutation' ? new ValidationError(issues) : badInputError(issues);
      },
    },
    relay: {
      cursorType: 'String',
      nodeQueryOptions: false,
      nodesQueryOptions: false,
      firstArgOptions: {
        description:
          'How many rows to return from the beginning, or after `after`: 0 to 100, 20 by default. Together with `last` it is BAD_USER_INPUT.',
      },
      lastArgOptions: {
        description: 'How many rows to return from the end, or before `before`: 0 to 100. Not together with `first`.',
      },
      afterArgOptions: {
        description: 'Return rows after this cursor. A cursor from another list or node is rejected (BAD_USER_INPUT).',
      },
      beforeArgOptions: {
        description: 'Return rows before this cursor. A cursor from another list or node is rejected (BAD_USER_INPUT).',
      },
      edgesFieldOptions: {
        ...exposed('edges'),
        description: 'The rows of the page, in the order of the list.',
        nullable: { list: false, items: false },
      },
      cursorFieldOptions: {
        description: 'Opaque and signed; valid as `after` and `before` of this list and node only.',
      },
      nodeFieldOptions: { ...exposed('node'), description: 'The row itself.' },
      pageInfoFieldOptions: {
        ...exposed('pageInfo'),
        description: 'The first and last cursor of the page, and whether there are more rows.',
        nullable: false,
      },
      pageInfoTypeOptions: {
        description: 'The first and last cursor of a page, and whether there are more rows (Relay cursor connections).',
      },
      hasNextPageFieldOptions: {
        description: 'Whether rows come after this page; with `first`, those up to `before` count.',
        nullable: false,
      },
      hasPreviousPageFieldOptions: {
        description: 'Whether rows come before this page; with `last`, those down to `after` count.',
        nullable: false,
      },
      startCursorFieldOptions: { description: "The first row's cursor; null where the page is empty.", nullable: true },
      endCursorFieldOptions: { description: "The last row's cursor; null where the page is empty.", nullable: true },
    },
  });
}

/**
 * Returns the options of a field that shows the member of its name and needs no resolver. The plugin gives it one, which
 * compiled operations would call for each edge.
 */
function exposed(name: string) {
  return { extensions: { pothosExposedField: name } };
}

/** Returns the options of a field that needs a permission, which its description names. */
export function needs(permission: Permission, description: string, more = '') {
  return { description: `${description} Needs ${permission}. ${more}`.trimEnd(), authScopes: { permission } };
}

/** The schema builder, to which each noun adds its types and fields. */
export type Builder = ReturnType<typeof createBuilder>;

function missingPermission(failure: AuthFailure): string | undefined {
  if ('failures' in failure) return failure.failures.map(missingPermission).find((name) => name !== undefined);
  return 'parameter' in failure && typeof failure.parameter === 'string' ? failure.parameter : undefined;
}
