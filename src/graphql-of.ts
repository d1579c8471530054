import type { GraphqlListener } from './app.ts';
import type { Context } from './context.ts';
import { serviceUnavailable } from './errors/app-error.ts';
import { refuse } from './rest/refuse.ts';

/** GraphQL over the parts of this instance. */
export function graphqlOf({ log }: Context): GraphqlListener & { stop(): Promise<void> } {
  return {
    handle: (exchange) => refuse(exchange, serviceUnavailable(), log),
    upgrade: (exchange) => refuse(exchange, serviceUnavailable(), log),
    stop: async () => undefined,
  };
}
