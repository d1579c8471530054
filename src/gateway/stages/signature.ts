import { bearerOf } from '../../oauth/bearer.rules.ts';
import type { TokenVerifier } from '../../oauth/token-verifier.ts';
import type { Exchange } from '../exchange.ts';
import type { Stage } from '../stage.ts';
import { carriesToken } from './visibility.ts';

/** Verifies the signature of the bearer token with a secret of a class that the endpoint accepts. */
export function signatureStage(tokens: TokenVerifier): Stage {
  return function signature(exchange: Exchange): void | Promise<void> {
    if (!carriesToken(exchange) || !exchange.match) return;
    const bearer = bearerOf(exchange.req.headers.authorization);
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
