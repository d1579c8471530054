import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import type { oas31 } from 'zod-openapi';
import type { Endpoint, GatewayConfig } from '../gateway/gateway-config.ts';
import { described } from './descriptions.ts';
import { headers } from './headers.ts';
import { inputSchemas } from './input-schemas.ts';
import { schemaOf } from './json-schema.ts';
import { type Operations, operationObject } from './operation.ts';
import { outputSchemas } from './output-schemas.ts';
import { parameters } from './parameters.ts';
import { listOperations } from './paths/lists.ts';
import { oauthOperations } from './paths/oauth.ts';
import { publicOperations } from './paths/public.ts';
import { userOperations } from './paths/users.ts';
import { walletOperations } from './paths/wallets.ts';
import { webhookOperations } from './paths/webhooks.ts';
import { errorSchemas, responses } from './responses.ts';
import { securitySchemes } from './security.ts';
import { TAGS } from './tags.ts';

const operations: Operations = {
  ...oauthOperations,
  ...walletOperations,
  ...webhookOperations,
  ...userOperations,
  ...listOperations,
  ...publicOperations,
};

/** What OpenAPI has no words for, or what is described elsewhere: preflights, GraphQL, and where the document itself is. */
export const UNDESCRIBED: ReadonlySet<string> = new Set(['**', '/graphql', '/swagger/*']);

/**
 * The REST interface in OpenAPI 3.1, generated from the schemas that requests are read by and from the endpoints of a
 * gateway's configuration.
 * @throws Error where an endpoint is not described, or a description has no endpoint.
 */
export function openApiDocument({ endpoints, services }: GatewayConfig): oas31.OpenAPIObject {
  return {
    openapi: '3.1.0',
    info: {
      title: 'Portcullis',
      version: packageVersion(),
      description: INTRODUCTION,
      license: { name: 'Apache-2.0', identifier: 'Apache-2.0' },
    },
    servers: [{ url: '/' }],
    tags: TAGS,
    paths: pathsOf(endpoints, Object.keys(services)),
    components: {
      schemas: described({ ...inputSchemas, ...outputs(), ...errorSchemas }),
      responses,
      parameters,
      headers,
      securitySchemes,
    },
  };
}

const INTRODUCTION = [
  'The integration gateway of a custody and tokenization platform.',
  'Every answer carries `X-Correlation-ID`. An error is `{code: -1, domain: 0, message}`; a 400 that is about members of the input adds `errors`.',
  'An optional member that is null counts as absent, a UUID is taken in either case and kept in lower case, and members that are not named are ignored.',
  'Matching is exact: letter case and a trailing slash count. `OPTIONS` is answered on any path. GraphQL is at `/graphql`, with a schema of its own.',
].join('\n\n');

function pathsOf(endpoints: readonly Endpoint[], services: string[]): oas31.PathsObject {
  const paths: Record<string, oas31.PathItemObject> = {};
  const left = new Set(Object.keys(operations));
  for (const endpoint of endpoints.filter(({ path }) => !UNDESCRIBED.has(path))) {
    const item: Record<string, oas31.OperationObject> = {};
    for (const method of endpoint.methods) {
      const name = `${method} ${endpoint.path}`;
      const operation = operations[name];
      if (!operation) throw new Error(`${name} is not described`);
      item[method.toLowerCase()] = operationObject(endpoint, operation, services);
      left.delete(name);
    }
    const path = endpoint.path.replace(/\*\*$/, '{path}');
    paths[path] = { ...paths[path], ...item };
  }
  if (left.size > 0) throw new Error(`not registered: ${[...left].join(', ')}`);
  return paths;
}

function outputs() {
  return Object.fromEntries(Object.entries(outputSchemas).map(([name, schema]) => [name, schemaOf(schema, 'output')]));
}

function packageVersion(): string {
  return JSON.parse(readFileSync(join(import.meta.dirname, '../../package.json'), 'utf8')).version;
}
