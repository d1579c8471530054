import { NOTIFICATION } from '../examples.ts';
import { headersOf } from '../headers.ts';
import { refTo } from '../json-schema.ts';
import type { Operation, Operations } from '../operation.ts';
import { parameterOf } from '../parameters.ts';
import { responses } from '../responses.ts';

const ALIAS = ['Deprecation', 'Sunset', 'Link'];

const SIGNATURE = ['webhook-id', 'webhook-timestamp', 'webhook-signature'].map(parameterOf);
const NOTE =
  'Published to both topics before it is answered; sending an id again is safe, in any order. Unknown members are ignored. Basic credentials are judged before the body, its signature once it is read.';

function webhook(operationId: string, summary: string, aliasHeaders: readonly string[]): Operation {
  const { BadRequest, Unauthorized, InternalError } = responses;
  return {
    operationId,
    tag: 'Webhook',
    summary,
    description: NOTE,
    security: [{ webhookBasic: [] }],
    parameters: SIGNATURE,
    requestBody: {
      required: true,
      description: 'At most 256 KiB; a longer one is a 400.',
      content: { 'application/json': { schema: refTo('Notification'), example: NOTIFICATION } },
    },
    responses: {
      200: { description: 'Accepted and enqueued; no body.', headers: headersOf(...aliasHeaders) },
      400: { ...BadRequest, headers: headersOf(...aliasHeaders), description: 'Malformed, too long or not valid.' },
      401: {
        ...Unauthorized,
        description:
          'The Basic credentials are missing or wrong, or the signature is wrong, incomplete, more than 300 seconds away, or missing where it is required.',
        headers: headersOf('WWW-Authenticate', ...aliasHeaders),
      },
      500: {
        ...InternalError,
        headers: headersOf(...aliasHeaders),
        description: 'Publishing failed, or took longer than four seconds.',
      },
    },
  };
}

export const webhookOperations: Operations = {
  'POST /v2/webhooks/custodial': webhook('notifyTransaction', 'Take a notification of a transaction', []),
  'POST /v2/webhooks': {
    ...webhook('notifyTransactionByAlias', 'The deprecated alias of POST /v2/webhooks/custodial', ALIAS),
    deprecated: true,
  },
};
