import type { NextFunction, Request, RequestHandler, Response } from 'express';
import type { ClientRecord } from '../../access/identity/client-record.ts';
import type { AccessDirectory } from '../../access/sessions/access-directory.ts';
import type { ClientCall } from '../../access/token-endpoint/token-endpoint.ts';
import { basicClient, isBasic, parametersOf } from '../../access/token-endpoint/token-request.input.ts';
import { originOf } from '../../gateway/client-guards.ts';
import { bytesOf, readBody } from '../../gateway/exchange/body.ts';
import { exchangeOf } from '../../gateway/exchange/exchange.ts';
import { invalidRequest } from '../../platform/errors.ts';

/** Run before every call that authenticates a client: nothing of it may be cached (RFC 6749 section 5.1). */
export const beforeCall: readonly RequestHandler[] = [noStore, readBody];

/**
 * Begins a call.
 * @throws AppError 400 for a body that cannot be read, and for two `Authorization` headers, of which Node gives the first.
 */
export function clientCallOf(req: Request): ClientCall {
  const { authorization } = req.headers;
  const exchange = exchangeOf(req);
  if (authorization !== undefined && (req.headersDistinct.authorization?.length ?? 0) > 1)
    throw invalidRequest([{ path: 'Authorization', message: 'must be given once' }]);
  return {
    parameters: parametersOf(req.headers, bytesOf(req)),
    authorization,
    realIp: exchange.realIp,
    origin: originOf(exchange),
    headers: {},
    credentials: undefined,
    client: undefined,
  };
}

/**
 * Ends a call, answered or refused: sets the headers of the client's limits, and gives the record of the call to the tenant
 * of the client that it names, also where it could not show that it is that client.
 */
export async function endCall(
  { req, res, directory }: { req: Request; res: Response; directory: AccessDirectory },
  call: ClientCall,
  isApi: boolean,
): Promise<void> {
  for (const [name, value] of Object.entries(call.headers)) res.setHeader(name, value);
  const client = call.client ?? (await namedClient(call, directory));
  if (client) exchangeOf(req).found.client = { nodeId: client.nodeId, isApi };
}

/** A call is refused for its own reason, whether or not its client can be looked up. */
async function namedClient(call: ClientCall, directory: AccessDirectory): Promise<ClientRecord | undefined> {
  const clientId = clientIdOf(call);
  try {
    return clientId === undefined ? undefined : await directory.client(clientId);
  } catch {
    return undefined;
  }
}

function clientIdOf({ authorization, parameters }: ClientCall): string | undefined {
  if (authorization !== undefined && isBasic(authorization)) return basicClient(authorization)?.clientId;
  const isObject = typeof parameters === 'object' && parameters !== null;
  const clientId = isObject && 'client_id' in parameters ? parameters.client_id : undefined;
  return typeof clientId === 'string' ? clientId : undefined;
}

function noStore(_req: Request, res: Response, next: NextFunction): void {
  res.setHeader('Cache-Control', 'no-store');
  res.setHeader('Pragma', 'no-cache');
  next();
}
