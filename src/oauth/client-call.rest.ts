import type { NextFunction, Request, RequestHandler, Response } from 'express';
import type { ClientRecord } from '../clients/client-record.ts';
import { type AppError, invalidRequest } from '../errors/app-error.ts';
import type { ErrorEnvelope } from '../errors/envelope.ts';
import { originOf } from '../gateway/client-guards.ts';
import { exchangeOf } from '../gateway/exchange.ts';
import type { Log } from '../lib/log.ts';
import { bodyReader, bytesOf } from '../rest/body.ts';
import { refuse } from '../rest/refuse.ts';
import type { AccessDirectory } from './access-directory.ts';
import { basicClient, isBasic } from './basic-client.rules.ts';
import { parametersOf } from './parameters.ts';
import type { ClientCall } from './token-call.ts';

/** The client is in the body: this much of it is read before the guards have judged anybody. */
const MAX_REQUEST_BYTES = 64 * 1024;

/** What comes before every call that authenticates a client: nothing of it may be kept (RFC 6749 section 5.1). */
export const beforeCall: readonly RequestHandler[] = [noStore, bodyReader({ maxBytes: MAX_REQUEST_BYTES, tooLarge })];

/**
 * A call at its beginning.
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
    ...originOf(exchange),
    headers: {},
    credentials: undefined,
    client: undefined,
    guarded: undefined,
  };
}

/**
 * Ends a call, answered or refused: the headers are those of the client's limits, the record of it is the node's of the
 * client that the call names, also where it could not show that it is that client.
 */
export async function endCall(
  { req, res, directory }: { req: Request; res: Response; directory: AccessDirectory },
  call: ClientCall,
  isApi: boolean,
): Promise<void> {
  for (const [name, value] of Object.entries(call.headers)) res.setHeader(name, value);
  const client = call.client ?? (await namedClient(call, directory));
  if (client) exchangeOf(req).caller = { nodeId: client.nodeId, isApi };
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

/** Answers refusals with an envelope that depends on the request. */
export function refusals(log: Log, envelopeOf: (error: AppError, req: Request) => ErrorEnvelope) {
  return (error: unknown, req: Request, _res: Response, _next: NextFunction) => {
    refuse(exchangeOf(req), error, log, (refusal) => envelopeOf(refusal, req));
  };
}

function tooLarge(): AppError {
  return invalidRequest([{ path: '', message: `must be at most ${MAX_REQUEST_BYTES} bytes` }]);
}

function noStore(_req: Request, res: Response, next: NextFunction): void {
  res.setHeader('Cache-Control', 'no-store');
  res.setHeader('Pragma', 'no-cache');
  next();
}
