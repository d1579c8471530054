import type { RequestHandler } from 'express';
import { exchangeOf } from '../../gateway/exchange/exchange.ts';
import { notFound } from '../../platform/errors.ts';
import { type Health, VERSION } from '../../platform/health.ts';
import type { GraphqlServer } from '../graphql/graphql-server.ts';
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
import { type Files, JSON_TEXT, KEPT, ServedFiles, sendFile } from '../shared/served-files.ts';
import { type Route, route, sendEmpty } from './route.ts';

interface PageServices {
  /** Undefined where there is no console. */
  console: Files | undefined;
  swagger: Files;
  publicUrl: { readonly path: string };
}

/** Makes the handler that serves the files whose names are the rest of the path; without files there is none. */
export function serveFiles(files: Files | undefined): RequestHandler {
  return async (req) => {
    const file = await files?.find(String(req.params.rest ?? ''));
    if (!file) throw notFound('there is no file with this name');
    sendFile(exchangeOf(req), file);
  };
}

/** Serves the console, which loads nothing from other origins. */
export const showConsole = route({
  method: 'GET',
  path: '/console/**',
  handlers: ({ console }: PageServices) => [serveFiles(console)],
});

/** Serves Swagger UI, which loads nothing from other origins, and the OpenAPI document (docs/contract.md, 4.9-04). */
export const showSwagger = route({
  method: 'GET',
  path: '/swagger/*',
  handlers: ({ swagger }: PageServices) => [serveFiles(swagger)],
});

/** The routes of the console and of Swagger UI, and those that lead to their pages. */
export const pageRoutes = [
  route({
    method: 'GET',
    path: '/console',
    handlers: ({ console, publicUrl }: PageServices) => [
      (req, res) => {
        if (!console) throw notFound('CONSOLE is off');
        const [, query = ''] = /^[^?]*(\?.*)$/.exec(req.originalUrl) ?? [];
        sendEmpty(res.location(`${publicUrl.path}/console/${query}`), 308);
      },
    ],
  }),
  showConsole,
  route({
    method: 'GET',
    path: '/swagger',
    handlers: ({ publicUrl }: PageServices) => [
      (_req, res) => sendEmpty(res.location(`${publicUrl.path}/swagger/`), 308),
    ],
  }),
  showSwagger,
];

const mcpMessage: JsonSchema = {
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
    content: { 'application/json': { schema: mcpMessage, example: { jsonrpc: '2.0', id: 1, method: 'tools/list' } } },
  },
  responses: {
    200: {
      description: 'The response: a result, or an error of the protocol.',
      headers: limitedHeadersOf('Cache-Control'),
      content: { 'application/json': { schema: mcpMessage } },
    },
    202: { description: 'A notification was accepted; no body.', headers: limitedHeadersOf('Cache-Control') },
    413: responseOf('PayloadTooLarge'),
  },
};

/** Receives a message of the Model Context Protocol. */
export const sendMcpMessage = mcpRoute('POST', '/v2/mcp', { operationId: 'sendMcpMessage', ...sending });

const { path: mcpPath } = sendMcpMessage;

/**
 * Returns the path of the metadata for a public URL with this path: behind the well-known path (RFC 9728 section 3.1).
 */
export function metadataPathOf(publicPath: string): string {
  return `/.well-known/oauth-protected-resource${publicPath}${mcpPath}`;
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
    resource: `${issuer.replace(/\/+$/, '')}${mcpPath}`,
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
  mcpRoute('GET', mcpPath, {
    operationId: 'openMcpStream',
    summary: 'Open an event stream (not supported)',
    responses: noStream,
  }),
  mcpRoute('DELETE', mcpPath, {
    operationId: 'endMcpSession',
    summary: 'End a session (not supported)',
    responses: noStream,
  }),
  mcpRoute('GET', `${mcpPath}/**`, {
    operationId: 'openMcpStreamBelow',
    summary: `The same as GET ${mcpPath}`,
    responses: noStream,
  }),
  mcpRoute('POST', `${mcpPath}/**`, { operationId: 'sendMcpMessageBelow', ...sending }),
];

const allHealthy = { database: 'ok', cache: 'ok', bus: 'ok', audit: 'ok' };
const healthExample = { status: 'ok', version: VERSION, uptime: 3600, checks: allHealthy };

/**
 * Declares the routes that report the health of this process at a path: 503 if the database is down or the audit spool
 * is full, otherwise 200. `name` becomes part of the operation ids.
 */
function healthRoutesOf(path: string, name: string) {
  return (['GET', 'HEAD'] as const).map((method) =>
    route({
      method,
      path,
      servesWhenAuditIsFull: true,
      operation: {
        operationId: `${method.toLowerCase()}${name}`,
        tag: 'Health',
        summary: 'Get the health of the process',
        responses: {
          200: json(
            'Requests are served; `degraded` if the cache or the bus is down.',
            'Health',
            healthExample,
            headersOf(),
          ),
          503: json(
            'The database is down, or the audit spool is full: other requests are refused.',
            'Health',
            { ...healthExample, status: 'down', checks: { ...allHealthy, database: 'down' } },
            headersOf(),
          ),
        },
      },
      handlers: ({ health }: { health: Health }) => [
        (_req, res) => {
          const report = health.report();
          res.status(report.status === 'down' ? 503 : 200).json(report);
        },
      ],
    }),
  );
}

/** The routes for the health of this process, which are served at three paths. */
export const healthRoutes = [
  ...healthRoutesOf('/health', 'Health'),
  ...healthRoutesOf('/v1/health', 'HealthV1'),
  ...healthRoutesOf('/v2/health', 'HealthV2'),
];

function graphqlRoute(method: 'GET' | 'POST') {
  return route({
    method,
    path: '/graphql',
    batch: true,
    handlers: ({ graphql }: { graphql: Pick<GraphqlServer, 'handle'> }) => [(req) => graphql.handle(exchangeOf(req))],
  });
}

/** Serves GraphQL over GET: queries, subscriptions over SSE and WebSockets, and GraphiQL. */
export const getGraphql = graphqlRoute('GET');

/** The routes of GraphQL. They have no OpenAPI operation: the GraphQL schema describes them. */
export const graphqlRoutes = [getGraphql, graphqlRoute('POST')];
