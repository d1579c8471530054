import { z } from 'zod';
import { limitedHeadersOf, responseOf } from '../../api/openapi/operation.ts';
import { route } from '../../api/rest/route.ts';
import { callerOf, exchangeOf } from '../../gateway/exchange/exchange.ts';
import { IDS } from '../../lib/example-ids.ts';
import { uuidInput } from '../../lib/input.ts';
import { parseOrReject } from '../../platform/errors.ts';
import type { Networks } from './networks.service.ts';

const assignmentPath = z.object({
  wallet_id: uuidInput().meta({ example: IDS.wallet_id }),
  network_id: uuidInput().meta({ example: IDS.network_id }),
});

/** Assigns a network to a wallet (docs/contract.md, 4.4-01). */
export const assignNetwork = route({
  method: 'POST',
  path: '/v1/wallets/{wallet_id}/networks/{network_id}',
  operation: {
    operationId: 'assignNetwork',
    tag: 'Wallets',
    summary: "Assign a network of the wallet's chain to a wallet",
    description:
      'Repeating the request changes nothing. A request body is ignored. A network of another chain returns 400.',
    pathParameters: assignmentPath,
    responses: {
      204: { description: 'Assigned; no body.', headers: limitedHeadersOf() },
      404: responseOf('NotFound'),
    },
  },
  handlers: ({ networks }: { networks: Networks }) => [
    async (req, res) => {
      const { wallet_id: walletId, network_id: networkId } = parseOrReject(assignmentPath, req.params);
      await networks.assign(callerOf(req), walletId, networkId);
      // Node discards a body, which this endpoint does not use; if it is over the limit, the connection is closed
      // instead of reading it.
      const { 'transfer-encoding': coding, 'content-length': length = '0' } = req.headers;
      const isTooLong = coding !== undefined || Number(length) > (exchangeOf(req).state.endpoint?.max_body_bytes ?? 0);
      if (!req.complete && isTooLong) res.setHeader('Connection', 'close');
      res.status(204).end();
    },
  ],
});
