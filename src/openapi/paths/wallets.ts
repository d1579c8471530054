import type { oas31 } from 'zod-openapi';
import { networkPath } from '../../networks/networks.rest.ts';
import { rulePath, walletPath } from '../../wallet-rules/wallet-rules.rest.ts';
import { AUTO_TRANSFER, GROUPED, TRANSFER_LIMIT } from '../examples.ts';
import { limitedHeadersOf } from '../headers.ts';
import { refTo } from '../json-schema.ts';
import type { Operations } from '../operation.ts';
import { parameterOf, pathParameters } from '../parameters.ts';
import { responseOf } from '../responses.ts';

const tag = 'Wallets';

const rule: oas31.RequestBodyObject = {
  required: true,
  description: 'At most 1 MiB. The object that the type names must be there; a null member counts as absent.',
  content: {
    'application/json': {
      schema: refTo('WalletRule'),
      examples: {
        auto_transfer: { value: AUTO_TRANSFER },
        permissionless_transfer_limit: { value: TRANSFER_LIMIT },
        conditions_in_groups: { value: GROUPED },
      },
    },
  },
};

export const walletOperations: Operations = {
  'POST /v1/wallets/{wallet_id}/rules': {
    operationId: 'createWalletRule',
    tag,
    summary: 'Create a wallet rule',
    parameters: [...pathParameters(walletPath), parameterOf('Idempotency-Key')],
    requestBody: rule,
    responses: {
      201: { description: 'Created; no body.', headers: limitedHeadersOf('Location', 'ETag') },
      404: responseOf('NotFound'),
      409: responseOf('Conflict'),
      413: responseOf('PayloadTooLarge'),
    },
  },
  'PUT /v1/wallets/{wallet_id}/rules/{id}': {
    operationId: 'replaceWalletRule',
    tag,
    summary: 'Replace a wallet rule in full',
    parameters: [...pathParameters(rulePath), parameterOf('If-Match')],
    requestBody: rule,
    responses: {
      200: { description: 'Replaced; no body. The version is one higher.', headers: limitedHeadersOf('ETag') },
      404: responseOf('NotFound'),
      412: responseOf('PreconditionFailed'),
      413: responseOf('PayloadTooLarge'),
    },
  },
  'POST /v1/wallets/{wallet_id}/networks/{network_id}': {
    operationId: 'assignNetwork',
    tag,
    summary: "Assign a network of the wallet's chain to a wallet",
    description: 'Repeating it changes nothing. A request body is ignored; a network of another chain is a 400.',
    parameters: pathParameters(networkPath),
    responses: {
      204: { description: 'Assigned; no body.', headers: limitedHeadersOf() },
      404: responseOf('NotFound'),
    },
  },
};
