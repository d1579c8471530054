import type { z } from 'zod';
import type { ZodOpenApiOverride } from 'zod-openapi';
import { clientInput, grantInputs, tokenInput } from '../oauth/token-request.input.ts';
import { notificationInput } from '../transactions/notification.input.ts';
import { migrateUserInput, migrateUsersInput } from '../user-migrations/migration.input.ts';
import { conditionInput, ruleLogicInput, walletRuleInput } from '../wallet-rules/wallet-rule.input.ts';
import { type JsonSchema, merged, optional, ownObject, refTo, schemaOf } from './json-schema.ts';

const bulkRows = migrateUsersInput.out.shape.users;

/** The shapes that code reads, not a schema: a tree of conditions, and rows that are counted before they are judged. */
const override: ZodOpenApiOverride = ({ zodSchema, jsonSchema }) => {
  const schema: z.core.$ZodType = zodSchema;
  if (schema === ruleLogicInput) {
    delete jsonSchema.type;
    jsonSchema.$ref = refTo('RuleLogic').$ref;
  }
  if (schema === bulkRows) jsonSchema.items = refTo('MigrateUserRow');
};

const children: JsonSchema = { type: 'array', items: refTo('RuleLogic'), minItems: 1 };

/** What the service reads, generated from the schemas that it reads by. Unknown members are ignored, so they are allowed. */
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

/** Each grant with its client in the body, and as a form, where the client may come by HTTP Basic. */
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
