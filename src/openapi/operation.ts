import type { oas31 } from 'zod-openapi';
import type { Endpoint } from '../gateway/gateway-config.ts';
import { parameterOf, targetServer } from './parameters.ts';
import { responseOf } from './responses.ts';
import { bearerSecurity } from './security.ts';

/** What a handler brings to the document; what the gateway does in front of it is added to every one. */
export interface Operation {
  operationId: string;
  tag: string;
  summary: string;
  description?: string;
  deprecated?: boolean;
  parameters?: (oas31.ParameterObject | oas31.ReferenceObject)[];
  requestBody?: oas31.RequestBodyObject;
  responses: Record<number, oas31.ResponseObject | oas31.ReferenceObject>;
  /** Of a public endpoint whose handler asks for credentials. */
  security?: oas31.SecurityRequirementObject[];
}

/** Operations by method and path, as `gateway.yaml` has them. */
export type Operations = Readonly<Record<string, Operation>>;

/** An operation behind the gateway: its headers, its token, its refusals. */
export function operationObject(endpoint: Endpoint, operation: Operation, services: string[]): oas31.OperationObject {
  const { operationId, tag, summary, deprecated, parameters = [], security = [] } = operation;
  const isProtected = endpoint.visibility === 'protected';
  const description = descriptionOf(endpoint, operation);
  return {
    tags: [tag],
    operationId,
    summary,
    ...(description === '' ? {} : { description }),
    ...(deprecated === undefined ? {} : { deprecated }),
    security: isProtected ? bearerSecurity(endpoint) : security,
    parameters: [
      ...parameters,
      targetServer(endpoint.services.length > 0 ? endpoint.services : services),
      parameterOf('X-Correlation-ID'),
    ],
    ...(operation.requestBody === undefined ? {} : { requestBody: operation.requestBody }),
    responses: { ...gatewayResponses(endpoint), ...operation.responses },
  };
}

function descriptionOf({ permissions }: Endpoint, { description = '' }: Operation): string {
  const needs = permissions.map((permission) => `Needs the permission \`${permission}\`.`);
  return [...(description === '' ? [] : [description]), ...needs].join('\n\n');
}

/** What the chain itself answers. Senders of endpoints with closed statuses know no 503. */
function gatewayResponses({ visibility, statuses }: Endpoint): Operation['responses'] {
  const tokens = {
    401: responseOf('Unauthorized'),
    403: responseOf('Forbidden'),
    429: responseOf('TooManyRequests'),
  };
  return {
    400: responseOf('BadRequest'),
    404: responseOf('NotOfService'),
    500: responseOf('InternalError'),
    ...(visibility === 'protected' ? tokens : {}),
    ...(statuses === 'open' ? { 503: responseOf('ServiceUnavailable') } : {}),
  };
}
