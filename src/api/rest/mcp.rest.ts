import { exchangeOf } from '../../gateway/exchange/exchange.ts';
import type { Toolset } from '../mcp/mcp-runtime.ts';
import type { McpServer } from '../mcp/mcp-server.ts';
import {
  headersOf,
  type JsonSchema,
  json,
  limitedHeadersOf,
  type Operation,
  refTo,
  responseOf,
} from '../openapi/operation.ts';
import { JSON_TEXT, KEPT, ServedFiles } from '../shared/served-files.ts';
import { type Route, route } from './route.ts';
import { serveFiles } from './static-files.rest.ts';

const message: JsonSchema = {
  type: 'object',
  description: 'A message, as defined by the Model Context Protocol.',
  properties: { jsonrpc: { const: '2.0' } },
  required: ['jsonrpc'],
};

/** Declares a route of the MCP server, which behaves the same at its path and at each path below it. */
function mcpRoute(
  method: 'GET' | 'POST' | 'DELETE',
  path: string,
  operation: Pick<Operation, 'operationId' | 'summary' | 'requestBody' | 'responses'>,
): Route<{ mcp: McpServer }> {
  return route({
    method,
    path,
    operation: {
      tag: 'MCP',
      description:
        'The bearer token is the secret of an active client, or an access token of the user class. Sessions are not supported: a request with `Mcp-Session-Id` returns 404. `Host` must be the public address or loopback, and `Origin`, if present, an allowed origin; otherwise 403.',
      security: [{ clientSecret: [] }, { oauth2: [] }, { userToken: [] }],
      ...(path.endsWith('**') ? { parameters: [pathParameter] } : {}),
      ...operation,
      responses: {
        401: responseOf('Unauthorized'),
        403: responseOf('Forbidden'),
        404: responseOf('NotFound'),
        429: responseOf('TooManyRequests'),
        ...operation.responses,
      },
    },
    handlers: ({ mcp }) => [(req) => mcp.handle(exchangeOf(req))],
  });
}

const pathParameter = {
  name: 'path',
  in: 'path',
  required: true,
  schema: { type: 'string' },
  description: 'The rest of the path.',
} as const;

const noStream: Operation['responses'] = {
  405: {
    description: 'Sessions are not supported: only POST is served.',
    headers: limitedHeadersOf('Allow'),
    content: { 'application/json': { schema: refTo('MethodNotAllowed') } },
  },
};

const sending: Pick<Operation, 'summary' | 'requestBody' | 'responses'> = {
  summary: 'Send a message of the Model Context Protocol',
  requestBody: {
    required: true,
    content: { 'application/json': { schema: message, example: { jsonrpc: '2.0', id: 1, method: 'tools/list' } } },
  },
  responses: {
    200: {
      description: 'The response: a result, or an error of the protocol.',
      headers: limitedHeadersOf('Cache-Control'),
      content: { 'application/json': { schema: message } },
    },
    202: { description: 'A notification was accepted; no body.', headers: limitedHeadersOf('Cache-Control') },
    413: responseOf('PayloadTooLarge'),
  },
};

/** Receives a message of the Model Context Protocol. */
export const sendMcpMessage = mcpRoute('POST', '/v2/mcp', { operationId: 'sendMcpMessage', ...sending });

const { path } = sendMcpMessage;

/**
 * Returns the path of the metadata for a public URL with this path: behind the well-known path (RFC 9728 section 3.1).
 */
export function metadataPathOf(publicPath: string): string {
  return `/.well-known/oauth-protected-resource${publicPath}${path}`;
}

/** Returns the metadata of MCP as a protected resource (RFC 9728): which server issues the tokens that it takes. */
const getMcpMetadata = route({
  method: 'GET',
  path: metadataPathOf(''),
  operation: {
    operationId: 'getProtectedResourceMetadata',
    tag: 'MCP',
    summary: 'Get the protected resource metadata of MCP (RFC 9728)',
    responses: {
      200: json(
        'The metadata.',
        'ResourceMetadata',
        resourceMetadata('https://gateway.example', ['accounts:read']),
        headersOf('Cache-Control', 'ETag'),
      ),
      304: {
        description: 'Not modified: the version in `If-None-Match` is current.',
        headers: headersOf('Cache-Control', 'ETag'),
      },
    },
  },
  handlers: ({ publicUrl, toolset }: { publicUrl: Readonly<{ value: string }>; toolset(): Promise<Toolset> }) => [
    serveFiles(
      new ServedFiles(async () => {
        const { tools } = await toolset();
        const scopes = new Set([...tools.values()].flatMap(({ scope }) => scope ?? []));
        const bytes = Buffer.from(JSON.stringify(resourceMetadata(publicUrl.value, [...scopes])));
        return { bytes, type: JSON_TEXT, cacheControl: KEPT };
      }),
    ),
  ],
});

function resourceMetadata(issuer: string, scopes: readonly string[]) {
  return {
    resource: `${issuer.replace(/\/+$/, '')}${path}`,
    authorization_servers: [issuer],
    scopes_supported: scopes,
    bearer_methods_supported: ['header'],
    resource_name: 'Portcullis',
  };
}

/**
 * The routes of the Model Context Protocol (Streamable HTTP). There are no streams or sessions, so methods other than
 * POST get 405.
 */
export const mcpRoutes = [
  getMcpMetadata,
  sendMcpMessage,
  mcpRoute('GET', path, {
    operationId: 'openMcpStream',
    summary: 'Open an event stream (not supported)',
    responses: noStream,
  }),
  mcpRoute('DELETE', path, {
    operationId: 'endMcpSession',
    summary: 'End a session (not supported)',
    responses: noStream,
  }),
  mcpRoute('GET', `${path}/**`, {
    operationId: 'openMcpStreamBelow',
    summary: `The same as GET ${path}`,
    responses: noStream,
  }),
  mcpRoute('POST', `${path}/**`, { operationId: 'sendMcpMessageBelow', ...sending }),
];
