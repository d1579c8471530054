import { commonInput, rowInputs } from '../../reference/reference.input.ts';
import { REFERENCE_KINDS, type ReferenceKind } from '../../reference/reference-kinds.ts';
import { notificationInput } from '../../transactions/notification.input.ts';
import { registrationInput } from '../../transactions/registration.input.ts';
import { KYC_EVENT } from '../../user-migrations/kyc-event.rules.ts';
import { describedAs } from '../descriptions.ts';
import { type JsonSchema, merged, schemaOf } from '../json-schema.ts';

const uuid: JsonSchema = { type: 'string', format: 'uuid' };

/** The name of the schema of a kind's rows. */
export function rowName(kind: ReferenceKind): string {
  return `Reference${kind.charAt(0).toUpperCase()}${kind.slice(1)}`;
}

/** What the values of messages are, by name: what is read, from the schemas that it is read by. */
export function payloadSchemas(): Record<string, JsonSchema> {
  return {
    Notification: withNulls(describedAs('Notification', schemaOf(notificationInput, 'input'))),
    Registration: withNulls(schemaOf(registrationInput, 'input')),
    KycTokenRequested: {
      type: 'object',
      description: 'A user who was created without a KYC token. Neither name nor e-mail are told.',
      properties: {
        id: { ...uuid, description: 'The id of the event, a UUID of version 7; the same when it is published again.' },
        event: { type: 'string', const: KYC_EVENT },
        user_id: uuid,
        node_id: uuid,
        wallet_address: { type: 'string', minLength: 1, maxLength: 128, description: 'In lower case.' },
        external_id: { type: ['string', 'null'] },
        occurred_at: { type: 'string', format: 'date-time' },
      },
      required: ['id', 'event', 'user_id', 'node_id', 'wallet_address', 'external_id', 'occurred_at'],
      additionalProperties: false,
    },
    ...Object.fromEntries(REFERENCE_KINDS.map((kind) => [rowName(kind), rowSchema(kind)])),
    Tombstone: {
      type: 'null',
      description: 'A message without a value deletes the row; of an account it sets deleted_at.',
    },
    DeadBytes: { description: 'The bytes of the message as it came, whatever they are.' },
  };
}

function rowSchema(kind: ReferenceKind): JsonSchema {
  const schema = merged(schemaOf(commonInput, 'input'), schemaOf(rowInputs[kind], 'input'));
  return withNulls({ ...schema, description: 'The higher version wins. An id, where there is one, is the key.' });
}

/** The same with what this product reads beside it: a null for what is optional, and times in every form of ISO 8601. */
function withNulls(schema: JsonSchema): JsonSchema {
  const properties = Object.entries(schema.properties ?? {}).map(([name, member]) => {
    const { format, ...rest } = member as JsonSchema;
    const known: JsonSchema = format === undefined || format === 'date-time' ? rest : { ...rest, format };
    const isNullable = schema.required?.includes(name) !== true && typeof known.type === 'string';
    return [name, isNullable && known.type !== 'null' ? { ...known, type: [known.type, 'null'] } : known];
  });
  return { ...schema, properties: Object.fromEntries(properties) };
}
