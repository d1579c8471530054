import { type DocumentedSchemas, inputSchema } from '../../api/openapi/operation.ts';
import { notificationInput } from '../transactions/notification.input.ts';

/** The descriptions of the members of a notification. */
export const NOTIFICATION_MEMBERS = {
  id: 'The id that the chain processor gave the transaction.',
  type: 'A code whose meaning depends on the collection of the id. Unknown codes are stored.',
  status: '1 Started, 2 InProgress, 3 Done, 4 Error, 5 PendingReceipt.',
  transaction_hash: 'Empty until broadcast.',
  contract_address: 'Empty if there is none.',
  gas_used: '0 while pending.',
  error: 'Set if the status is 4.',
  created_at: 'ISO 8601 with any precision and any offset; UTC if there is none.',
  updated_at: 'ISO 8601 with any precision and any offset; UTC if there is none.',
};

/** What the webhook adds to the OpenAPI document. */
export const webhookSchemas: DocumentedSchemas = {
  inputs: { Notification: inputSchema(notificationInput) },
  descriptions: { Notification: NOTIFICATION_MEMBERS },
};
