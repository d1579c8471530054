import type { z } from 'zod';
import { createSchema, type ZodOpenApiOverride } from 'zod-openapi';
import { clientInput, grantInputs, tokenInput } from '../../access/token-endpoint/token-request.input.ts';
import { notificationInput } from '../../domain/transactions/notification.input.ts';
import { migrateUserInput, migrateUsersInput } from '../../domain/user-migrations/migration.input.ts';
import { conditionInput, ruleLogicInput, walletRuleInput } from '../../domain/wallet-rules/wallet-rule.input.ts';
import { type JsonSchema, refTo } from './operation.ts';

/** Returns the JSON Schema of the input or the output of a zod schema. */
export function schemaOf(schema: z.ZodType, io: 'input' | 'output', override?: ZodOpenApiOverride): JsonSchema {
  const { schema: made } = createSchema(schema, { io, openapiVersion: '3.1.0', opts: override ? { override } : {} });
  // The package declares the type for OpenAPI 3.2.
  return made as JsonSchema;
}

/** The largest uint64 as JSON writes it after rounding to a double, and exactly. */
const ROUNDED_UINT64 = String(Number(2n ** 64n - 1n));
const MAX_UINT64 = String(2n ** 64n - 1n);

/** Replaces the rounded largest uint64 in the text of a document by the exact number. */
export function withExactNumbers(text: string): string {
  return text.replaceAll(ROUNDED_UINT64, MAX_UINT64);
}

/** Returns an object schema with the members of several schemas. */
export function merged(...schemas: readonly JsonSchema[]): JsonSchema {
  const required = schemas.flatMap((schema) => schema.required ?? []);
  return {
    type: 'object',
    properties: Object.assign({}, ...schemas.map(({ properties }) => properties)),
    ...(required.length === 0 ? {} : { required }),
  };
}

/** Returns an object schema with every member optional. */
export function optional({ required: _required, ...schema }: JsonSchema): JsonSchema {
  return schema;
}

/** Returns a schema that requires the member `<type>_rule` of an object with this `type`. */
function ownObject(type: string): JsonSchema {
  return { properties: { type: { const: type } }, required: [`${type}_rule`] };
}

const bulkRows = migrateUsersInput.out.shape.users;

/**
 * Replaces the generated schema of inputs that code rather than zod parses: condition trees, and rows that are counted
 * first.
 */
const override: ZodOpenApiOverride = ({ zodSchema, jsonSchema }) => {
  const schema: z.core.$ZodType = zodSchema;
  if (schema === ruleLogicInput) {
    delete jsonSchema.type;
    jsonSchema.$ref = refTo('RuleLogic').$ref;
  }
  if (schema === bulkRows) jsonSchema.items = refTo('MigrateUserRow');
};

const children: JsonSchema = { type: 'array', items: refTo('RuleLogic'), minItems: 1 };

/**
 * The schemas of request bodies by name, generated from the schemas that parse them. Unknown members are ignored, so
 * they are allowed.
 */
export const inputSchemas: Record<string, JsonSchema> = {
  ...grantRequests(),
  TokenRequest: {
    oneOf: [refTo('PasswordGrant'), refTo('ClientCredentialsGrant'), refTo('RefreshTokenGrant')],
  },
  TokenForm: {
    oneOf: [refTo('PasswordForm'), refTo('ClientCredentialsForm'), refTo('RefreshTokenForm')],
  },
  TokenToManage: merged(read(tokenInput), optional(read(clientInput))),
  Condition: read(conditionInput),
  RuleLogic: {
    oneOf: [
      refTo('Condition'),
      { type: 'object', properties: { and: children }, required: ['and'] },
      { type: 'object', properties: { or: children }, required: ['or'] },
      { type: 'object', properties: { not: refTo('RuleLogic') }, required: ['not'] },
    ],
  },
  WalletRule: {
    ...read(walletRuleInput),
    anyOf: [ownObject('auto_transfer'), ownObject('permissionless_transfer_limit')],
  },
  Notification: read(notificationInput),
  MigrateUser: { ...read(migrateUserInput), anyOf: [{ required: ['email'] }, { required: ['external_id'] }] },
  MigrateUserRow: read(bulkRows.out.element),
  MigrateUsers: read(migrateUsersInput),
};

function read(schema: z.ZodType): JsonSchema {
  return schemaOf(schema, 'input', override);
}

/**
 * Returns two schemas per grant: one with the client credentials in the body, and one of a form, where HTTP Basic may
 * carry them.
 */
function grantRequests() {
  const client = read(clientInput);
  const password = read(grantInputs.password);
  const clientCredentials = read(grantInputs.client_credentials);
  const refreshToken = read(grantInputs.refresh_token);
  return {
    PasswordGrant: merged(password, client),
    ClientCredentialsGrant: merged(clientCredentials, client),
    RefreshTokenGrant: merged(refreshToken, client),
    PasswordForm: merged(password, optional(client)),
    ClientCredentialsForm: merged(clientCredentials, optional(client)),
    RefreshTokenForm: merged(refreshToken, optional(client)),
  };
}
