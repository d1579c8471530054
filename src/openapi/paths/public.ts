import { NETWORK_ID } from '../examples.ts';
import { headersOf, limitedHeadersOf } from '../headers.ts';
import { type JsonSchema, refTo } from '../json-schema.ts';
import type { Operation, Operations } from '../operation.ts';
import { json, responseOf } from '../responses.ts';

const HEALTH = ['/health', '/v1/health', '/v2/health'] as const;
const NAMES = { '/health': 'Health', '/v1/health': 'HealthV1', '/v2/health': 'HealthV2' };

function health(operationId: string): Operation {
  const checks = { database: 'ok', cache: 'ok', bus: 'ok' };
  const report = { status: 'ok', version: '0.1.0', uptime: 3600, checks };
  return {
    operationId,
    tag: 'Health',
    summary: 'Tell how the instance is',
    responses: {
      200: json('It serves; `degraded` where the cache or the bus is away.', 'Health', report, headersOf()),
      503: json(
        'The database is away.',
        'Health',
        { ...report, status: 'down', checks: { ...checks, database: 'down' } },
        headersOf(),
      ),
    },
  };
}

function mcp(operationId: string, summary: string): Operation {
  return {
    operationId,
    tag: 'MCP',
    summary,
    description:
      'The bearer is the secret of an active client. There are no sessions: a request with `Mcp-Session-Id` is 404. `Host` must be that of the public address, or loopback; `Origin`, where there is one, of those allowed: else 403.',
    security: [{ clientSecret: [] }],
    responses: {
      401: responseOf('Unauthorized'),
      403: responseOf('Forbidden'),
      404: responseOf('NotFound'),
      429: responseOf('TooManyRequests'),
    },
  };
}

function withoutStream(operation: Operation): Operation {
  const allowed = {
    description: 'There are no sessions: only POST is served.',
    headers: limitedHeadersOf('Allow'),
    content: { 'application/json': { schema: refTo('MethodNotAllowed') } },
  };
  return { ...operation, responses: { ...operation.responses, 405: allowed } };
}

function mcpMessage(operationId: string): Operation {
  const message: JsonSchema = { type: 'object', properties: { jsonrpc: { const: '2.0' } }, required: ['jsonrpc'] };
  const operation = mcp(operationId, 'Send a message of the Model Context Protocol');
  return {
    ...operation,
    requestBody: {
      required: true,
      content: {
        'application/json': { schema: message, example: { jsonrpc: '2.0', id: 1, method: 'tools/list' } },
      },
    },
    responses: {
      ...operation.responses,
      200: {
        description: 'The answer: a result, or an error of the protocol.',
        headers: limitedHeadersOf('Cache-Control'),
        content: { 'application/json': { schema: message } },
      },
      202: { description: 'A notification was taken; no body.', headers: limitedHeadersOf('Cache-Control') },
      413: responseOf('PayloadTooLarge'),
    },
  };
}

const rest = {
  name: 'path',
  in: 'path',
  required: true,
  schema: { type: 'string' },
  description: 'Any rest.',
} as const;

export const publicOperations: Operations = {
  ...Object.fromEntries(
    HEALTH.flatMap((path) => [
      [`GET ${path}`, health(`get${NAMES[path]}`)],
      [`HEAD ${path}`, health(`head${NAMES[path]}`)],
    ]),
  ),
  'GET /v2/blockchain/gas-fee': {
    operationId: 'getGasFees',
    tag: 'Blockchain',
    summary: 'Show what gas costs on each network, in wei',
    responses: {
      200: json(
        'A network that cannot be asked has `error` alone.',
        'GasFees',
        {
          data: [
            {
              network_id: NETWORK_ID,
              chain_id: 1,
              base_fee: '12000000000',
              priority_fee: { slow: '100000000', standard: '1000000000', fast: '2500000000' },
              gas_price: '13000000000',
              block_number: 21234567,
              updated_at: '2026-11-21T10:30:00.000Z',
            },
            { network_id: 'e1f2a3b4-5c6d-4e7f-8091-a2b3c4d5e6f7', error: 'unavailable' },
          ],
        },
        headersOf(),
      ),
    },
  },
  'GET /v2/mcp': withoutStream(mcp('openMcpStream', 'Ask for a stream, which there is none of')),
  'POST /v2/mcp': mcpMessage('sendMcpMessage'),
  'DELETE /v2/mcp': withoutStream(mcp('endMcpSession', 'End a session, which there is none of')),
  'GET /v2/mcp/**': { ...withoutStream(mcp('openMcpStreamBelow', 'The same as GET /v2/mcp')), parameters: [rest] },
  'POST /v2/mcp/**': { ...mcpMessage('sendMcpMessageBelow'), parameters: [rest] },
};
