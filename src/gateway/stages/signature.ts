import { unauthorized } from '../../errors/app-error.ts';
import type { TokenVerifier } from '../../oauth/token-verifier.ts';
import type { Exchange } from '../exchange.ts';
import type { Stage } from '../stage.ts';
import { carriesToken } from './visibility.ts';

const BEARER = /^Bearer +([^\s]+)$/i;

/** Verifies the signature of the bearer token with a secret of a class that the endpoint accepts. */
export function signatureStage(tokens: TokenVerifier): Stage {
  return function signature(exchange: Exchange): void | Promise<void> {
    if (!carriesToken(exchange) || !exchange.match) return;
    const bearer = BEARER.exec(exchange.req.headers.authorization ?? '')?.[1];
    if (bearer === undefined) throw unauthorized();
    const { endpoint } = exchange.match;
    const verified = tokens.verify(bearer, endpoint.tokens);
    if (!(verified instanceof Promise)) {
      exchange.token = verified;
      return;
    }
    return verified.then((token) => {
      exchange.token = token;
    });
  };
}
